package raycluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

type change func(*unstructured.Unstructured)

// rayCluster returns a RayCluster as the SDK creates it.
func rayCluster(namespace, name string, changes ...change) *unstructured.Unstructured {
	container := func(name string) []any {
		return []any{map[string]any{"name": name, "image": "registry.example.com/ray:2.47.1"}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"rayVersion": "2.47.1",
		"headGroupSpec": map[string]any{
			"rayStartParams": map[string]any{},
			"template":       map[string]any{"spec": map[string]any{"containers": container("ray-head")}},
		},
		"workerGroupSpecs": []any{map[string]any{
			"groupName": "small", "replicas": int64(1), "minReplicas": int64(1), "maxReplicas": int64(1), "rayStartParams": map[string]any{},
			"template": map[string]any{"spec": map[string]any{"containers": container("ray-worker")}},
		}},
	}}}
	u.SetGroupVersionKind(raycluster.GVK)
	u.SetNamespace(namespace)
	u.SetName(name)
	for _, c := range changes {
		c(u)
	}
	return u
}

// set sets a field.
func set(value any, path ...string) change {
	return func(u *unstructured.Unstructured) {
		Expect(unstructured.SetNestedField(u.Object, value, path...)).To(Succeed())
	}
}

// hashed adds the annotation that the webhook adds to new clusters.
func hashed(u *unstructured.Unstructured) {
	u.SetAnnotations(map[string]string{raycluster.AnnotationVersion: "1.0.0"})
}

// injected adds the fields of the head that the webhook injects and the controller reads.
func injected(u *unstructured.Unstructured) {
	spec := []string{"spec", "headGroupSpec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(u.Object, append(spec, "containers")...)
	Expect(err).NotTo(HaveOccurred())
	n := raycluster.View(u.Object).Names()
	containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "RAY_USE_TLS", "value": "1"}}
	containers = append(containers, map[string]any{
		"name": raycluster.ContainerOAuth, "image": "registry.example.com/proxy:1", "args": []any{"--openshift-service-account=" + n.ServiceAccount},
	})
	Expect(unstructured.SetNestedSlice(u.Object, containers, append(spec, "containers")...)).To(Succeed())
	Expect(unstructured.SetNestedSlice(u.Object, []any{
		map[string]any{"name": raycluster.VolumeCA, "secret": map[string]any{"secretName": n.CASecret}},
		map[string]any{"name": raycluster.VolumeServer, "secret": map[string]any{"secretName": n.HeadTLS}},
	}, append(spec, "volumes")...)).To(Succeed())
}

// create creates a RayCluster, and deletes it at the end of the spec.
func create(ctx context.Context, u *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Eventually(func() error { return env.Admin.Create(ctx, u) }).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, u))).To(Succeed())
		env.WaitDeleted(ctx, u)
	}, NodeTimeout(specTimeout))
	return u
}

// names returns the names of the children of a cluster.
func names(u *unstructured.Unstructured) raycluster.Names { return raycluster.View(u.Object).Names() }

func inNamespace(u *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: name}
}

func route(u *unstructured.Unstructured, name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.Route, u.GetNamespace(), name)
}

func binding(u *unstructured.Unstructured) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names(u).ClusterRoleBinding}}
}

func policy(u *unstructured.Unstructured, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: inNamespace(u, name)}
}

// proxyObjects returns the objects of the proxy that authenticates users, those of cluster scope last.
func proxyObjects(u *unstructured.Unstructured) []client.Object {
	n := names(u)
	return []client.Object{
		&corev1.Secret{ObjectMeta: inNamespace(u, n.CookieSecret)}, &corev1.Service{ObjectMeta: inNamespace(u, n.ProxyService)},
		&corev1.ServiceAccount{ObjectMeta: inNamespace(u, n.ServiceAccount)}, route(u, n.Dashboard), binding(u),
	}
}

// waitSecured waits until the NetworkPolicies of a cluster exist and nothing more is sent for its namespace.
func waitSecured(ctx context.Context, u *unstructured.Unstructured) {
	GinkgoHelper()
	n := names(u)
	env.WaitExists(ctx, policy(u, n.HeadPolicy), policy(u, n.WorkerPolicy))
	env.WaitNoRequests(ctx, env.RequestsIn(manager.User, u.GetNamespace()), quiet, waitTimeout)
}
