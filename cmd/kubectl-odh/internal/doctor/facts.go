package doctor

import (
	"cmp"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Gap is something that could not be read.
type Gap struct {
	// What was to be read.
	What string
	// Right that is missing, "" where it failed for another Reason.
	Right, Reason string
	// Of is the right that it shares with other objects of its kind, whose name is Name; "" for what stands for itself.
	Of, Name string
}

// Facts are what the checks go by. A topic whose facts are missing has gaps; what is there is whole then as far as it goes.
type Facts struct {
	Now time.Time
	// Plugin is the version of this program, Server that of the API server, such as "v1.34.1".
	Plugin, Server string
	Served         served.Set
	Manager        installed.Manager
	// CRDs are the ones of ours, of KServe and of KubeRay that exist, by name.
	CRDs map[string]*apiextensionsv1.CustomResourceDefinition
	// Originals are the former operators that were found.
	Originals []Running
	// Granted are the rights of the manager's account.
	Granted Granted
	// UserRoles are the ClusterRoles for users that exist, of those that we ship.
	UserRoles map[string]bool
	// Webhooks are all of the cluster that concern our kinds.
	Webhooks []Webhook
	// Services are those that webhooks and conversions name; ready counts the addresses behind each, and is negative where it is not
	// known. A Service that is not there has no entry.
	Services map[types.NamespacedName]int
	// Certificate is the Secret of the manager's own certificate; nil when there is none.
	Certificate *corev1.Secret
	// MeshNamespaces are those of ModelMesh.
	MeshNamespaces []MeshNamespace
	// EtcdName is the Secret that says where etcd is, StorageName the one with the storage entries. EtcdSecret tells whether the first
	// exists in the namespace of ModelMesh.
	EtcdName, StorageName string
	EtcdSecret            bool
	// Connected counts the models that name an entry of the storage Secret, by namespace.
	Connected map[string]int
	// Resources are those that the components look after.
	Resources []Resource
	// Needed are the Secrets and ConfigMaps that resources name.
	Needed []Needed
	// ServiceCA tells whether the service CA of OpenShift runs; nil where there is none or it is not known.
	ServiceCA *bool

	gaps map[topic][]Gap
}

// topic is a group of facts that are read together.
type topic string

const (
	topicServed     topic = "served"
	topicManager    topic = "manager"
	topicCRDs       topic = "crds"
	topicOriginals  topic = "originals"
	topicRights     topic = "rights"
	topicUserRoles  topic = "userroles"
	topicWebhooks   topic = "webhooks"
	topicServices   topic = "services"
	topicSecret     topic = "certificate"
	topicMesh       topic = "mesh"
	topicResources  topic = "resources"
	topicOpenShift  topic = "openshift"
	topicMeshSecret topic = "meshsecret"
	topicReferences topic = "references"
)

// unreadable are the findings about what of the topics could not be read.
func (f *Facts) unreadable(topics ...topic) []Finding {
	var out []Finding
	for _, t := range topics {
		for _, gap := range joined(f.gaps[t]) {
			out = append(out, unread(gap))
		}
	}
	return out
}

// joined makes one gap of those that the same right would close, with all names.
func joined(gaps []Gap) []Gap {
	gaps = slices.Clone(gaps)
	slices.SortFunc(gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.What, b.What), cmp.Compare(a.Right, b.Right))
	})
	var out []Gap
	for _, gap := range gaps {
		last := len(out) - 1
		if last < 0 || gap.Of == "" || out[last].Of != gap.Of {
			out = append(out, gap)
			continue
		}
		out[last].What, out[last].Right = out[last].What+", "+gap.Name, gap.Of
	}
	return out
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

// Running is a former operator.
type Running struct {
	Original
	// Namespace of its Deployment or its Lease.
	Namespace string
	// Present tells that its Deployment is there, wanting Replicas pods.
	Present  bool
	Replicas int32
	// Leads tells that one of its replicas renewed its Lease a moment ago, whatever runs it.
	Leads  bool
	Holder string
}

// Granted are the rights of an account by where they hold.
type Granted struct {
	// Everywhere hold in the whole cluster, Inside in one namespace.
	Everywhere []rbacv1.PolicyRule
	Inside     map[string][]rbacv1.PolicyRule
}

// Webhook is one webhook of a configuration.
type Webhook struct {
	// Kind and Configuration are those of the object that it stands in.
	Kind, Configuration string
	Name                string
	Policy              admissionregistrationv1.FailurePolicyType
	Rules               []admissionregistrationv1.RuleWithOperations
	CABundle            []byte
	// Service is nil for one that is called by its URL.
	Service *admissionregistrationv1.ServiceReference
}

// MeshNamespace is one that ModelMesh serves or is asked to.
type MeshNamespace struct {
	Name string
	// Own tells that it is that of the manager, which is served without asking for it.
	Own bool
	// Service tells whether the Service in front of runtimes is there, Storage whether the Secret with the storage entries is.
	Service, Storage bool
}

// Resource is one that a component looks after.
type Resource struct {
	Component, Kind, Namespace, Name string
	Verdict                          health.Verdict
}
