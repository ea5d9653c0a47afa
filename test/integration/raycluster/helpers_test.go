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

// newRayCluster returns a RayCluster like those of the CodeFlare SDK.
func newRayCluster(namespace, name string, changes ...change) *unstructured.Unstructured {
	container := func(name string) []any {
		return []any{map[string]any{"name": name, "image": "registry.example.com/ray:2.47.1"}}
	}
	rayCluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
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
	rayCluster.SetGroupVersionKind(raycluster.GVK)
	rayCluster.SetNamespace(namespace)
	rayCluster.SetName(name)
	for _, c := range changes {
		c(rayCluster)
	}
	return rayCluster
}

// setField returns a change that sets a field.
func setField(value any, path ...string) change {
	return func(rayCluster *unstructured.Unstructured) {
		Expect(unstructured.SetNestedField(rayCluster.Object, value, path...)).To(Succeed())
	}
}

// withVersion sets the version annotation as the only annotation, which the webhook adds to new clusters.
func withVersion(rayCluster *unstructured.Unstructured) {
	rayCluster.SetAnnotations(map[string]string{raycluster.AnnotationVersion: "1.0.0"})
}

// withInjectedFields adds the fields that the webhook injects into the head and the controller reads.
func withInjectedFields(rayCluster *unstructured.Unstructured) {
	spec := []string{"spec", "headGroupSpec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(rayCluster.Object, append(spec, "containers")...)
	Expect(err).NotTo(HaveOccurred())
	n := raycluster.View(rayCluster.Object).Names()
	containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "RAY_USE_TLS", "value": "1"}}
	containers = append(containers, map[string]any{
		"name": raycluster.ContainerOAuth, "image": "registry.example.com/proxy:1", "args": []any{"--openshift-service-account=" + n.ServiceAccount},
	})
	Expect(unstructured.SetNestedSlice(rayCluster.Object, containers, append(spec, "containers")...)).To(Succeed())
	Expect(unstructured.SetNestedSlice(rayCluster.Object, []any{
		map[string]any{"name": raycluster.VolumeCA, "secret": map[string]any{"secretName": n.CASecret}},
		map[string]any{"name": raycluster.VolumeServer, "secret": map[string]any{"secretName": n.HeadTLS}},
	}, append(spec, "volumes")...)).To(Succeed())
}

// create creates a RayCluster, and deletes it after the spec.
func create(ctx context.Context, rayCluster *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Eventually(func() error { return env.Admin.Create(ctx, rayCluster) }).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, rayCluster))).To(Succeed())
		env.WaitDeleted(ctx, rayCluster)
	}, NodeTimeout(specTimeout))
	return rayCluster
}

// namesOf returns the names of the child objects of a cluster.
func namesOf(rayCluster *unstructured.Unstructured) raycluster.Names {
	return raycluster.View(rayCluster.Object).Names()
}

func objectMeta(rayCluster *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: name}
}

func routeOf(rayCluster *unstructured.Unstructured, name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.Route, rayCluster.GetNamespace(), name)
}

func bindingOf(rayCluster *unstructured.Unstructured) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namesOf(rayCluster).ClusterRoleBinding}}
}

func policyOf(rayCluster *unstructured.Unstructured, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: objectMeta(rayCluster, name)}
}

// proxyObjects returns the objects of the proxy that authenticates users. The cluster-scoped one is last.
func proxyObjects(rayCluster *unstructured.Unstructured) []client.Object {
	n := namesOf(rayCluster)
	return []client.Object{
		&corev1.Secret{ObjectMeta: objectMeta(rayCluster, n.CookieSecret)}, &corev1.Service{ObjectMeta: objectMeta(rayCluster, n.ProxyService)},
		&corev1.ServiceAccount{ObjectMeta: objectMeta(rayCluster, n.ServiceAccount)}, routeOf(rayCluster, n.Dashboard), bindingOf(rayCluster),
	}
}

// waitSecured waits until the NetworkPolicies of a cluster exist and the manager sends no more requests for its namespace.
func waitSecured(ctx context.Context, rayCluster *unstructured.Unstructured) {
	GinkgoHelper()
	n := namesOf(rayCluster)
	env.WaitExists(ctx, policyOf(rayCluster, n.HeadPolicy), policyOf(rayCluster, n.WorkerPolicy))
	env.WaitNoRequests(ctx, env.RequestsIn(manager.User, rayCluster.GetNamespace()), idlePeriod, waitTimeout)
}
