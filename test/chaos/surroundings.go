package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// surroundings returns faults of the dependencies of the manager.
func surroundings() []scenario {
	return []scenario{
		{name: "rights-revoked", run: (*campaign).revokePermissions},
		{name: "quota-exhausted", run: (*campaign).exhaustQuota},
		{name: "finalizer", run: (*campaign).addForeignFinalizers},
		{name: "disruption-budget", run: (*campaign).addDisruptionBudgets},
		{name: "aggregated-api-down", run: (*campaign).addUnavailableAPI},
		{name: "namespace-deleted", run: (*campaign).deleteNamespaces},
	}
}

// revokePermissions removes the subjects of every binding of the manager's ServiceAccount, and restores them.
func (c *campaign) revokePermissions(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "rights-revoked", fault: "all bindings of the manager have no subjects for 10 s", injections: []string{"RBACRevoke"},
		duration: stormTime, bound: slow,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			cluster, namespaced := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
			if err := errors.Join(c.admin.List(ctx, cluster), c.admin.List(ctx, namespaced)); err != nil {
				return nil, fmt.Errorf("listing bindings: %w", err)
			}
			var bindings []client.Object
			for i := range cluster.Items {
				if c.includesManager(cluster.Items[i].Subjects) {
					bindings = append(bindings, &cluster.Items[i])
				}
			}
			for i := range namespaced.Items {
				if c.includesManager(namespaced.Items[i].Subjects) {
					bindings = append(bindings, &namespaced.Items[i])
				}
			}
			end := func(ctx context.Context) error {
				var errs []error
				for _, b := range bindings {
					b.SetResourceVersion("")
					errs = append(errs, c.admin.Update(ctx, b))
				}
				return errors.Join(errs...)
			}
			empty := client.RawPatch("application/merge-patch+json", []byte(`{"subjects":null}`))
			for _, b := range bindings {
				if err := c.admin.Patch(ctx, b.DeepCopyObject().(client.Object), empty); err != nil {
					return end, fmt.Errorf("emptying a binding: %w", err)
				}
			}
			return end, nil
		}})
}

// includesManager reports whether the subjects contain the ServiceAccount of the manager.
func (c *campaign) includesManager(subjects []rbacv1.Subject) bool {
	account := c.installed.ServiceAccount
	return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
}

// exhaustQuota adds quotas that allow no further Services, ConfigMaps, Secrets, Deployments or NetworkPolicies.
func (c *campaign) exhaustQuota(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "quota-exhausted", fault: "a quota refuses every Service, ConfigMap, Secret, Deployment and NetworkPolicy for 10 s", injections: []string{"QuotaExhaustion"},
		duration: stormTime, bound: slow,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			none := resource.MustParse("0")
			var quotas []*corev1.ResourceQuota
			for _, namespace := range c.namespaces() {
				quotas = append(quotas, &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chaos"},
					Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
						"services": none, "configmaps": none, "secrets": none, "count/deployments.apps": none, "count/networkpolicies.networking.k8s.io": none,
					}},
				})
			}
			end := func(ctx context.Context) error {
				var errs []error
				for _, q := range quotas {
					errs = append(errs, client.IgnoreNotFound(c.admin.Delete(ctx, q)))
				}
				return errors.Join(errs...)
			}
			for _, q := range quotas {
				if err := c.admin.Create(ctx, q); err != nil {
					return end, fmt.Errorf("creating a quota: %w", err)
				}
			}
			return end, nil
		}})
}

// addForeignFinalizers adds a finalizer to a child of each custom resource, and deletes the child.
func (c *campaign) addForeignFinalizers(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "finalizer", fault: "a foreign finalizer keeps deleted children for 10 s", injections: []string{"FinalizerBlock"},
		duration: stormTime, bound: restarted, keepChildren: true,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			var blocked []id
			for _, f := range c.fixtures {
				for _, key := range c.children {
					if c.fixtureOf(key) == f && slices.Contains(replaceable, key.Kind) {
						blocked = append(blocked, key)
						break
					}
				}
			}
			set := func(ctx context.Context, key id, finalizers string) error {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
				return client.IgnoreNotFound(c.admin.Patch(ctx, key.object(), patch))
			}
			end := func(ctx context.Context) error {
				var errs []error
				for _, key := range blocked {
					errs = append(errs, set(ctx, key, "null"))
				}
				return errors.Join(errs...)
			}
			for _, key := range blocked {
				if err := errors.Join(set(ctx, key, `["chaos.example.com/hold"]`), c.admin.Delete(ctx, key.object())); err != nil {
					return end, fmt.Errorf("adding a finalizer to %s: %w", key, err)
				}
			}
			return end, nil
		}})
}

