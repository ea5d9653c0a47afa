package openshift

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// takeOverManager is the manager of the take-over.
type takeOverManager struct{ ctrl.Manager }

func (takeOverManager) GetAPIReader() client.Reader { return nil }
func (takeOverManager) GetLogger() logr.Logger      { return logr.Discard() }
func (takeOverManager) Add(manager.Runnable) error  { return nil }

// newTakeOverEnv returns an environment whose controllers take over from the legacy controller.
func newTakeOverEnv(t *testing.T, served capability.Set, existing ...client.Object) *testEnv {
	t.Helper()
	env := newTestEnv(t, served, existing...)
	shared := &modelmesh.Dependencies{Options: modelmesh.Options{Applier: env.namespaces.applier}}
	if err := takeover.Setup(t.Context(), takeOverManager{}, shared); err != nil {
		t.Fatal(err)
	}
	env.namespaces.takeOver, env.routes.takeOver, env.routes.applier = shared.TakeOver, shared.TakeOver, shared.RouteApplier
	return env
}

// Objects of the legacy controller are adopted, and deleted with the last model. Objects of users are kept.
func TestAdoptsObjectsOfLegacyController(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "modelmesh-serving-sa", Labels: map[string]string{"a": "b"}}}
	delegator := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: BindingName("team")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "modelmesh-serving-sa", Namespace: "team"}},
	}
	for _, manager := range []string{takeover.LegacyManager, "kubectl-create"} {
		t.Run(manager, func(t *testing.T) {
			env := newTakeOverEnv(t, openShift)
			p := newPredictor("p")
			env.create(p)
			for _, o := range []client.Object{account.DeepCopy(), delegator.DeepCopy()} {
				if err := env.server.Create(t.Context(), o, client.FieldOwner(manager)); err != nil {
					t.Fatal(err)
				}
			}
			_, requeueAfter, err := env.reconcile(env.namespaces, "", "team")
			if err != nil {
				t.Fatal(err)
			}
			var got corev1.ServiceAccount
			env.exists(&got, "modelmesh-serving-sa")
			isLegacy := manager == takeover.LegacyManager
			if isManaged(&got) != isLegacy || (requeueAfter > 0) == isLegacy || strings.Contains(env.takeEvents(), "was not created by this operator") == isLegacy {
				t.Errorf("labels %v, requeue after %s, adopted: %t, want %t", got.Labels, requeueAfter, isManaged(&got), isLegacy)
			}
			env.remove(p)
			env.reconcileNamespace()
			if env.exists(&got, "modelmesh-serving-sa") == isLegacy {
				t.Errorf("after the last model: ServiceAccount exists: %t, want %t", isLegacy, !isLegacy)
			}
		})
	}
}

// Routes of the legacy controller are adopted, and deleted if not desired.
func TestAdoptsLegacyRoutes(t *testing.T) {
	for _, annotations := range []map[string]string{withRoute, nil} {
		model := newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
		env := newTakeOverEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", annotations), model)
		legacy := newRoute()
		legacy.SetNamespace("team")
		legacy.SetName("digits")
		legacy.SetLabels(map[string]string{LabelInferenceService: "digits"})
		legacy.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(model, v1beta1.GroupVersion.WithKind("InferenceService"))})
		legacy.Object["spec"] = map[string]any{"host": "digits-team.apps.example.com", "path": "/v2/models/digits"}
		if err := env.server.Create(t.Context(), legacy, client.FieldOwner(takeover.LegacyManager)); err != nil {
			t.Fatal(err)
		}
		writes := env.reconcileRoute("digits")
		got := newRoute()
		found := env.exists(got, "digits")
		host, _, _ := unstructured.NestedString(got.Object, "spec", "host")
		if found != (annotations != nil) || found && (host != "digits-team.apps.example.com" || !isManaged(got)) {
			t.Errorf("Route found: %t, want %t; host %s, writes %q", found, annotations != nil, host, writes)
		}
		env.expectNoRequests("after the adoption", func() []string { return env.reconcileRoute("digits") })
	}
}

