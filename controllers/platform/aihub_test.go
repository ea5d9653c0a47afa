package platform

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	createNamespace = "create Namespace /registries"
	createCatalog   = "create Catalog registries/catalog"
)

// The first reconcile creates all objects; the next sends no request, even after a restart. [modelregistry-107] [modelregistry-109]
func TestAIHubFirstReconcile(t *testing.T) {
	h := newHubFixture(t, aiHubWith())
	h.expectReconcile(createNamespace, createCatalog)
	a := h.get()
	if !slices.Equal(a.Finalizers, []string{"aihub.opendatahub.io/finalizer"}) || a.Status.Phase != "Ready" || a.Status.ObservedGeneration != 1 {
		t.Errorf("got finalizers %v, phase %q, generation %d, want the finalizer of the AIHub, Ready and 1", a.Finalizers, a.Status.Phase, a.Status.ObservedGeneration)
	}
	namespace, c := namespaceNamed("registries"), newCatalog("registries", "")
	if !h.exists(namespace) || len(namespace.OwnerReferences) > 0 {
		t.Errorf("got namespace %+v, want one without an owner", namespace.ObjectMeta)
	}
	if !h.exists(c) || !metav1.IsControlledBy(c, a) || c.Spec.Resources != nil || c.Spec.Database != nil {
		t.Errorf("got Catalog %+v, want one with an empty spec that the AIHub controls", c)
	}
	h.expectIdle()
	h.restart()
	h.expectIdle()
}

// A component that does not run is reported with the fix, and the Catalog is created once its component runs. [modelregistry-107]
// [modelregistry-108]
func TestAIHubWaitsForComponents(t *testing.T) {
	for name, tc := range map[string]struct {
		change              func(*hubFixture)
		conditionType, want string
		others, writes      []string
	}{
		"the catalog is disabled": {func(h *hubFixture) { h.logic.settings.Catalog.Enabled = false }, "CatalogReady",
			"child deployment catalog-controller-manager not found: the component modelcatalog, which replaces it, is disabled; enable it with --enable-modelcatalog",
			[]string{"ModelRegistryReady"}, []string{createNamespace}},
		"the API of the catalog is not served": {func(h *hubFixture) { h.served = capability.NewSet(aihubKind, registryKind) }, "CatalogReady",
			"child deployment catalog-controller-manager not yet Available: the component modelcatalog, which replaces it, waits for the API Catalog.aihub.opendatahub.io; install its CustomResourceDefinition",
			[]string{"ModelRegistryReady"}, []string{createNamespace}},
		"the API of registries is not served": {func(h *hubFixture) { h.served = capability.NewSet(aihubKind, catalogKind) }, "ModelRegistryReady",
			"child deployment model-registry-operator-controller-manager not yet Available: the component modelregistry, which replaces it, waits for the API ModelRegistry.modelregistry.opendatahub.io; install its CustomResourceDefinition",
			[]string{"CatalogReady"}, []string{createNamespace, createCatalog}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHubFixture(t, aiHubWith())
			tc.change(h)
			h.expectReconcile(tc.writes...)
			if c := h.condition(tc.conditionType); c.Status != "False" || c.Reason != "ChildDeploymentNotReady" || c.Message != tc.want {
				t.Errorf("got condition %+v, want False with ChildDeploymentNotReady", c)
			}
			for _, conditionType := range append(tc.others, "ProvisioningSucceeded") {
				if c := h.condition(conditionType); c.Status != "True" {
					t.Errorf("got condition %+v, want True", c)
				}
			}
			if ready := h.condition("Ready"); ready.Status != "False" || ready.Message != tc.want || h.get().Status.Phase != "Not Ready" {
				t.Errorf("got condition %+v and phase %q, want False with message %q and Not Ready", ready, h.get().Status.Phase, tc.want)
			}
			h.expectIdle()
			h.restart()
			h.served = capability.NewSet(aihubKind, catalogKind, registryKind)
			h.expectReconcile(slices.DeleteFunc([]string{createCatalog}, func(w string) bool { return slices.Contains(tc.writes, w) })...)
			if h.expectIdle(); h.get().Status.Phase != "Ready" {
				t.Errorf("got phase %q, want Ready", h.get().Status.Phase)
			}
		})
	}
}

