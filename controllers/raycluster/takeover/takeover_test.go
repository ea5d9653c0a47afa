package takeover

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// [R8] [R28] The first reconcile deletes undesired objects of the CodeFlare operator, and keeps desired ones.
func TestDeleteLegacyObjects(t *testing.T) {
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	cluster.SetGroupVersionKind(raycluster.GVK)
	cluster.SetNamespace("team1")
	cluster.SetName("demo")
	cluster.SetUID("cluster")
	objectMeta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team1", Name: name, Labels: map[string]string{raycluster.LabelClusterName: "demo"}, UID: "uid",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: cluster.GetUID(), Controller: new(true)}}}
	}
	foreign := objectMeta("foreign")
	foreign.OwnerReferences = nil
	binding := func(name, namespace string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Labels: map[string]string{
			raycluster.LabelClusterName: "demo", raycluster.LabelClusterNamespace: namespace}}}
	}
	current := raycluster.View(cluster.Object).Names().ClusterRoleBinding
	c := fake.NewClientBuilder().WithScheme(fakeapi.Scheme()).WithObjects(
		&corev1.Service{ObjectMeta: objectMeta("demo-oauth")}, &corev1.Service{ObjectMeta: objectMeta("demo-oauth-7a6da8e2")},
		&networkingv1.NetworkPolicy{ObjectMeta: objectMeta("demo-head")}, &corev1.Secret{ObjectMeta: foreign},
		binding("demo-team1-legacy", "team1"), binding(current, "team1"), binding("demo-team2-legacy", "team2"),
	).Build()
	kinds := func() []schema.GroupVersionKind {
		return []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Secret"),
			networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		}
	}
	cleaner := &objectCleaner{apiReader: c, kinds: kinds, applier: apply.New(apply.Options{Client: c, Live: c, FieldOwner: "raycluster", Component: "raycluster"})}
	desired := apply.Desired{{Config: corev1ac.Service("demo-oauth-7a6da8e2", "team1")}}
	for range 2 { // the second call finds no legacy objects
		if err := cleaner.Prune(t.Context(), cluster, desired); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		object client.Object
		name   string
		want   bool
	}{
		{&corev1.Service{}, "team1/demo-oauth", false},
		{&corev1.Service{}, "team1/demo-oauth-7a6da8e2", true},
		{&networkingv1.NetworkPolicy{}, "team1/demo-head", false},
		{&corev1.Secret{}, "team1/foreign", true},
		{&rbacv1.ClusterRoleBinding{}, "/demo-team1-legacy", false},
		{&rbacv1.ClusterRoleBinding{}, "/" + current, true},
		{&rbacv1.ClusterRoleBinding{}, "/demo-team2-legacy", true},
	} {
		namespace, name, _ := strings.Cut(tc.name, "/")
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, tc.object)
		if client.IgnoreNotFound(err) != nil || (err == nil) != tc.want {
			t.Errorf("%T %s exists: %t, want %t: %v", tc.object, name, err == nil, tc.want, err)
		}
	}
}