// addDisruptionBudgets adds PodDisruptionBudgets that allow no eviction.
func (c *campaign) addDisruptionBudgets(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "disruption-budget", fault: "a PodDisruptionBudget lets no pod be evicted", injections: []string{"PDBBlock"},
		duration: downTime, bound: restarted,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			var budgets []*policyv1.PodDisruptionBudget
			end := func(ctx context.Context) error {
				var errs []error
				for _, b := range budgets {
					errs = append(errs, c.admin.Delete(ctx, b))
				}
				return errors.Join(errs...)
			}
			for _, namespace := range c.namespaces() {
				b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "chaos"}}
				b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{}, new(intstr.FromInt32(0))
				if err := c.admin.Create(ctx, b); err != nil {
					return end, fmt.Errorf("creating a PodDisruptionBudget: %w", err)
				}
				budgets = append(budgets, b)
			}
			return end, nil
		}})
}

// addUnavailableAPI adds an unavailable aggregated API, and restarts the manager, whose discovery includes this API.
func (c *campaign) addUnavailableAPI(ctx context.Context) error {
	apiService := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "down.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": operatorNamespace, "name": "nothing-there", "port": int64(443)},
	}}}
	apiService.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	apiService.SetName("v1.down.example.com")
	return c.disturb(ctx, disturbance{name: "aggregated-api-down", fault: "an aggregated API does not answer while the manager starts",
		duration: downTime, bound: restarted, remark: "the API is still down while children are repaired",
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			if err := c.admin.Create(ctx, apiService); err != nil {
				return nil, fmt.Errorf("adding an API: %w", err)
			}
			end := func(ctx context.Context) error { return c.admin.Delete(ctx, apiService) }
			if err := c.manager.Restart(ctx); err != nil {
				return end, err
			}
			if err := c.deleteChildren(ctx); err != nil {
				return end, err
			}
			return end, c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.firstDeviations(ctx) })
		}})
}

// restartAPIServer stops the API server, compacts etcd and starts the API server, which then serves no earlier resourceVersion.
func (c *campaign) restartAPIServer(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "api-server-restart", fault: "the API server is down, and older revisions are compacted: watches end with 410 Gone",
		injections: []string{"NetworkPartition"}, bound: slow, keepChildren: true,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			if err := c.deleteChildren(ctx); err != nil {
				return nil, err
			}
			// kwok, which is not under test, does not list again after a compaction, so it is restarted. The manager exits if it is denied
			// access before the API server has read the roles, and is then restarted as by the kubelet.
			return c.restart, errors.Join(c.instance.Halt(ctx, cluster.APIServer), compact(ctx, c.instance.Process(cluster.Etcd).Port),
				c.instance.Resume(ctx, cluster.APIServer), c.instance.Halt(ctx, cluster.Kwok), c.instance.Resume(ctx, cluster.Kwok))
		}})
}

// deleteNamespaces deletes the namespaces of the custom resources except operatorNamespace, and recreates everything as a user.
func (c *campaign) deleteNamespaces(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "namespace-deleted", fault: "namespaces are deleted with everything in them, and created again by a user",
		injections: []string{"NamespaceDeletion"}, bound: waitTimeout, keepChildren: true, remark: "the time until everything is created again",
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			for _, f := range c.fixtures {
				if f.fixedNamespace == operatorNamespace {
					continue
				}
				if err := c.deleteNamespacesAndWait(ctx, f.namespace); err != nil {
					return nil, err
				}
				maps.DeleteFunc(c.claimUIDs, func(name, _ string) bool { return isInNamespace(name, f.namespace) })
			}
			return func(ctx context.Context) error {
				for _, f := range c.fixtures {
					if err := f.createAll(ctx, c.testCluster); err != nil {
						return err
					}
				}
				return nil
			}, nil
		}})
}
