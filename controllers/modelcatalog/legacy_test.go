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

// legacyDeployment returns a Deployment as the legacy operator wrote it, with labels as selector.
func legacyDeployment(name string, labels map[string]string, refs ...metav1.OwnerReference) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
	d.UID, d.OwnerReferences = types.UID("old-"+name), refs
	d.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	return d
}

// [modelregistry-77] Objects of the legacy operator are adopted: their owner references are replaced, legacy annotations are removed, and
// no object gets another name.
func TestAdoptionReplacesLegacyOwnerReferences(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}
	account.OwnerReferences = []metav1.OwnerReference{platformOwner()}
	account.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "y"}
	databaseService := &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}
	databaseService.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.DatabaseName, "d")}
	databaseService.OwnerReferences[0].Controller = new(true)
	role := &rbacv1.Role{ObjectMeta: nameMeta(resources.Name)}
	role.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "d")}
	env := newTestEnv(t, newCatalog(), account, databaseService, role, legacyDeployment(resources.Name, resources.Selector(resources.Name), platformOwner()))
	env.reconcileUntilStable()
	for _, o := range []client.Object{account, databaseService, role, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}} {
		mustGet(env, o)
		refs := o.GetOwnerReferences()
		if len(refs) != 1 || !metav1.IsControlledBy(o, newCatalog()) {
			t.Errorf("%T has owner references %v, want the Catalog only", o, refs)
		}
		if _, found := o.GetAnnotations()[servers.LegacyCopyAnnotation]; found {
			t.Errorf("%T still has the annotation of the legacy operator: %v", o, o.GetAnnotations())
		}
	}
	if account.Annotations["theirs"] != "y" {
		t.Error("[D5] the annotation of a user was removed")
	}
	for _, o := range []client.Object{&appsv1.Deployment{ObjectMeta: nameMeta("catalog")}, &corev1.ServiceAccount{ObjectMeta: nameMeta("catalog")}} {
		if env.get(o) {
			t.Errorf("%T was created under the name of the Catalog", o)
		}
	}
}

// A Deployment with another selector, and the database Deployment with another strategy, are recreated once. Before that, the owner
// reference of the Service to its Deployment is removed.
func TestDeploymentWithOtherSelectorIsRecreatedOnce(t *testing.T) {
	service := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	service.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "old-"+resources.Name)}
	server := legacyDeployment(resources.Name, map[string]string{"component": resources.Name})
	database := legacyDeployment(resources.DatabaseName, resources.Selector(resources.DatabaseName))
	database.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{} // invalid with the strategy Recreate
	env := newTestEnv(t, newCatalog(), service, server, database)
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	orphanWrite, deleteWrite := -1, -1
	for i, w := range env.writes {
		if w == "apply Service/"+resources.Name && orphanWrite < 0 {
			orphanWrite = i
		}
		if w == "delete Deployment/"+resources.Name {
			deleteWrite = i
		}
	}
	if orphanWrite < 0 || deleteWrite < orphanWrite || !metav1.IsControlledBy(mustGet(env, service), newCatalog()) || len(service.OwnerReferences) != 1 {
		t.Errorf("the Service lost its owner reference at write %d, the Deployment was deleted at write %d; want this order: %v", orphanWrite, deleteWrite, env.writes)
	}
	env.reconcileUntilStable()
	for _, name := range []string{resources.Name, resources.DatabaseName} {
		d := mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(name)})
		if strings.HasPrefix(string(d.UID), "old-") || d.Spec.Selector.MatchLabels[resources.LabelName] != name {
			t.Errorf("%s: want a new Deployment with the current selector, got UID %s and %v", name, d.UID, d.Spec.Selector)
		}
	}
	env.restart()
	env.writes = nil
	if _, err := env.reconcile(); err != nil || strings.Contains(strings.Join(env.writes, " "), "delete") {
		t.Errorf("a reconcile after a restart deleted objects: writes %v, error %v", env.writes, err)
	}
}

