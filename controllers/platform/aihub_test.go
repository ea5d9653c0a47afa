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
	makesNamespace = "create Namespace /registries"
	makesCatalog   = "create Catalog registries/catalog"
)

// One reconcile does everything; the next writes and asks nothing, in this process or another. [modelregistry-107] [modelregistry-109]
func TestAIHubFirstReconcile(t *testing.T) {
	b := newHubBench(t, aiHubWith())
	b.reconciles(makesNamespace, makesCatalog)
	a := b.get()
	if !slices.Equal(a.Finalizers, []string{"aihub.opendatahub.io/finalizer"}) || a.Status.Phase != "Ready" || a.Status.ObservedGeneration != 1 {
		t.Errorf("finalizers %v, phase %q, generation %d", a.Finalizers, a.Status.Phase, a.Status.ObservedGeneration)
	}
	namespace, c := namespaceNamed("registries"), catalogOf("registries", "")
	if !b.exists(namespace) || len(namespace.OwnerReferences) > 0 {
		t.Errorf("namespace %+v", namespace.ObjectMeta)
	}
	if !b.exists(c) || !metav1.IsControlledBy(c, a) || c.Spec.Resources != nil || c.Spec.Database != nil {
		t.Errorf("Catalog %+v", c)
	}
	b.expectIdle()
	b.restart()
	b.expectIdle()
}

// A component that does not run is reported with the fix, and a Catalog waits for its component. [modelregistry-107]
// [modelregistry-108]
func TestAIHubWaitsForComponents(t *testing.T) {
	for name, tc := range map[string]struct {
		change         func(*hubBench)
		kind, want     string
		others, writes []string
	}{
		"the catalog is disabled": {func(b *hubBench) { b.logic.settings.Catalog.Enabled = false }, "CatalogReady",
			"child deployment catalog-controller-manager not found: the component modelcatalog, which replaces it, is disabled; enable it with --enable-modelcatalog",
			[]string{"ModelRegistryReady"}, []string{makesNamespace}},
		"its kind is not served": {func(b *hubBench) { b.served = capability.NewSet(aihubKind, registryKind) }, "CatalogReady",
			"child deployment catalog-controller-manager not yet Available: the component modelcatalog, which replaces it, waits for the API Catalog.aihub.opendatahub.io; install its CustomResourceDefinition",
			[]string{"ModelRegistryReady"}, []string{makesNamespace}},
		"registries rest": {func(b *hubBench) { b.served = capability.NewSet(aihubKind, catalogKind) }, "ModelRegistryReady",
			"child deployment model-registry-operator-controller-manager not yet Available: the component modelregistry, which replaces it, waits for the API ModelRegistry.modelregistry.opendatahub.io; install its CustomResourceDefinition",
			[]string{"CatalogReady"}, []string{makesNamespace, makesCatalog}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHubBench(t, aiHubWith())
			tc.change(b)
			b.reconciles(tc.writes...)
			if c := b.condition(tc.kind); c.Status != "False" || c.Reason != "ChildDeploymentNotReady" || c.Message != tc.want {
				t.Errorf("got condition %+v, want False with ChildDeploymentNotReady", c)
			}
			for _, kind := range append(tc.others, "ProvisioningSucceeded") {
				if c := b.condition(kind); c.Status != "True" {
					t.Errorf("got condition %+v, want True", c)
				}
			}
			if ready := b.condition("Ready"); ready.Status != "False" || ready.Message != tc.want || b.get().Status.Phase != "Not Ready" {
				t.Errorf("%+v, phase %q", ready, b.get().Status.Phase)
			}
			b.expectIdle()
			b.restart()
			b.served = capability.NewSet(aihubKind, catalogKind, registryKind)
			b.reconciles(slices.DeleteFunc([]string{makesCatalog}, func(w string) bool { return slices.Contains(tc.writes, w) })...)
			if b.expectIdle(); b.get().Status.Phase != "Ready" {
				t.Errorf("phase %q", b.get().Status.Phase)
			}
		})
	}
}

