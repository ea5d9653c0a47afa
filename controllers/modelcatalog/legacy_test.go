package modelcatalog

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func platformOwner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "components.platform.opendatahub.io/v1alpha1", Kind: "ModelRegistry", Name: "default-modelregistry", UID: "platform"}
}

func deploymentOwner(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: uid}
}

// legacyDeployment returns a Deployment of the legacy operator with its selector.
func legacyDeployment(name string, labels map[string]string, refs ...metav1.OwnerReference) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
	d.UID, d.OwnerReferences = types.UID("old-"+name), refs
	d.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	return d
}

// [modelregistry-77] Objects of all earlier releases are adopted: their owner references are replaced, legacy annotations are removed, and
// no object gets another name.
func TestAdoptionReplacesLegacyOwnerReferences(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}
	account.OwnerReferences = []metav1.OwnerReference{platformOwner()}
	account.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "y"}
	controlled := &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}
	controlled.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.DatabaseName, "d")}
	controlled.OwnerReferences[0].Controller = new(true)
	reader := &rbacv1.Role{ObjectMeta: nameMeta(resources.Name)}
	reader.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "d")}
	b := newTestEnv(t, sample(), account, controlled, reader, legacyDeployment(resources.Name, resources.Selector(resources.Name), platformOwner()))
	b.reconcileUntilStable()
	for _, o := range []client.Object{account, controlled, reader, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}} {
		must(b, o)
		refs := o.GetOwnerReferences()
		if len(refs) != 1 || !metav1.IsControlledBy(o, sample()) {
			t.Errorf("%T has owner references %v, want the Catalog only", o, refs)
		}
		if _, left := o.GetAnnotations()[servers.LegacyCopyAnnotation]; left {
			t.Errorf("%T still has the annotation of the legacy operator: %v", o, o.GetAnnotations())
		}
	}
	if account.Annotations["theirs"] != "y" {
		t.Error("[D5] the annotation of a user was removed")
	}
	for _, o := range []client.Object{&appsv1.Deployment{ObjectMeta: nameMeta("catalog")}, &corev1.ServiceAccount{ObjectMeta: nameMeta("catalog")}} {
		if b.get(o) {
			t.Errorf("%T was created under the name of the Catalog", o)
		}
	}
}

// A Deployment with another selector is recreated once, after its dependents have lost their owner references to it.
func TestDeploymentWithOtherSelectorIsRecreatedOnce(t *testing.T) {
	service := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	service.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "old-"+resources.Name)}
	server := legacyDeployment(resources.Name, map[string]string{"component": resources.Name})
	database := legacyDeployment(resources.DatabaseName, resources.Selector(resources.DatabaseName))
	database.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{} // the API server rejects it with the strategy Recreate
	b := newTestEnv(t, sample(), service, server, database)
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	orphaned, deleted := -1, -1
	for i, w := range b.writes {
		if strings.HasSuffix(w, "/"+resources.Name) && strings.HasPrefix(w, "apply") && orphaned < 0 {
			orphaned = i
		}
		if w == "delete Deployment/"+resources.Name {
			deleted = i
		}
	}
	if orphaned < 0 || deleted < orphaned || len(must(b, service).OwnerReferences) != 1 {
		t.Errorf("the Service lost its owner reference at write %d, the Deployment was deleted at write %d; want this order: %v", orphaned, deleted, b.writes)
	}
	b.reconcileUntilStable()
	for _, name := range []string{resources.Name, resources.DatabaseName} {
		d := must(b, &appsv1.Deployment{ObjectMeta: nameMeta(name)})
		if strings.HasPrefix(string(d.UID), "old-") || d.Spec.Selector.MatchLabels[resources.LabelName] != name {
			t.Errorf("%s: want a new Deployment with the current selector, got UID %s and %v", name, d.UID, d.Spec.Selector)
		}
	}
	b.restart()
	b.writes = nil
	if _, err := b.reconcile(); err != nil || strings.Contains(strings.Join(b.writes, " "), "delete") {
		t.Errorf("a reconcile after a restart deleted objects: writes %v, error %v", b.writes, err)
	}
}