// A foreign Deployment is kept, and the condition names it.
func TestForeignDeploymentIsReportedAndKept(t *testing.T) {
	foreignCatalogReference := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Catalog", Name: "catalog", UID: "other", Controller: new(true)}
	for name, change := range map[string]func(*appsv1.Deployment){
		"without labels":                    func(*appsv1.Deployment) {},
		"of a Catalog in another API group": func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{foreignCatalogReference} },
		"of another component":              func(d *appsv1.Deployment) { d.Labels = names.Labels("mlflow") },
	} {
		t.Run(name, func(t *testing.T) {
			foreign := legacyDeployment(resources.DatabaseName, map[string]string{"app": "theirs"})
			foreign.Annotations, foreign.Spec.Strategy.RollingUpdate = nil, &appsv1.RollingUpdateDeployment{}
			change(foreign)
			env := newTestEnv(t, newCatalog(), foreign)
			for range 2 {
				if _, err := env.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if kept := mustGet(env, foreign); kept.UID != "old-"+resources.DatabaseName || kept.Spec.Selector.MatchLabels["app"] != "theirs" {
				t.Errorf("the foreign Deployment was replaced: %v", env.writes)
			}
			got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "Deployment "+foreign.Namespace+"/"+resources.DatabaseName) {
				t.Errorf("condition %+v, want False with the name of the Deployment", got)
			}
		})
	}
}

// [modelregistry-88] [modelregistry-89] [D24] Legacy objects are deleted if their labels identify the legacy operator.
func TestLegacyObjectsAreDeletedIfLabelled(t *testing.T) {
	all := func() []client.Object {
		return []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.ConfigMap{ObjectMeta: nameMeta(legacyDefaultSources)}, &corev1.Secret{ObjectMeta: nameMeta(legacyCookieSecret)},
		}
	}
	env := newTestEnv(t, append(all(), newCatalog())...)
	env.reconcileUntilStable()
	for _, o := range all() {
		mustGet(env, o) // has no labels of an operator
		env.update(o, func() { withComponentLabels(o, resources.Name) })
	}
	env.restart()
	env.reconcileUntilStable()
	for _, o := range all() {
		if env.get(o) {
			t.Errorf("%T %s was not deleted", o, o.GetName())
		}
	}
	mustGet(env, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)})
}

// A foreign Service is not changed, and the condition names its controller.
func TestForeignServiceIsReportedAndKept(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	foreign.OwnerReferences = []metav1.OwnerReference{{APIVersion: "modelregistry.opendatahub.io/v1beta1", Kind: "ModelRegistry", Name: resources.Name, UID: "mr", Controller: new(true)}}
	env := newTestEnv(t, newCatalog(), foreign)
	result, err := env.reconcile()
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got %+v, error %v, want a requeue after one minute", result, err)
	}
	got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "belongs to ModelRegistry model-catalog") {
		t.Errorf("condition %+v, want False with the owner of the Service", got)
	}
	if len(mustGet(env, foreign).OwnerReferences) != 1 || len(foreign.Labels) > 0 {
		t.Error("the foreign object was changed")
	}
}

// [D25] The Catalog's HTTPRoutes outside of the configured namespace are deleted. Those of another Catalog are kept.
func TestManagedHTTPRoutesInOtherNamespacesAreDeleted(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.served = capability.NewSet(capability.HTTPRoute)
	route := func(namespace, catalogNamespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(capability.HTTPRoute)
		u.SetNamespace(namespace)
		u.SetName(resources.Name)
		u.SetLabels(map[string]string{resources.LabelNamespace: catalogNamespace, names.OperatorLabel: names.OperatorName, names.ComponentLabel: ComponentName})
		return u
	}
	env.create(route("old-routes", "lab-registries"))
	env.create(route("others", "another"))
	env.reconcileUntilStable()
	if env.get(route("old-routes", "")) || !env.get(route("others", "")) {
		t.Errorf("HTTPRoute of the Catalog exists: %v, want false; HTTPRoute of another Catalog exists: %v, want true", env.get(route("old-routes", "")), env.get(route("others", "")))
	}
}

func TestIsLegacyOwner(t *testing.T) {
	for name, test := range map[string]struct {
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
		if isLegacyOwner(test.ref) != test.want {
			t.Errorf("%s: isLegacyOwner returned %v", name, !test.want)
		}
	}
}

// [modelregistry-98] A missing object, a missing field and a field of another type result in no groups.
func TestAdminGroups(t *testing.T) {
	auth := func(groups any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": groups}}}
	}
	for name, test := range map[string]struct {
		auth *unstructured.Unstructured
		want string
	}{
		"two groups":               {auth([]any{"a", "", "b"}), "a,b"},
		"missing object":           {nil, ""},
		"missing field":            {&unstructured.Unstructured{Object: map[string]any{}}, ""},
		"string instead of a list": {auth("a"), ""},
		"number in the list":       {auth([]any{"a", int64(1)}), ""},
	} {
		if got := strings.Join(adminGroups(test.auth), ","); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
