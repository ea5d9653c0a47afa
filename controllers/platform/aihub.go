package platform

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// ManagementState is the annotation in which the platform says how far an area is to be looked after. Unmanaged leaves what is
// there as it is; with Removed the Catalog goes. Everything else is as Managed.
const ManagementState = "component.opendatahub.io/management-state"

const (
	stateUnmanaged = "Unmanaged"
	stateRemoved   = "Removed"
)

// Program is one of the programs that the original ran as a Deployment of its own, and that is a component here.
type Program struct {
	// Deployment is the name that it had, for messages.
	Deployment string
	// Component is its name here.
	Component string
	// Enabled is false when the settings switch it off.
	Enabled bool
	// Requires are the kinds without which it does not run.
	Requires []schema.GroupVersionKind
}

// problem says why the program does not run; empty when it does. It begins as the original's message did.
func (p Program) problem(served capability.Set) string {
	if !p.Enabled {
		return fmt.Sprintf("child deployment %s not found: the component %s, which takes its place, is switched off; switch it on with --enable-%s",
			p.Deployment, p.Component, p.Component)
	}
	var missing []string
	for _, kind := range p.Requires {
		if !served.Has(kind) {
			missing = append(missing, kind.GroupKind().String())
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("child deployment %s not yet Available: the component %s, which takes its place, waits for the cluster to serve %s; install the definition",
			p.Deployment, p.Component, strings.Join(missing, ", "))
	}
	return ""
}

// aiHub reconciles the AIHub.
type aiHub struct {
	settings  AIHubSettings
	cached    client.Client
	apiReader client.Reader
	applier   *apply.Applier
	clock     clock.PassiveClock
	served    func() capability.Set
	versions  client.Reader // ConfigMaps in which the platform reports its version
	legacy    *legacyDeployments
	// decided is the namespace of registries as webhooks know it.
	webhookNamespace func() string
	// accepted is the uid of the namespace that was found to be provided for registries.
	acceptedUID types.UID
}

func (r *aiHub) logic() reconciler.Logic[*platformv1alpha1.AIHub] {
	return reconciler.Logic[*platformv1alpha1.AIHub]{
		Phases: []reconciler.Phase[*platformv1alpha1.AIHub]{
			{Name: "listing the releases", Run: r.listReleases},
			{Name: "providing for registries and the catalog", Run: r.reconcile},
		},
		ReadyCondition: ConditionReady,
		Summary:        func(a *platformv1alpha1.AIHub) { setReadyAndPhase(&a.Status, r.now(), a.Generation) },
		Finalizer:      platformv1alpha1.AIHubFinalizer,
		Finalize:       r.finalize,
		OnDeleted:      func(types.UID) { r.legacy.reset() },
	}
}

func (r *aiHub) conditionAccess() reconciler.Conditions[*platformv1alpha1.AIHub] {
	return conditionAccess(func(a *platformv1alpha1.AIHub) *[]platformv1alpha1.Condition { return &a.Status.Conditions }, r.now)
}

func (r *aiHub) now() metav1.Time { return metav1.NewTime(r.clock.Now()) }

func (r *aiHub) listReleases(ctx context.Context, a *platformv1alpha1.AIHub) error {
	version, err := readVersion(ctx, r.versions, client.ObjectKey{Namespace: a.Spec.ApplicationNamespace, Name: aihubConfigMapName})
	if err != nil {
		return err
	}
	a.Status.Releases = aihubReleases(r.settings.Releases, version)
	a.Status.Distribution = distribution(r.settings.PlatformType, version)
	return nil
}

// provide makes what is to be there, and reports. Whatever fails is in the status before it is tried again.
func (r *aiHub) reconcile(ctx context.Context, a *platformv1alpha1.AIHub) error {
	f := r.facts(a)
	err := r.reconcileObjects(ctx, a, &f)
	wait, waits := errors.AsType[*reconciler.Wait](err)
	switch {
	case waits && wait.Stalled:
		f.failure = wait.For
	case waits && wait.Retry > 0:
		return err // a matter of moments, in which the status stays as it is
	case err != nil:
		f.failure = err.Error()
	}
	reportAIHub(&a.Status, r.now(), f)
	return err
}

// facts are those that stand before anything is done.
func (r *aiHub) facts(a *platformv1alpha1.AIHub) aihubFacts {
	served := r.served()
	return aihubFacts{
		generation: a.Generation, domain: aihub.GatewayDomain(&a.Spec),
		registry: r.settings.Registry.problem(served), catalog: r.settings.Catalog.problem(served),
	}
}

// make checks settings, creates the namespace, ends the programs of the original, and then creates the Catalog; each step depends on
// the one before.
func (r *aiHub) reconcileObjects(ctx context.Context, a *platformv1alpha1.AIHub, f *aihubFacts) error {
	state := a.Annotations[ManagementState]
	if state == stateUnmanaged {
		f.provisionedMessage = "nothing is made or removed: the annotation " + ManagementState + " is " + stateUnmanaged
		return nil
	}
	if problem := namespaceConflict(r.settings.RegistriesNamespace, a.Spec.InstancesNamespace); problem != "" {
		return &reconciler.Wait{For: problem, Stalled: true}
	}
	if state != stateRemoved {
		if err := r.ensureNamespace(ctx, a); err != nil {
			return err
		}
	}
	warning, err := r.legacy.deleteAll(ctx, r.applier, a)
	if err != nil {
		return err
	}
	f.warning = warning
	return r.reconcileCatalog(ctx, a, f, state == stateRemoved)
}

// clash compares the namespace of the AIHub with the setting of the process, which bounds what is held in memory and cannot
// change while that runs; empty when they agree.
func namespaceConflict(setting, wanted string) string {
	if setting == "" || setting == wanted {
		return ""
	}
	return fmt.Sprintf("spec.instancesNamespace is %q, and this program looks after namespace %q only (REGISTRIES_NAMESPACE); "+
		"leave REGISTRIES_NAMESPACE empty or set it to %q, or change spec.instancesNamespace", wanted, setting, wanted)
}

// provideCatalog makes the Catalog, in one place only: one that this AIHub made elsewhere goes first.
func (r *aiHub) reconcileCatalog(ctx context.Context, a *platformv1alpha1.AIHub, f *aihubFacts, removed bool) error {
	if !r.served().Has(catalogKind) {
		return nil
	}
	home := client.ObjectKey{Namespace: a.Spec.InstancesNamespace, Name: aihubv1alpha1.CatalogName}
	if removed {
		home = client.ObjectKey{}
		f.provisionedMessage = "the Catalog is removed: the annotation " + ManagementState + " is " + stateRemoved
	}
	going, err := r.deleteCatalogs(ctx, r.cached, a, home)
	if err != nil {
		return err
	}
	if len(going) > 0 {
		return &reconciler.Wait{For: strings.Join(going, ", ") + " to be gone"}
	}
	if removed || f.catalog != "" {
		return nil
	}
	present := &aihubv1alpha1.Catalog{}
	if err := r.cached.Get(ctx, home, present); !apierrors.IsNotFound(err) {
		return err
	}
	if r.webhookNamespace() != home.Namespace {
		return &reconciler.Wait{For: "webhooks to learn of " + home.Namespace, Retry: shortRequeue}
	}
	err = r.applier.Create(ctx, a, apply.Object{Config: catalogConfig(home)})
	if _, taken := errors.AsType[*apply.ForeignError](err); taken {
		return nil // another client was quicker, and its Catalog serves as well
	}
	return err
}

// catalogIn is a Catalog that leaves everything to its defaults.
func catalogConfig(place types.NamespacedName) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
	u.SetName(place.Name)
	u.SetNamespace(place.Namespace)
	return client.ApplyConfigurationFromUnstructured(u)
}