// [O8] The finalizer of the legacy controller is removed from a terminating model if it is the only one.
func TestRemovesLegacyFinalizer(t *testing.T) {
	kserveFinalizer := "inferenceservice.finalizers"
	for name, c := range map[string]struct {
		finalizers []string
		change     func(*v1beta1.InferenceService)
		deleted    bool
		removed    bool
	}{
		"only finalizer":           {[]string{takeover.LegacyFinalizer}, func(*v1beta1.InferenceService) {}, true, true},
		"KServe has a finalizer":   {[]string{kserveFinalizer, takeover.LegacyFinalizer}, func(*v1beta1.InferenceService) {}, true, false},
		"not deleted":              {[]string{takeover.LegacyFinalizer}, func(*v1beta1.InferenceService) {}, false, false},
		"another deployment mode":  {[]string{takeover.LegacyFinalizer}, func(s *v1beta1.InferenceService) { s.Annotations = nil }, true, false},
		"only a foreign finalizer": {[]string{"example.com/hold"}, func(*v1beta1.InferenceService) {}, true, false},
		"Route API not served":     {[]string{takeover.LegacyFinalizer}, func(*v1beta1.InferenceService) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			served := openShiftAPIs
			if name == "Route API not served" {
				served = capability.NewSet(capability.InferenceService)
			}
			model := newInferenceService("digits", func(s *v1beta1.InferenceService) { s.Finalizers = c.finalizers }, c.change)
			env := newTakeOverEnv(t, served, model)
			if c.deleted {
				env.remove(model)
			}
			writes := env.reconcileRoute("digits")
			exists := env.exists(&v1beta1.InferenceService{}, "digits")
			if exists == c.removed || slices.Contains(writes, "patch InferenceService digits") != c.removed {
				t.Errorf("InferenceService exists: %t, writes %q, want the finalizer removed: %t", exists, writes, c.removed)
			}
		})
	}
}

func TestFinalizerErrors(t *testing.T) {
	model := newInferenceService("digits", func(s *v1beta1.InferenceService) { s.Finalizers = []string{takeover.LegacyFinalizer} })
	env := newTakeOverEnv(t, openShiftAPIs, model)
	env.remove(model)
	for cause, wantErr := range map[error]bool{errDown: true, apierrors.NewConflict(schema.GroupResource{}, "digits", errDown): false, apierrors.NewNotFound(schema.GroupResource{}, "digits"): false} {
		env.failWrite = func(string, string) error { return cause }
		_, requeueAfter, err := env.reconcile(env.routes, "team", "digits")
		if (err != nil) != wantErr || (requeueAfter > 0) != apierrors.IsConflict(cause) {
			t.Errorf("removing the finalizer failed with %v: requeue after %s, error %v", cause, requeueAfter, err)
		}
	}
}

// newObjectManagedBy returns an object with the given field manager.
func newObjectManagedBy(manager string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetLabels(labels)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate}})
	return u
}

// Objects of the legacy controller are adopted; objects of users are not.
func TestAdoptsLegacyObjectsOnly(t *testing.T) {
	in := inputs(openShift)
	in.StorageData = map[string][]byte{"a": nil}
	legacyObject := newObjectManagedBy(takeover.LegacyManager, map[string]string{LabelManaged: "true"})
	userObject := newObjectManagedBy("kubectl-create", nil)
	adoptable := map[string]bool{}
	desired := allDesired(in)
	newTakeOverEnv(t, openShift).namespaces.takeOver.Adopt(&corev1.Namespace{}, desired)
	for _, o := range desired {
		key := o.Key()
		if o.AdoptIf == nil {
			continue
		}
		adoptable[key.Kind+" "+key.Name] = true
		if !o.AdoptIf(legacyObject) || o.AdoptIf(userObject) {
			t.Errorf("%s %s: adopts a legacy object: %t, that of a user: %t", key.Kind, key.Name, o.AdoptIf(legacyObject), o.AdoptIf(userObject))
		}
	}
	want := []string{"ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator", "RoleBinding prometheus-ns-access",
		"Secret storage-config", "ServiceAccount modelmesh-serving-sa"}
	if got := slices.Sorted(maps.Keys(adoptable)); !slices.Equal(got, want) {
		t.Errorf("adoptable objects %q, want %q", got, want)
	}
}
