package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
)

// originals looks for the Deployments and the Leases of former operators, wherever they are.
func (g *gatherer) originals(ctx context.Context) {
	fetch.Each(originals, func(o Original) {
		named := func(name string) metav1.ListOptions {
			return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		}
		found := map[string]*Running{}
		for _, u := range g.list(ctx, topicOriginals, "apps", "Deployment", "", named(o.Deployment)) {
			wanted, has, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
			if !has {
				wanted = 1
			}
			found[u.GetNamespace()] = &Running{Original: o, Namespace: u.GetNamespace(), Present: true, Replicas: int32(wanted)}
		}
		if o.Lease != "" {
			for _, u := range g.list(ctx, topicOriginals, "coordination.k8s.io", "Lease", "", named(o.Lease)) {
				if holder := g.holder(&u); holder != "" {
					r := found[u.GetNamespace()]
					if r == nil {
						r = &Running{Original: o, Namespace: u.GetNamespace()}
						found[u.GetNamespace()] = r
					}
					r.Leads, r.Holder = true, holder
				}
			}
		}
		g.put(func(f *Facts) {
			for _, r := range found {
				f.Originals = append(f.Originals, *r)
			}
		})
	})
}

// holder of a Lease that is in force; "" of one that is over.
func (g *gatherer) holder(u *unstructured.Unstructured) string {
	l := &coordinationv1.Lease{}
	if !decode(u, l) || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	if g.facts.Now.After(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)) {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// userRoles looks for the ClusterRoles that users are given.
func (g *gatherer) userRoles(ctx context.Context) {
	fetch.Each(g.ships.UserRoles, func(r ShippedRole) {
		there := g.get(ctx, topicUserRoles, rbacv1.GroupName, "ClusterRole", "", r.Name) != nil
		g.put(func(f *Facts) { f.UserRoles[r.Name] = there })
	})
}

const rbacGroup = rbacv1.GroupName

// rights gathers what the manager's account may do: by bindings of the cluster, and by those of the namespaces that matter to it.
func (g *gatherer) rights(ctx context.Context) {
	d := g.facts.Manager.Deployment
	if d == nil {
		return
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: d.Namespace, Name: d.Spec.Template.Spec.ServiceAccountName}
	if account.Name == "" {
		account.Name = "default"
	}
	var everywhere []rbacv1.RoleRef
	for _, u := range g.list(ctx, topicRights, rbacGroup, "ClusterRoleBinding", "", metav1.ListOptions{}) {
		b := &rbacv1.ClusterRoleBinding{}
		if decode(&u, b) && concerns(b.Subjects, "", account) {
			everywhere = append(everywhere, b.RoleRef)
		}
	}
	granted := Granted{Everywhere: g.rules(ctx, "", everywhere), Inside: map[string][]rbacv1.PolicyRule{}}
	for _, namespace := range g.namespacesOfRights() {
		var refs []rbacv1.RoleRef
		for _, u := range g.list(ctx, topicRights, rbacGroup, "RoleBinding", namespace, metav1.ListOptions{}) {
			b := &rbacv1.RoleBinding{}
			if decode(&u, b) && concerns(b.Subjects, namespace, account) {
				refs = append(refs, b.RoleRef)
			}
		}
		granted.Inside[namespace] = g.rules(ctx, namespace, refs)
	}
	g.put(func(f *Facts) { f.Granted = granted })
}

// namespacesOfRights are the manager's own and those that its settings name.
func (g *gatherer) namespacesOfRights() []string {
	all := []string{g.facts.namespace()}
	if s := g.facts.Manager.Settings; s.Known {
		all = append(all, s.Config.Namespace, s.Config.ModelRegistry.Namespace, s.Config.LeaderElection.Namespace)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n string) bool { return n == "" })
}

// concerns tells whether an account is among the subjects of a binding, by itself or by a group that every account of its namespace
// is in.
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

// rules are those of the roles that bindings name.
func (g *gatherer) rules(ctx context.Context, namespace string, refs []rbacv1.RoleRef) []rbacv1.PolicyRule {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(a, b rbacv1.RoleRef) int { return cmp.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	var all []rbacv1.PolicyRule
	for _, ref := range slices.Compact(refs) {
		place := namespace
		if ref.Kind == "ClusterRole" {
			place = ""
		}
		role := &rbacv1.ClusterRole{}
		if decode(g.get(ctx, topicRights, rbacGroup, ref.Kind, place, ref.Name), role) {
			all = append(all, role.Rules...)
		}
	}
	return all
}
