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

// registry returns a registry with an existing PostgreSQL database, after the changes.
func registry(namespace, name string, changes ...func(*v1beta1.ModelRegistry)) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Postgres = &v1beta1.PostgresConfig{
		Host: "db", Username: "u", Database: "d", PasswordSecret: &v1beta1.SecretKeyValue{Name: "db", Key: "password"},
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

// withGeneratedDatabase replaces the existing database with a generated one.
func withGeneratedDatabase(m *v1beta1.ModelRegistry) {
	m.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true)}
}

func password(namespace, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, StringData: map[string]string{"password": value, "other": "1"}}
}

// certificate returns the Secret that the certificate authority of the platform would write.
func certificate(m *v1beta1.ModelRegistry) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-kube-rbac-proxy"},
		StringData: map[string]string{"tls.crt": "c", "tls.key": "k"}}
}

// create creates objects, and deletes the registries among them at the end of the spec: only their finalizers delete objects of cluster
// scope.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
		if m, ok := object.(*v1beta1.ModelRegistry); ok {
			DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, m) }, NodeTimeout(specTimeout))
		}
	}
}

// createReady creates a registry with the foreign objects that it needs, and waits until it is available.
func createReady(ctx context.Context, m *v1beta1.ModelRegistry) *v1beta1.ModelRegistry {
	GinkgoHelper()
	if m.Spec.Postgres != nil && m.Spec.Postgres.PasswordSecret != nil {
		create(ctx, password(m.Namespace, "first"))
	}
	create(ctx, certificate(m), m)
	return waitAvailable(ctx, m)
}

// waitAvailable waits until a registry is available. It sets the status of the Route, because no router runs.
func waitAvailable(ctx context.Context, m *v1beta1.ModelRegistry) *v1beta1.ModelRegistry {
	GinkgoHelper()
	env.WaitFor(ctx, child(m, &appsv1.Deployment{}, ""), nil)
	if m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.ServiceRoute != v1beta1.RouteDisabled {
		admitRoute(ctx, m)
	}
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentAvailable")
	env.WaitForCondition(ctx, m, "Progressing", metav1.ConditionFalse, "CreatedDeployment")
	return m
}

// admitRoute writes the status of a registry's Route, like a router.
func admitRoute(ctx context.Context, m *v1beta1.ModelRegistry) {
	GinkgoHelper()
	route := framework.Unstructured(routeKind, m.Namespace, m.Name+"-https")
	env.WaitFor(ctx, route, nil)
	env.Patch(ctx, route, map[string]any{"status": map[string]any{"ingress": []any{map[string]any{
		"host": "h", "routerName": "default", "conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
	}}}}, "status")
}

// child returns an object with the name of the registry and a suffix.
func child[T client.Object](m *v1beta1.ModelRegistry, object T, suffix string) T {
	object.SetNamespace(m.Namespace)
	object.SetName(m.Name + suffix)
	return object
}

// ingress returns the configuration with the domain of the cluster.
func ingress() *unstructured.Unstructured { return framework.Unstructured(ingressKind, "", "cluster") }

func delegator(m *v1beta1.ModelRegistry) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-auth-delegator"}}
}

func group(m *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(groupKind, "", m.Name+"-users")
}

// children returns the namespaced objects of a registry with an existing database, on OpenShift without gateway mode.
func children(m *v1beta1.ModelRegistry) []client.Object {
	return []client.Object{
		child(m, &corev1.ServiceAccount{}, ""), child(m, &corev1.Service{}, ""), child(m, &appsv1.Deployment{}, ""),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "registry-user-" + m.Name}},
		child(m, &rbacv1.RoleBinding{}, "-users"), child(m, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"),
		child(m, &networkingv1.NetworkPolicy{}, "-https-route"), child(m, &networkingv1.NetworkPolicy{}, "-ingress"),
		framework.Unstructured(routeKind, m.Namespace, m.Name+"-https"),
	}
}

func containers(image string) []corev1.Container {
	return []corev1.Container{{Name: "main", Image: image}}
}