// The namespace of registries is made once, whole and unowned, and not where registries share that of the programs.
// [modelregistry-113]
func TestAIHubNamespace(t *testing.T) {
	t.Run("is there", func(t *testing.T) {
		foreign := namespaceNamed("registries")
		foreign.Labels = map[string]string{"team": "a"}
		b := newHubBench(t, aiHubWith(), foreign)
		others, result, err := b.reconcile()
		failed := b.condition("ProvisioningSucceeded")
		if err != nil || result.RequeueAfter != reconciler.RequeueBlocked || len(others) > 0 || failed.Reason != "DeployFailed" || !strings.Contains(failed.Message, "kubectl label namespace registries platform.opendatahub.io/registries=true") {
			t.Errorf("unexpected failed: %+v", failed)
		}
		foreign.Labels = map[string]string{LabelRegistries: "true"}
		if err := b.server.Update(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		b.reconciles(makesCatalog)
	})
	t.Run("was made by the platform", func(t *testing.T) {
		foreign := namespaceNamed("registries")
		foreign.Labels = map[string]string{labelGenerated: "true"}
		newHubBench(t, aiHubWith(), foreign).reconciles(makesCatalog)
	})
	t.Run("has the Catalog since the original", func(t *testing.T) {
		b := newHubBench(t, aiHubWith(), namespaceNamed("registries"), catalogOf("registries", "hub"))
		b.reconciles()
		if ready := b.condition("Ready"); ready.Status != "True" {
			t.Errorf("unexpected ready: %+v", ready)
		}
	})
	for _, name := range []string{"kube-system", "default", "openshift", "openshift-config"} {
		t.Run("is "+name, func(t *testing.T) {
			b := newHubBench(t, aiHubWith(), catalogOf("registries", "hub"))
			b.change(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = name })
			b.reconciles()
			if failed := b.condition("ProvisioningSucceeded"); !strings.Contains(failed.Message, `"`+name+`" belongs to the cluster: name another`) {
				t.Errorf("got condition %+v, want an error that names the reserved namespace", failed)
			}
		})
	}
	t.Run("is that of the programs", func(t *testing.T) {
		b := newHubBench(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "apps" }))
		b.reconciles("create Catalog apps/catalog")
	})
	t.Run("may not be made", func(t *testing.T) {
		b := newHubBench(t, aiHubWith())
		b.failing = func(verb, kind string) error {
			if kind == "Namespace" {
				return errors.New("no namespaces today")
			}
			return nil
		}
		if _, _, err := b.reconcile(); err == nil || !strings.Contains(err.Error(), "no namespaces today") {
			t.Errorf("error %v", err)
		}
		failed, degraded := b.condition("ProvisioningSucceeded"), b.condition("Degraded")
		if failed.Reason != "DeployFailed" || !strings.Contains(failed.Message, "creating namespace registries (spec.instancesNamespace): no namespaces today") ||
			degraded.Reason != "ProvisioningFailed" || degraded.Severity != "" || b.get().Status.Phase != "Not Ready" {
			t.Errorf("unexpected conditions %+v and %+v", failed, degraded)
		}
		b.failing = nil
		b.reconciles(makesNamespace, makesCatalog)
	})
}

// The caches of the process hold one namespace, which an AIHub cannot change.
func TestAIHubNamespaceConflict(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"))
	b.logic.settings.RegistriesNamespace = "elsewhere"
	b.reconciles()
	c := b.condition("ProvisioningSucceeded")
	if c.Status != "False" || c.Reason != "DeployFailed" {
		t.Errorf("got condition %+v, want False with DeployFailed", c)
	}
	for _, part := range []string{`spec.instancesNamespace is "registries"`, `only namespace "elsewhere" (REGISTRIES_NAMESPACE)`, "leave REGISTRIES_NAMESPACE empty"} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("%q lacks %q", c.Message, part)
		}
	}
	b.expectIdle()
	b.logic.settings.RegistriesNamespace = "registries"
	b.reconciles(makesCatalog)
}

// [modelregistry-110] The Catalog is deleted first, then the AIHub; nothing is polled in between.
func TestAIHubDeletion(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"), catalogOf("registries", "hub"), catalogOf("older", "hub"), catalogOf("foreign", "another"))
	b.change(func(a *platformv1alpha1.AIHub) { a.Finalizers = []string{platformv1alpha1.AIHubFinalizer} })
	if err := b.server.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}
	b.reconciles("delete Catalog older/catalog", "delete Catalog registries/catalog")
	want := "this AIHub is being deleted and waits for Catalog older/catalog, Catalog registries/catalog to be deleted"
	if c := b.condition("ProvisioningSucceeded"); c.Message != want {
		t.Errorf("got %q, want %q", c.Message, want)
	}
	b.expectIdle()
	for _, namespace := range []string{"registries", "older"} {
		c := catalogOf(namespace, "")
		if !b.exists(c) || c.DeletionTimestamp == nil {
			t.Fatalf("Catalog %s %+v", namespace, c.DeletionTimestamp)
		}
		c.Finalizers = nil
		if err := b.server.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	b.reconciles()
	if b.exists(aiHubWith()) {
		t.Error("the AIHub still exists")
	}
	if !b.exists(namespaceNamed("registries")) || !b.exists(catalogOf("foreign", "")) {
		t.Error("the namespace or a foreign Catalog was deleted")
	}
}