// A missing namespace of registries is created, unless it is the application namespace. An existing one is accepted with a label or the
// Catalog of the AIHub. Reserved names are rejected.
// [modelregistry-113]
func TestAIHubNamespace(t *testing.T) {
	t.Run("exists without the label", func(t *testing.T) {
		foreign := namespaceNamed("registries")
		foreign.Labels = map[string]string{"team": "a"}
		h := newHubFixture(t, aiHubWith(), foreign)
		others, result, err := h.reconcile()
		failed := h.condition("ProvisioningSucceeded")
		if err != nil || result.RequeueAfter != reconciler.RequeueBlocked || len(others) > 0 || failed.Reason != "DeployFailed" || !strings.Contains(failed.Message, "kubectl label namespace registries platform.opendatahub.io/registries=true") {
			t.Errorf("unexpected condition: %+v", failed)
		}
		foreign.Labels = map[string]string{LabelRegistries: "true"}
		if err := h.server.Update(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		h.expectReconcile(createCatalog)
	})
	t.Run("was created by the platform", func(t *testing.T) {
		foreign := namespaceNamed("registries")
		foreign.Labels = map[string]string{labelGenerated: "true"}
		newHubFixture(t, aiHubWith(), foreign).expectReconcile(createCatalog)
	})
	t.Run("contains the Catalog of the AIHub", func(t *testing.T) {
		h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"), newCatalog("registries", "hub"))
		h.expectReconcile()
		if ready := h.condition("Ready"); ready.Status != "True" {
			t.Errorf("unexpected condition: %+v", ready)
		}
	})
	for _, name := range []string{"kube-system", "default", "openshift", "openshift-config"} {
		t.Run("is reserved: "+name, func(t *testing.T) {
			h := newHubFixture(t, aiHubWith(), newCatalog("registries", "hub"))
			h.update(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = name })
			h.expectReconcile()
			if failed := h.condition("ProvisioningSucceeded"); !strings.Contains(failed.Message, `"`+name+`" belongs to the cluster: name another`) {
				t.Errorf("got condition %+v, want an error that names the reserved namespace", failed)
			}
		})
	}
	t.Run("is that of the applications", func(t *testing.T) {
		h := newHubFixture(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "apps" }))
		h.expectReconcile("create Catalog apps/catalog")
	})
	t.Run("cannot be created", func(t *testing.T) {
		h := newHubFixture(t, aiHubWith())
		h.requestError = func(verb, kind string) error {
			if kind == "Namespace" {
				return errors.New("quota exceeded")
			}
			return nil
		}
		if _, _, err := h.reconcile(); err == nil || !strings.Contains(err.Error(), "quota exceeded") {
			t.Errorf("got error %v", err)
		}
		failed, degraded := h.condition("ProvisioningSucceeded"), h.condition("Degraded")
		if failed.Reason != "DeployFailed" || !strings.Contains(failed.Message, "creating namespace registries (spec.instancesNamespace): quota exceeded") ||
			degraded.Reason != "ProvisioningFailed" || degraded.Severity != "" || h.get().Status.Phase != "Not Ready" {
			t.Errorf("unexpected conditions %+v and %+v", failed, degraded)
		}
		h.requestError = nil
		h.expectReconcile(createNamespace, createCatalog)
	})
}

// REGISTRIES_NAMESPACE restricts the cache to one namespace, which an AIHub cannot change.
func TestAIHubNamespaceConflict(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"))
	h.logic.settings.RegistriesNamespace = "other"
	h.expectReconcile()
	c := h.condition("ProvisioningSucceeded")
	if c.Status != "False" || c.Reason != "DeployFailed" {
		t.Errorf("got condition %+v, want False with DeployFailed", c)
	}
	for _, part := range []string{`spec.instancesNamespace is "registries"`, `only namespace "other" (REGISTRIES_NAMESPACE)`, "leave REGISTRIES_NAMESPACE empty"} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("%q lacks %q", c.Message, part)
		}
	}
	h.expectIdle()
	h.logic.settings.RegistriesNamespace = "registries"
	h.expectReconcile(createCatalog)
}

