package modelregistry

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// A server is not created while its ServiceAccount, the ConfigMap of its proxy or a NetworkPolicy is a foreign object.
func TestForeignSecurityObjectsBlockTheServer(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "foreign"}
	}
	for name, foreign := range map[string]client.Object{
		"ServiceAccount ns/demo": &corev1.ServiceAccount{ObjectMeta: meta("demo")},
		"ConfigMap ns/demo-kube-rbac-proxy-config": &corev1.ConfigMap{ObjectMeta: meta("demo-kube-rbac-proxy-config"),
			Data: map[string]string{"config-file.yaml": "authorization:\n  static: [{path: /, verb: '*'}]\n"}},
		"NetworkPolicy ns/demo-egress":  &networkingv1.NetworkPolicy{ObjectMeta: meta("demo-egress")},
		"NetworkPolicy ns/demo-ingress": &networkingv1.NetworkPolicy{ObjectMeta: meta("demo-ingress")},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil, foreign)
			m := newRegistry("demo", registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { s.Rest.Image = "any:1" })
			env.requireWait(env.reconcile(m), "to be resolved")
			if env.get(&appsv1.Deployment{}, "ns", "demo") || env.get(&corev1.Service{}, "ns", "demo") {
				t.Errorf("the Deployment or the Service exists; wrote\n%s", env.takeWrites())
			}
			available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			if !strings.Contains(available.Message, name) || !strings.Contains(available.Message, "until then not written: Deployment ns/demo") {
				t.Errorf("message %q", available.Message)
			}
			env.requireWait(env.reconcile(m), "to be resolved")
			if progressing, _ := conditions.Get(m.Status.Conditions, ConditionProgressing); progressing.Reason == ReasonCreated {
				t.Errorf("condition Progressing says %q without a Deployment", progressing.Message)
			}
			env.requireNoError(env.server.Delete(t.Context(), foreign))
			env.requireWait(env.reconcile(m), "available")
			if !env.get(&appsv1.Deployment{}, "ns", "demo") {
				t.Error("the Deployment does not exist, although all guards were applied")
			}
		})
	}
}

// A foreign Route is reported and does not prevent the creation of the server.
func TestForeignRouteDoesNotBlockTheServer(t *testing.T) {
	foreign := &unstructured.Unstructured{}
	foreign.SetGroupVersionKind(capability.Route)
	foreign.SetNamespace("ns")
	foreign.SetName("demo-https")
	env := newTestEnv(t, optionalKinds, foreign)
	m := newRegistry("demo", registrytest.AddProxy)
	_ = env.reconcile(m)
	if !env.get(&appsv1.Deployment{}, "ns", "demo") || !env.get(&corev1.Service{}, "ns", "demo") {
		t.Errorf("the Deployment or the Service does not exist; wrote\n%s", env.takeWrites())
	}
	if available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); !strings.Contains(available.Message, "Route ns/demo-https exists") {
		t.Errorf("message %q", available.Message)
	}
}

// The ClusterRoleBinding of the catalog is not changed by a registry of the same name in its or another namespace, nor by the deletion of
// that registry.
func TestBindingOfTheCatalogIsNotAdopted(t *testing.T) {
	testBindingOfTheCatalogIsNotAdopted(t, newTestEnv)
}

func testBindingOfTheCatalogIsNotAdopted(t *testing.T, newEnv newEnvFunc) {
	for _, namespace := range []string{"catalogs", "ns"} {
		t.Run(namespace, func(t *testing.T) {
			labels := names.Labels(catalogComponent)
			labels[resources.LabelNamespace], labels[resources.LabelApp], labels[resources.LabelCreatedBy] = namespace, "model-catalog", resources.CreatedBy
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "model-catalog-auth-delegator", UID: "binding", Labels: labels,
					ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldOwner, Operation: metav1.ManagedFieldsOperationApply,
						APIVersion: "rbac.authorization.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:subjects":{}}`)}}},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "model-catalog"}},
			}
			env := newEnv(t, nil, binding)
			m := newRegistry("model-catalog", registrytest.AddProxy)
			env.requireWait(env.reconcile(m), "a valid spec") // the name is reserved
			d := &servers.Description{Name: m.Name, Namespace: m.Namespace, Labels: func(object string) map[string]string { return resources.Labels(m, object) }}
			if err := env.applyUnowned(t.Context(), m, d.ProxyObjects()[1:]); !apply.IsBlocked(err) {
				t.Errorf("got error %v, want one about the foreign ClusterRoleBinding", err)
			}
			for range 5 { // a deletion takes several reconciles
				_ = env.finalize(t.Context(), m)
			}
			got := &rbacv1.ClusterRoleBinding{}
			if !env.get(got, "", binding.Name) || got.Subjects[0].Namespace != namespace || got.Subjects[0].Name != "model-catalog" ||
				got.Labels[names.ComponentLabel] != catalogComponent {
				t.Errorf("the ClusterRoleBinding of the catalog was changed to %+v", got)
			}
		})
	}
}
