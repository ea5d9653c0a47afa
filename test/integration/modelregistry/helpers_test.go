package modelregistry_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var (
	routeKind   = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	ingressKind = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Ingress"}
	groupKind   = schema.GroupVersionKind{Group: "user.openshift.io", Version: "v1", Kind: "Group"}
	bindingKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// newRegistry returns a registry with an existing PostgreSQL database, and applies the changes to it.
func newRegistry(namespace, name string, changes ...func(*v1beta1.ModelRegistry)) *v1beta1.ModelRegistry {
	registry := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	registry.Spec.Postgres = &v1beta1.PostgresConfig{
		Host: "db", Username: "u", Database: "d", PasswordSecret: &v1beta1.SecretKeyValue{Name: "db", Key: "password"},
	}
	for _, change := range changes {
		change(registry)
	}
	return registry
}

// withGeneratedDatabase replaces the existing database with a generated one.
func withGeneratedDatabase(registry *v1beta1.ModelRegistry) {
	registry.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true)}
}

func passwordSecret(namespace, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, StringData: map[string]string{"password": value, "other": "1"}}
}

// proxyCertificate returns the Secret that the service CA of OpenShift would create.
func proxyCertificate(registry *v1beta1.ModelRegistry) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registry.Namespace, Name: registry.Name + "-kube-rbac-proxy"},
		StringData: map[string]string{"tls.crt": "c", "tls.key": "k"}}
}

// create creates objects, and deletes the registries among them after the spec, because only their finalizers delete cluster-scoped
// objects.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
		if registry, ok := object.(*v1beta1.ModelRegistry); ok {
			DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, registry) }, NodeTimeout(specTimeout))
		}
	}
}

// createReady creates a registry and the objects that it references, and waits until the registry is available.
func createReady(ctx context.Context, registry *v1beta1.ModelRegistry) *v1beta1.ModelRegistry {
	GinkgoHelper()
	if registry.Spec.Postgres != nil && registry.Spec.Postgres.PasswordSecret != nil {
		create(ctx, passwordSecret(registry.Namespace, "first"))
	}
	create(ctx, proxyCertificate(registry), registry)
	return waitAvailable(ctx, registry)
}

// waitAvailable waits until a registry is available. It sets the status of the Route, because no router runs.
func waitAvailable(ctx context.Context, registry *v1beta1.ModelRegistry) *v1beta1.ModelRegistry {
	GinkgoHelper()
	env.WaitFor(ctx, child(registry, &appsv1.Deployment{}, ""), nil)
	if registry.Spec.KubeRBACProxy == nil || registry.Spec.KubeRBACProxy.ServiceRoute != v1beta1.RouteDisabled {
		admitRoute(ctx, registry)
	}
	env.WaitForCondition(ctx, registry, "Available", metav1.ConditionTrue, "DeploymentAvailable")
	env.WaitForCondition(ctx, registry, "Progressing", metav1.ConditionFalse, "CreatedDeployment")
	return registry
}

// admitRoute sets the status of a registry's Route, as a router does.
func admitRoute(ctx context.Context, registry *v1beta1.ModelRegistry) {
	GinkgoHelper()
	route := framework.Unstructured(routeKind, registry.Namespace, registry.Name+"-https")
	env.WaitFor(ctx, route, nil)
	env.Patch(ctx, route, map[string]any{"status": map[string]any{"ingress": []any{map[string]any{
		"host": "h", "routerName": "default", "conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
	}}}}, "status")
}

// child sets the name of an object to that of the registry with a suffix, and returns the object.
func child[T client.Object](registry *v1beta1.ModelRegistry, object T, suffix string) T {
	object.SetNamespace(registry.Namespace)
	object.SetName(registry.Name + suffix)
	return object
}

// clusterIngress returns the Ingress configuration of the cluster, which contains its domain.
func clusterIngress() *unstructured.Unstructured {
	return framework.Unstructured(ingressKind, "", "cluster")
}

func authDelegatorBinding(registry *v1beta1.ModelRegistry) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: registry.Name + "-auth-delegator"}}
}

func usersGroup(registry *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(groupKind, "", registry.Name+"-users")
}

// children returns the namespaced objects of a registry with an existing database on OpenShift without gateway mode, except the egress
// policy.
func children(registry *v1beta1.ModelRegistry) []client.Object {
	return []client.Object{
		child(registry, &corev1.ServiceAccount{}, ""), child(registry, &corev1.Service{}, ""), child(registry, &appsv1.Deployment{}, ""),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: registry.Namespace, Name: "registry-user-" + registry.Name}},
		child(registry, &rbacv1.RoleBinding{}, "-users"), child(registry, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"),
		child(registry, &networkingv1.NetworkPolicy{}, "-https-route"), child(registry, &networkingv1.NetworkPolicy{}, "-ingress"),
		framework.Unstructured(routeKind, registry.Namespace, registry.Name+"-https"),
	}
}

func containers(image string) []corev1.Container {
	return []corev1.Container{{Name: "main", Image: image}}
}