// Without the API of Catalog no Catalog can exist; until the API server confirms this, the AIHub stays.
func TestAIHubDeletionWithoutCatalogAPI(t *testing.T) {
	b := newHubBench(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Finalizers = []string{platformv1alpha1.AIHubFinalizer} }))
	if err := b.server.Delete(t.Context(), b.get()); err != nil {
		t.Fatal(err)
	}
	b.served = capability.NewSet(aihubKind)
	b.failing = func(verb, _ string) error {
		if verb == "list" {
			return errors.New("not now")
		}
		return nil
	}
	if _, _, err := b.reconcile(); err == nil || !b.exists(aiHubWith()) {
		t.Errorf("error %v, or the AIHub was deleted", err)
	}
	b.failing = func(verb, _ string) error {
		if verb == "list" {
			return &meta.NoKindMatchError{}
		}
		return nil
	}
	if b.reconciles(); b.exists(aiHubWith()) {
		t.Error("the AIHub still exists")
	}
}

// Another namespace: the Catalog that the AIHub made goes, and when it is gone there is a new one. [D27]
func TestAIHubNamespaceChange(t *testing.T) {
	b := newHubBench(t, aiHubWith())
	b.reconciles(makesNamespace, makesCatalog)
	c := catalogOf("registries", "")
	b.exists(c)
	c.Finalizers = []string{aihubv1alpha1.Finalizer}
	if err := b.server.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.change(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "new" })
	b.reconciles("create Namespace /new", "delete Catalog registries/catalog")
	if c := b.condition("ProvisioningSucceeded"); c.Status != "False" || c.Message != "waiting for Catalog registries/catalog to be deleted" {
		t.Errorf("got condition %+v, want it to wait for the Catalog in the previous namespace", c)
	}
	b.expectIdle()
	b.exists(c)
	c.Finalizers = nil
	if err := b.server.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.reconciles("create Catalog new/catalog")
	if b.get().Status.Phase != "Ready" || !b.exists(namespaceNamed("registries")) {
		t.Errorf("phase %q, or the previous namespace was deleted", b.get().Status.Phase)
	}
	b.expectIdle()
}

// A Catalog of another client serves as well, and is left alone.
func TestAIHubIgnoresForeignCatalogs(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"), catalogOf("registries", ""), catalogOf("other", "someone"))
	b.reconciles()
	if b.get().Status.Phase != "Ready" {
		t.Errorf("phase %q", b.get().Status.Phase)
	}
	b.expectIdle()
}

// A webhook that does not know the namespace yet would refuse the Catalog.
func TestAIHubWaitsForWebhooks(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"))
	b.decided = "older"
	if others, result, err := b.reconcile(); err != nil || result.RequeueAfter != reconciler.RequeueSoon || len(others) > 0 {
		t.Errorf("wrote %q, result %+v, error %v", others, result, err)
	}
	b.decided = ""
	b.reconciles(makesCatalog)
}

// A refusal of the webhook is in the status before it is tried again.
func TestAIHubReportsRejection(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"))
	b.failing = func(verb, kind string) error {
		if verb == "create" {
			return errors.New("webhook says no")
		}
		return nil
	}
	if _, _, err := b.reconcile(); err == nil {
		t.Error("want an error, so that the reconcile is retried")
	}
	if c := b.condition("ProvisioningSucceeded"); !strings.Contains(c.Message, "Catalog registries/catalog") || !strings.Contains(c.Message, "webhook says no") {
		t.Errorf("got condition %+v, want the rejected Catalog and the response of the webhook", c)
	}
}

