package doctor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
)

// Facts are the input of the checks.
type Facts struct {
	Now time.Time
	// Plugin is the version of this program, Server that of the API server, such as "v1.34.1".
	Plugin, Server string
	Served         fetch.Set
	Manager        installed.Manager
	// CRDs are those that we ship, by name: nil for one that does not exist, no entry for one that could not be read.
	CRDs map[string]*apiextensionsv1.CustomResourceDefinition
	// Originals are the former operators that were found.
	Originals []Running
	// Granted are the permissions of the manager's account.
	Granted Granted
	// Webhooks are all of the cluster that concern our kinds.
	Webhooks []Webhook
	// PlatformKubeRay tells that KubeRay is the one of the platform, see capability.Set.
	PlatformKubeRay bool
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
	CABundle            []byte
	// Service is nil for one that is called by its URL.
	Service *admissionregistrationv1.ServiceReference
}

// Names of the checks for which the gatherer reads something.
const (
	manager     = "manager"
	originals   = "originals"
	crds        = "crds"
	rights      = "rights"
	certificate = "certificate"
	webhooks    = "webhooks"
	references  = "references"
	runtimes    = "runtimes"
)

// gatherer reads the cluster. Tasks of one stage run at once; each writes facts of its own.
type gatherer struct {
	fetch.Reader
	ships Shipped
	facts *Facts
}

// gather reads all facts. An error means that nothing could be read.
func gather(ctx context.Context, o *cli.Options, ships Shipped) (*Facts, error) {
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	facts := &Facts{Now: o.Clock.Now(), Plugin: o.Version, Served: reader.Set, Unread: map[string][]Finding{}}
	if version, err := cluster.Discovery.ServerVersion(); err == nil {
		facts.Server = version.GitVersion
	}
	for _, stage := range []map[string]func(*gatherer, context.Context){
		{
			manager: func(g *gatherer, ctx context.Context) {
				g.facts.Manager = installed.Find(ctx, g.Reader, o.ManagerNamespace)
			},
			crds: (*gatherer).crds, originals: (*gatherer).originals, webhooks: (*gatherer).webhooks,
		},
		// These depend on the namespace of the manager, and on what other objects name.
		{
			rights: (*gatherer).rights, webhooks: (*gatherer).services, certificate: (*gatherer).certificate,
			references: (*gatherer).references, runtimes: (*gatherer).runtimes,
		},
	} {
		gaps := map[string]*fetch.Gaps{}
		for check := range stage {
			gaps[check] = &fetch.Gaps{}
		}
		fetch.Each(slices.Collect(maps.Keys(stage)), func(check string) {
			stage[check](&gatherer{Reader: reader.Noting(gaps[check]), ships: ships, facts: facts}, ctx)
		})
		for check, found := range gaps {
			facts.Unread[check] = append(facts.Unread[check], unread(check, found)...)
		}
	}
	return facts, nil
}

// unread are findings about what could not be read for a check, each once.
func unread(check string, gaps *fetch.Gaps) []Finding {
	var out []Finding
	for _, gap := range gaps.All() {
		firstLine, _, _ := strings.Cut(gap.Err.Error(), "\n")
		f := Finding{
			Result: Unknown, Subject: strings.TrimSpace(gap.Resource + " " + gap.Name), Found: "could not be read: " + firstLine,
			Fix: "try again; kubectl get --raw /readyz?verbose shows the state of the API server",
		}
		if gap.Forbidden() {
			f.Found = "may not be read"
			f.Fix = strings.TrimSpace("ask an administrator for the permission to " + gap.Verb + " " + gap.Resource + " " + gap.Where)
			if check == manager {
				f.Fix += ", or name the manager's namespace with --manager-namespace"
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Fix, b.Fix), cmp.Compare(a.Subject, b.Subject)) })
	return slices.Compact(out)
}

func (g *gatherer) crds(ctx context.Context) {
	g.facts.CRDs = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for name := range g.ships.CRDs {
		if u, err := g.Get(ctx, g.Kind("CustomResourceDefinition.apiextensions.k8s.io"), "", name); err == nil {
			g.facts.CRDs[name] = fetch.As[apiextensionsv1.CustomResourceDefinition](u)
		}
	}
}

// certificate reads the public part of the manager's own certificate.
func (g *gatherer) certificate(ctx context.Context) {
	namespace := g.facts.namespace()
	if namespace == "" {
		return
	}
	u, _ := g.Get(ctx, g.Kind("Secret"), namespace, certificateSecret)
	if s := fetch.As[corev1.Secret](u); s != nil {
		maps.DeleteFunc(s.Data, func(key string, _ []byte) bool {
			return key != corev1.TLSCertKey && key != corev1.ServiceAccountRootCAKey
		})
		g.facts.Certificate = &corev1.Secret{ObjectMeta: s.ObjectMeta, Data: s.Data}
	}
}

// rights reads what bindings allow the manager's account.
func (g *gatherer) rights(ctx context.Context) {
	d := g.facts.Manager.Deployment
	if d == nil {
		return
	}
	account := rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: d.Namespace, Name: cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"),
	}
	g.facts.Granted = Granted{g.granted(ctx, "ClusterRoleBinding", account), g.granted(ctx, "RoleBinding", account)}
}

// granted are the rules that bindings of a kind grant to an account. Bindings and roles of both kinds have the same fields.
func (g *gatherer) granted(ctx context.Context, kind string, account rbacv1.Subject) []rbacv1.PolicyRule {
	bindings, _ := g.List(ctx, g.Kind(kind+"."+rbacv1.GroupName), "", metav1.ListOptions{})
	var rules []rbacv1.PolicyRule
	for i := range bindings {
		b := fetch.As[rbacv1.RoleBinding](&bindings[i])
		if !concerns(b.Subjects, b.Namespace, account) {
			continue
		}
		u, _ := g.Get(ctx, g.Kind(b.RoleRef.Kind+"."+rbacv1.GroupName), b.Namespace, b.RoleRef.Name)
		if role := fetch.As[rbacv1.ClusterRole](u); role != nil {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// concerns tells whether an account is among the subjects of a binding, by itself or by a group of all accounts of its namespace.
func concerns(subjects []rbacv1.Subject, home string, account rbacv1.Subject) bool {
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Name == account.Name && cmp.Or(s.Namespace, home) == account.Namespace
		case rbacv1.UserKind:
			return s.Name == user
		default:
			return slices.Contains(groups, s.Name)
		}
	})
}