// [modelregistry-88] [modelregistry-89] [D24] Legacy objects are deleted if their labels identify the legacy operator.
func TestLegacyObjectsAreDeletedIfLabelled(t *testing.T) {
	all := func() []client.Object {
		return []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.ConfigMap{ObjectMeta: nameMeta(legacyDefaultSources)}, &corev1.Secret{ObjectMeta: nameMeta(legacyCookieSecret)},
		}
	}
	b := newTestEnv(t, append(all(), sample())...)
	b.reconcileUntilStable()
	for _, o := range all() {
		must(b, o) // no labels of an operator
		b.update(o, func() { withComponentLabels(o, resources.Name) })
	}
	b.restart()
	b.reconcileUntilStable()
	for _, o := range all() {
		if b.get(o) {
			t.Errorf("%T %s was not deleted", o, o.GetName())
		}
	}
	must(b, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)})
}

// An object with a foreign controller is not changed; the condition names it.
func TestForeignServiceIsReportedAndKept(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	foreign.OwnerReferences = []metav1.OwnerReference{{APIVersion: "modelregistry.opendatahub.io/v1beta1", Kind: "ModelRegistry", Name: resources.Name, UID: "mr", Controller: new(true)}}
	b := newTestEnv(t, sample(), foreign)
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got %+v, error %v, want a requeue after one minute", result, err)
	}
	got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "belongs to ModelRegistry model-catalog") {
		t.Errorf("condition %+v, want False with the owner of the Service", got)
	}
	if len(must(b, foreign).OwnerReferences) != 1 || len(foreign.Labels) > 0 {
		t.Error("the foreign object was changed")
	}
}

// [D25] HTTPRoutes are deleted when gateway mode ends or their namespace changes; foreign ones are kept.
func TestManagedHTTPRoutesInOtherNamespacesAreDeleted(t *testing.T) {
	b := newTestEnv(t, sample())
	b.served = capability.NewSet(capability.HTTPRoute)
	route := func(namespace, of string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(capability.HTTPRoute)
		u.SetNamespace(namespace)
		u.SetName(resources.Name)
		u.SetLabels(map[string]string{resources.LabelNamespace: of, names.OperatorLabel: names.OperatorName, names.ComponentLabel: ComponentName})
		return u
	}
	b.create(route("old-routes", "lab-registries"))
	b.create(route("others", "another"))
	b.reconcileUntilStable()
	if b.get(route("old-routes", "")) || !b.get(route("others", "")) {
		t.Errorf("managed HTTPRoute exists: %v, want false; foreign HTTPRoute exists: %v, want true", b.get(route("old-routes", "")), b.get(route("others", "")))
	}
}

func TestIsLegacyOwner(t *testing.T) {
	for name, c := range map[string]struct {
		ref  metav1.OwnerReference
		want bool
	}{
		"ModelRegistry of the platform": {platformOwner(), true},
		"Deployment of the server":      {deploymentOwner(resources.Name, "x"), true},
		"Deployment of the database":    {deploymentOwner(resources.DatabaseName, "x"), true},
		"another Deployment":            {deploymentOwner("other", "x"), false},
		"ModelRegistry of a user":       {metav1.OwnerReference{Kind: "ModelRegistry", Name: "demo"}, false},
		"ConfigMap of the same name":    {metav1.OwnerReference{Kind: "ConfigMap", Name: resources.Name}, false},
	} {
		if isLegacyOwner(c.ref) != c.want {
			t.Errorf("%s: isLegacyOwner returned %v", name, !c.want)
		}
	}
}

// [modelregistry-98] A missing object or field and a field of another type name no groups.
func TestAdminGroups(t *testing.T) {
	auth := func(groups any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": groups}}}
	}
	for name, c := range map[string]struct {
		auth *unstructured.Unstructured
		want string
	}{
		"two groups":               {auth([]any{"a", "", "b"}), "a,b"},
		"missing object":           {nil, ""},
		"missing field":            {&unstructured.Unstructured{Object: map[string]any{}}, ""},
		"string instead of a list": {auth("a"), ""},
		"number in the list":       {auth([]any{"a", int64(1)}), ""},
	} {
		if got := strings.Join(adminGroups(c.auth), ","); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
