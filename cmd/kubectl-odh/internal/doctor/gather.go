package doctor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
)

// gatherer reads the cluster. Tasks of one stage run at once.
type gatherer struct {
	reader fetch.Reader
	set    served.Set
	ships  Shipped

	mu    sync.Mutex
	facts *Facts
}

// gather reads all facts. An error means that nothing could be read.
func gather(ctx context.Context, o *cli.Options, cluster *cli.Cluster, ships Shipped) (*Facts, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	g := &gatherer{
		reader: cluster.Reader(), set: set, ships: ships,
		facts: &Facts{
			Now: o.Clock.Now(), Plugin: o.Version, Served: set, CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{},
			Services: map[types.NamespacedName]int{}, Unread: map[string][]Finding{},
		},
	}
	if version, err := cluster.Discovery.ServerVersion(); err == nil {
		g.facts.Server = version.GitVersion
	}
	g.run(ctx, func(ctx context.Context) { g.manager(ctx, o, cluster) }, g.crds, g.originals, g.webhooks)
	// These depend on the namespace of the manager, and on what other objects name.
	g.run(ctx, g.rights, g.services, g.certificate, g.references, g.runtimes)
	for _, unread := range g.facts.Unread {
		slices.SortFunc(unread, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Fix, b.Fix), cmp.Compare(a.Subject, b.Subject)) })
	}
	return g.facts, nil
}

// run returns when all tasks have ended.
func (g *gatherer) run(ctx context.Context, tasks ...func(context.Context)) {
	fetch.Each(tasks, func(task func(context.Context)) { task(ctx) })
}

// put writes facts.
func (g *gatherer) put(write func(*Facts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	write(g.facts)
}

// known reports whether it is known what is there: an object that does not exist is known. What could not be read is unknown for the check.
func (g *gatherer) known(check, verb string, kind served.Kind, namespace, name string, err error) bool {
	if err == nil || isNotFound(err) {
		return true
	}
	resource := kind.GVR().GroupResource().String()
	firstLine, _, _ := strings.Cut(err.Error(), "\n")
	unread := Finding{
		Result: Unknown, Subject: strings.TrimSpace(resource + " " + name), Found: "could not be read: " + firstLine,
		Fix: "try again; kubectl get --raw /readyz?verbose shows the state of the API server",
	}
	if apierrors.IsForbidden(err) {
		unread.Found, unread.Fix = "may not be read", "ask an administrator for the permission to "+verb+" "+resource
		if namespace != "" {
			unread.Fix += " in namespace " + namespace
		}
	}
	g.put(func(f *Facts) {
		if !slices.Contains(f.Unread[check], unread) {
			f.Unread[check] = append(f.Unread[check], unread)
		}
	})
	return false
}

func isNotFound(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// get reads one object; nil when it does not exist or is not known.
func (g *gatherer) get(ctx context.Context, check, group, kind, namespace, name string) (u *unstructured.Unstructured, known bool) {
	k, ok := g.set.Kind(group, kind)
	if !ok {
		return nil, true
	}
	u, err := g.reader.Get(ctx, k, namespace, name)
	if err != nil {
		return nil, g.known(check, "get", k, namespace, name, err)
	}
	return u, true
}

// list reads the objects of a kind.
func (g *gatherer) list(ctx context.Context, check, group, kind, namespace string, options metav1.ListOptions) (all []unstructured.Unstructured, known bool) {
	k, ok := g.set.Kind(group, kind)
	if !ok {
		return nil, true
	}
	all, err := g.reader.List(ctx, k, namespace, options)
	return all, g.known(check, "list", k, namespace, "", err)
}

// decode reads an object into its type. What has another shape is an object without that content.
func decode(u *unstructured.Unstructured, into any) bool {
	return u != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}

func (g *gatherer) manager(ctx context.Context, o *cli.Options, cluster *cli.Cluster) {
	var gaps fetch.Gaps
	m := installed.Find(ctx, g.reader, g.set, o.ManagerNamespace, cluster.Namespace, &gaps)
	var unread []Finding
	hidden, failed := gaps.Split()
	if len(hidden) > 0 {
		unread = append(unread, Finding{Result: Unknown, Subject: strings.Join(hidden, ", "), Found: "may not be read",
			Fix: "ask an administrator for the permission to read them in all namespaces, or name the manager's with --manager-namespace"})
	}
	for _, line := range failed {
		unread = append(unread, Finding{Result: Unknown, Subject: "the manager", Found: line, Fix: "try again"})
	}
	g.put(func(f *Facts) { f.Manager, f.Unread[manager] = m, unread })
}

func (g *gatherer) crds(ctx context.Context) {
	fetch.Each(slices.Collect(maps.Keys(g.ships.CRDs)), func(name string) {
		u, known := g.get(ctx, crds, "apiextensions.k8s.io", "CustomResourceDefinition", "", name)
		if !known {
			return
		}
		var crd *apiextensionsv1.CustomResourceDefinition
		if decoded := new(apiextensionsv1.CustomResourceDefinition); decode(u, decoded) {
			crd = decoded
		}
		g.put(func(f *Facts) { f.CRDs[name] = crd })
	})
}

// certificate reads the public part of the manager's own certificate.
func (g *gatherer) certificate(ctx context.Context) {
	namespace := g.facts.namespace()
	if namespace == "" {
		return
	}
	s := &corev1.Secret{}
	if u, _ := g.get(ctx, certificate, "", "Secret", namespace, certificateSecret); !decode(u, s) {
		return
	}
	public := &corev1.Secret{ObjectMeta: s.ObjectMeta, Data: map[string][]byte{}}
	for _, key := range []string{corev1.TLSCertKey, corev1.ServiceAccountRootCAKey} {
		public.Data[key] = s.Data[key]
	}
	g.put(func(f *Facts) { f.Certificate = public })
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
	everywhere, inside := g.granted(ctx, "ClusterRoleBinding", account), g.granted(ctx, "RoleBinding", account)
	g.put(func(f *Facts) { f.Granted = Granted{everywhere, inside} })
}

// granted are the rules that bindings of a kind grant to an account. Bindings and roles of both kinds have the same fields.
func (g *gatherer) granted(ctx context.Context, kind string, account rbacv1.Subject) []rbacv1.PolicyRule {
	bindings, _ := g.list(ctx, rights, rbacv1.GroupName, kind, "", metav1.ListOptions{})
	var rules []rbacv1.PolicyRule
	for i := range bindings {
		b := &rbacv1.RoleBinding{}
		if !decode(&bindings[i], b) || !concerns(b.Subjects, b.Namespace, account) {
			continue
		}
		namespace := b.Namespace
		if b.RoleRef.Kind == "ClusterRole" {
			namespace = ""
		}
		role := &rbacv1.ClusterRole{}
		if u, _ := g.get(ctx, rights, rbacv1.GroupName, b.RoleRef.Kind, namespace, b.RoleRef.Name); decode(u, role) {
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
