package doctor

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
)

// Facts are the input of the checks.
type Facts struct {
	Now time.Time
	// Plugin is the version of this program, Server that of the API server, such as "v1.34.1".
	Plugin, Server string
	Served         served.Set
	Manager        installed.Manager
	// CRDs are those that we ship, by name: nil for one that does not exist, no entry for one that could not be read.
	CRDs map[string]*apiextensionsv1.CustomResourceDefinition
	// Originals are the former operators that were found.
	Originals []Running
	// Granted are the permissions of the manager's account.
	Granted Granted
	// Webhooks are all of the cluster that concern our kinds.
	Webhooks []Webhook
	// Services are those that webhooks and conversions name, with the number of ready addresses behind each; negative where it is not
	// known. A Service that does not exist has no entry.
	Services map[types.NamespacedName]int
	// Certificate is the Secret of the manager's own certificate, without its keys; nil when there is none.
	Certificate *corev1.Secret
	// Needed are the Secrets and ConfigMaps that resources name.
	Needed []Needed
	// Runtimes are those that ModelMesh makes no pods of, with the reason, by kind, namespace and name; Judged is the number of all.
	Runtimes map[string]string
	Judged   int
	// Unread are findings about what could not be read, by check.
	Unread map[string][]Finding
}

// namespace of the manager, "" where it is not known.
func (f *Facts) namespace() string {
	if f.Manager.Deployment == nil {
		return ""
	}
	return f.Manager.Deployment.Namespace
}

// enabled tells whether a component is on; false where the settings are not known.
func (f *Facts) enabled(component string) bool {
	return f.Manager.Settings.Known && f.Manager.Settings.Config.Enabled(component)
}

// off tells whether a component is known to be off.
func (f *Facts) off(component string) bool {
	return f.Manager.Settings.Known && !f.Manager.Settings.Config.Enabled(component)
}

// hasKind tells whether a kind is served in any version.
func (f *Facts) hasKind(group, kind string) bool {
	_, has := f.Served.Kind(group, kind)
	return has
}

// Running is a former operator.
type Running struct {
	Original
	// Namespace of its Deployment or its Lease.
	Namespace string
	// Present tells that its Deployment exists, with Replicas desired pods.
	Present  bool
	Replicas int32
	// Holder of its Lease; "" when no replica holds it.
	Holder string
}

// Granted are the permissions of an account: in the whole cluster, and in any of its namespaces.
type Granted struct {
	Everywhere, Inside []rbacv1.PolicyRule
}

// Webhook is one webhook of a configuration.
type Webhook struct {
	// Kind and Configuration are those of the object that has it.
	Kind, Configuration string
	Name                string
	Policy              admissionregistrationv1.FailurePolicyType
	Rules               []admissionregistrationv1.RuleWithOperations
	CABundle            []byte
	// Service is nil for one that is called by its URL.
	Service *admissionregistrationv1.ServiceReference
}