// removeCatalogs deletes the Catalogs that this AIHub controls but for one, and returns those that are still there.
func (r *aiHub) deleteCatalogs(ctx context.Context, reader client.Reader, a *platformv1alpha1.AIHub, but client.ObjectKey) ([]string, error) {
	list := &aihubv1alpha1.CatalogList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing Catalogs: %w", err)
	}
	var going []string
	for i := range list.Items {
		c := &list.Items[i]
		key := client.ObjectKeyFromObject(c)
		if key.Name != aihubv1alpha1.CatalogName || key == but || !metav1.IsControlledBy(c, a) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, a.UID, c); err != nil {
			return nil, err
		}
		going = append(going, "Catalog "+key.String())
	}
	return going, nil
}

// finalize keeps the AIHub until its Catalog is gone. The namespace and registries stay.
func (r *aiHub) finalize(ctx context.Context, a *platformv1alpha1.AIHub) error {
	var reader client.Reader = r.cached
	if !r.served().Has(catalogKind) {
		reader = r.apiReader // letting go cannot be taken back, so what does not seem to be served is read once more
	}
	going, err := r.deleteCatalogs(ctx, reader, a, client.ObjectKey{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && len(going) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	a.ObserveGeneration()
	f := r.facts(a)
	f.failure = "this AIHub is being deleted and waits for " + strings.Join(going, ", ") + " to be gone"
	if f.catalog != "" {
		f.failure += "; " + f.catalog
	}
	reportAIHub(&a.Status, r.now(), f)
	return &reconciler.Wait{For: "the Catalog to be gone"}
}