// [modelregistry-110] The Catalog is deleted before the AIHub, without polling.
func TestAIHubDeletion(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"), newCatalog("registries", "hub"), newCatalog("older", "hub"), newCatalog("foreign", "another"))
	h.update(func(a *platformv1alpha1.AIHub) { a.Finalizers = []string{platformv1alpha1.AIHubFinalizer} })
	if err := h.server.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile("delete Catalog older/catalog", "delete Catalog registries/catalog")
	want := "this AIHub is being deleted and waits for Catalog older/catalog, Catalog registries/catalog to be deleted"
	if c := h.condition("ProvisioningSucceeded"); c.Message != want {
		t.Errorf("got %q, want %q", c.Message, want)
	}
	h.expectIdle()
	for _, namespace := range []string{"registries", "older"} {
		c := newCatalog(namespace, "")
		if !h.exists(c) || c.DeletionTimestamp == nil {
			t.Fatalf("Catalog in namespace %s: got deletionTimestamp %v", namespace, c.DeletionTimestamp)
		}
		c.Finalizers = nil
		if err := h.server.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	h.expectReconcile()
	if h.exists(aiHubWith()) {
		t.Error("the AIHub still exists")
	}
	if !h.exists(namespaceNamed("registries")) || !h.exists(newCatalog("foreign", "")) {
		t.Error("the namespace or a foreign Catalog was deleted")
	}
}

// If the Catalog API is not served, the AIHub is kept until the API server confirms that no Catalog exists.
func TestAIHubDeletionWithoutCatalogAPI(t *testing.T) {
	h := newHubFixture(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Finalizers = []string{platformv1alpha1.AIHubFinalizer} }))
	if err := h.server.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	h.served = capability.NewSet(aihubKind)
	h.requestError = func(verb, _ string) error {
		if verb == "list" {
			return errors.New("connection refused")
		}
		return nil
	}
	if _, _, err := h.reconcile(); err == nil || !h.exists(aiHubWith()) {
		t.Errorf("error %v, or the AIHub was deleted", err)
	}
	h.requestError = func(verb, _ string) error {
		if verb == "list" {
			return &meta.NoKindMatchError{}
		}
		return nil
	}
	if h.expectReconcile(); h.exists(aiHubWith()) {
		t.Error("the AIHub still exists")
	}
}

// If the namespace changes, the Catalog is deleted and then created in the new namespace. [D27]
func TestAIHubNamespaceChange(t *testing.T) {
	h := newHubFixture(t, aiHubWith())
	h.expectReconcile(createNamespace, createCatalog)
	c := newCatalog("registries", "")
	h.exists(c)
	c.Finalizers = []string{aihubv1alpha1.Finalizer}
	if err := h.server.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.update(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "new" })
	h.expectReconcile("create Namespace /new", "delete Catalog registries/catalog")
	if c := h.condition("ProvisioningSucceeded"); c.Status != "False" || c.Message != "waiting for Catalog registries/catalog to be deleted" {
		t.Errorf("got condition %+v, want it to wait for the Catalog in the previous namespace", c)
	}
	h.expectIdle()
	h.exists(c)
	c.Finalizers = nil
	if err := h.server.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile("create Catalog new/catalog")
	if h.get().Status.Phase != "Ready" || !h.exists(namespaceNamed("registries")) {
		t.Errorf("phase %q, or the previous namespace was deleted", h.get().Status.Phase)
	}
	h.expectIdle()
}

// A Catalog of another client is accepted and not changed.
func TestAIHubIgnoresForeignCatalogs(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"), newCatalog("registries", ""), newCatalog("other", "someone"))
	h.expectReconcile()
	if h.get().Status.Phase != "Ready" {
		t.Errorf("got phase %q, want Ready", h.get().Status.Phase)
	}
	h.expectIdle()
}

// The Catalog is created once webhooks observe its namespace, because they would reject it before.
func TestAIHubWaitsForWebhooks(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"))
	h.webhookNamespace = "older"
	if others, result, err := h.reconcile(); err != nil || result.RequeueAfter != reconciler.RequeueSoon || len(others) > 0 {
		t.Errorf("writes %q, result %+v, error %v", others, result, err)
	}
	if c := h.condition("Ready"); c.Status != "Unknown" || c.Reason != "FirstReconcile" || !strings.Contains(c.Message, "before the first complete reconcile") {
		t.Errorf("got condition %+v, want Ready Unknown with a reason and a message", c)
	}
	h.webhookNamespace = ""
	h.expectReconcile(createCatalog)
}

// The status reports a rejection by the webhook before the write is retried.
func TestAIHubReportsRejection(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), namespaceNamed("registries"))
	h.requestError = func(verb, kind string) error {
		if verb == "create" {
			return errors.New("denied by the webhook")
		}
		return nil
	}
	if _, _, err := h.reconcile(); err == nil {
		t.Error("got no error, want one that retries the reconcile")
	}
	if c := h.condition("ProvisioningSucceeded"); !strings.Contains(c.Message, "Catalog registries/catalog") || !strings.Contains(c.Message, "denied by the webhook") {
		t.Errorf("got condition %+v, want the rejected Catalog and the response of the webhook", c)
	}
}