// [D27] The annotation of the platform is heeded.
func TestAIHubManagementState(t *testing.T) {
	in := func(state string) func(*platformv1alpha1.AIHub) {
		return func(a *platformv1alpha1.AIHub) {
			a.Annotations = map[string]string{"component.opendatahub.io/management-state": state}
		}
	}
	for state, want := range map[string][]string{
		"Managed":   {makesNamespace, makesCatalog, "delete Catalog older/catalog"},
		"":          {makesNamespace, makesCatalog, "delete Catalog older/catalog"},
		"Unmanaged": nil,
		"Removed":   {"delete Catalog older/catalog"},
	} {
		older := catalogOf("older", "hub")
		older.Finalizers = nil // it is deleted immediately
		b := newHubBench(t, aiHubWith(in(state)), older)
		var got []string
		for range 3 {
			others, _, err := b.reconcile()
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
		reported := strings.Contains(b.condition("ProvisioningSucceeded").Message, ManagementState)
		if special := state == "Unmanaged" || state == "Removed"; reported != special || b.get().Status.Phase != "Ready" {
			t.Errorf("%q: unexpected phase or condition %+v", state, b.condition("ProvisioningSucceeded"))
		}
	}
}

// The Deployments of the legacy AIHub are deleted once, with their pods; those of other owners are kept.
func TestAIHubDeletesLegacyDeployments(t *testing.T) {
	b := newHubBench(t, aiHubWith(), namespaceNamed("registries"), programOf(legacyRegistryDeployment, "one", "hub"), programOf(legacyCatalogDeployment, "two", "another"))
	going := programOf(legacyRegistryDeployment, "", "")
	b.exists(going)
	going.Finalizers = []string{"foregroundDeletion"}
	if err := b.server.Update(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	b.reconciles("delete Deployment apps/" + legacyRegistryDeployment)
	if c := b.condition("ProvisioningSucceeded"); c.Reason != "DeployFailed" || !strings.Contains(c.Message, "waiting for Deployment apps/"+legacyRegistryDeployment) {
		t.Errorf("got condition %+v, want it to wait for the legacy Deployment", c)
	}
	b.expectIdle()
	b.exists(going)
	going.Finalizers = nil
	if err := b.server.Update(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	b.reconciles(makesCatalog)
	b.expectIdle()

	// The one that makes it again would continue doing so, which is worth a warning and holds nothing up.
	if err := b.server.Create(t.Context(), programOf(legacyRegistryDeployment, "three", "hub")); err != nil {
		t.Fatal(err)
	}
	b.reconciles()
	if c := b.condition("Degraded"); c.Status != "True" || c.Reason != ReasonLegacyOperator || !strings.Contains(c.Message, "delete Deployment aihub-controller-manager, which creates it, and then this one") {
		t.Errorf("got condition %+v, want the legacy operator reported as the cause", c)
	}
	if c := b.condition("Ready"); c.Status != "True" {
		t.Errorf("got condition %+v, want True", c)
	}
	b.expectIdle()
	if !b.exists(programOf(legacyCatalogDeployment, "", "")) {
		t.Error("the Deployment of another client was deleted")
	}
}

// The version is read in the namespace of the platform that the AIHub names. [modelregistry-111]
func TestHubReleaseOfThePlatform(t *testing.T) {
	reports := func(namespace, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-modelregistry-config", UID: "config"}, Data: map[string]string{"platformVersion": version}}
	}
	b := newHubBench(t, aiHubWith(), reports("elsewhere", "9.9.9"))
	managed := platformv1alpha1.Release{Name: "Kubeflow Model Registry", Version: "v1"}
	b.reconciles(makesNamespace, makesCatalog)
	if diff := cmp.Diff([]platformv1alpha1.Release{managed}, b.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
	reported := reports("apps", " 2.30.0\n")
	if err := b.server.Create(t.Context(), reported); err != nil {
		t.Fatal(err)
	}
	b.reconciles()
	if diff := cmp.Diff([]platformv1alpha1.Release{managed, foreign("2.30.0")}, b.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&platformv1alpha1.Distribution{Version: "2.30.0"}, b.get().Status.Distribution); diff != "" {
		t.Error(diff)
	}
	b.expectIdle()
	reported.Data = nil
	if err := b.server.Update(t.Context(), reported); err != nil {
		t.Fatal(err)
	}
	b.reconciles()
	if got := b.get().Status.Distribution; got != nil {
		t.Errorf("the distribution %+v is still reported", got)
	}
	if diff := cmp.Diff([]platformv1alpha1.Release{managed}, b.get().Status.Releases); diff != "" {
		t.Error(diff)
	}
}

// Pausing is a condition like any other.
func TestHubPaused(t *testing.T) {
	b := newHubBench(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Annotations = map[string]string{names.PausedAnnotation: "true"} }))
	b.reconciles()
	if c := b.condition("Paused"); c.Status != "True" || c.Severity != "Info" {
		t.Errorf("got condition %+v, want Paused True with severity Info", c)
	}
	b.change(func(a *platformv1alpha1.AIHub) { a.Annotations = nil })
	b.reconciles(makesNamespace, makesCatalog)
	if c := b.condition("Paused"); c.Type != "" {
		t.Errorf("got condition %+v, want no Paused", c)
	}
}

func TestHubEvents(t *testing.T) {
	other := aiHubWith(func(a *platformv1alpha1.AIHub) { a.Name = "default" })
	if p := hasName(platformv1alpha1.AIHubName); p.Create(event.CreateEvent{Object: other}) || !p.Create(event.CreateEvent{Object: aiHubWith()}) {
		t.Error("want only AIHubs with the fixed name reconciled")
	}
	namespace := namespaceNamed("a")
	if p := deletePredicate(); p.Create(event.CreateEvent{Object: namespace}) || p.Update(event.UpdateEvent{ObjectOld: namespace, ObjectNew: namespace}) ||
		!p.Delete(event.DeleteEvent{Object: namespace}) {
		t.Error("want only the deletion of the namespace to trigger a reconcile")
	}
	if got := webhookNamespace(nil, AIHubSettings{RegistriesNamespace: "set"}); got != "set" {
		t.Errorf("namespace %q, want %q", got, "set")
	}
}