// [D27] The annotation of the platform sets the management state.
func TestAIHubManagementState(t *testing.T) {
	withState := func(state string) func(*platformv1alpha1.AIHub) {
		return func(a *platformv1alpha1.AIHub) {
			a.Annotations = map[string]string{"component.opendatahub.io/management-state": state}
		}
	}
	for state, want := range map[string][]string{
		"Managed":   {createNamespace, createCatalog, "delete Catalog older/catalog"},
		"":          {createNamespace, createCatalog, "delete Catalog older/catalog"},
		"Unmanaged": nil,
		"Removed":   {"delete Catalog older/catalog"},
	} {
		older := newCatalog("older", "hub")
		older.Finalizers = nil // it is deleted immediately
		h := newHubFixture(t, aiHubWith(withState(state)), older)
		var got []string
		for range 3 {
			others, _, err := h.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, others...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: writes %q, want %q", state, got, want)
		}
		reported := strings.Contains(h.condition("ProvisioningSucceeded").Message, ManagementState)
		if special := state == "Unmanaged" || state == "Removed"; reported != special || h.get().Status.Phase != "Ready" {
			t.Errorf("%q: unexpected phase or condition %+v", state, h.condition("ProvisioningSucceeded"))
		}
	}
}

// The version of the platform is read from the ConfigMap in spec.applicationNamespace. [modelregistry-111]
func TestHubReleaseOfPlatform(t *testing.T) {
	versionConfigMap := func(namespace, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-modelregistry-config", UID: "config"}, Data: map[string]string{"platformVersion": version}}
	}
	h := newHubFixture(t, aiHubWith(), versionConfigMap("other", "9.9.9"))
	componentRelease := platformv1alpha1.Release{Name: "Kubeflow Model Registry", Version: "v1"}
	h.expectReconcile(createNamespace, createCatalog)
	if diff := cmp.Diff([]platformv1alpha1.Release{componentRelease}, h.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
	reported := versionConfigMap("apps", " 2.30.0\n")
	if err := h.server.Create(t.Context(), reported); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile()
	if diff := cmp.Diff([]platformv1alpha1.Release{componentRelease, releaseOfPlatform("2.30.0")}, h.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&platformv1alpha1.Distribution{Version: "2.30.0"}, h.get().Status.Distribution); diff != "" {
		t.Error(diff)
	}
	h.expectIdle()
	reported.Data = nil
	if err := h.server.Update(t.Context(), reported); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile()
	if got := h.get().Status.Distribution; got != nil {
		t.Errorf("got distribution %+v, want none", got)
	}
	if diff := cmp.Diff([]platformv1alpha1.Release{componentRelease}, h.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
}

// Condition Paused has severity Info, and is removed with the annotation.
func TestHubPaused(t *testing.T) {
	h := newHubFixture(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
	h.expectReconcile()
	if c := h.condition("Paused"); c.Status != "True" || c.Severity != "Info" {
		t.Errorf("got condition %+v, want Paused True with severity Info", c)
	}
	h.update(func(a *platformv1alpha1.AIHub) { a.Annotations = nil })
	h.expectReconcile(createNamespace, createCatalog)
	if c := h.condition("Paused"); c.Type != "" {
		t.Errorf("got condition %+v, want no Paused", c)
	}
}

func TestHubEvents(t *testing.T) {
	other := aiHubWith(func(a *platformv1alpha1.AIHub) { a.Name = "default" })
	if p := hasName(platformv1alpha1.AIHubName); p.Create(event.CreateEvent{Object: other}) || !p.Create(event.CreateEvent{Object: aiHubWith()}) {
		t.Error("want only AIHubs with the fixed name reconciled")
	}
	namespace := namespaceNamed("a")
	if p := onlyDeletes(); p.Create(event.CreateEvent{Object: namespace}) || p.Update(event.UpdateEvent{ObjectOld: namespace, ObjectNew: namespace}) ||
		!p.Delete(event.DeleteEvent{Object: namespace}) {
		t.Error("want only the deletion of the namespace to trigger a reconcile")
	}
	if got := webhookNamespace(nil, AIHubSettings{RegistriesNamespace: "set"}); got != "set" {
		t.Errorf("namespace %q, want %q", got, "set")
	}
}
