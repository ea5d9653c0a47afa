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
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ManagementState is the annotation by which the platform sets the management state. With Unmanaged a reconcile changes no objects, Removed
// deletes the Catalog, and any other value means Managed.
const ManagementState = "component.opendatahub.io/management-state"

const (
	stateUnmanaged = "Unmanaged"
	stateRemoved   = "Removed"
)

// Component is a component that replaces a Deployment of the legacy operator.
type Component struct {
	// Deployment is the name of the legacy Deployment, for messages.
	Deployment string
	// Component is the name of the component.
	Component string
	Enabled   bool
	// Requires lists the kinds that the component needs.
	Requires []schema.GroupVersionKind
}

// problem returns why the component does not run, or "". The message starts like that of the legacy operator.
func (p Component) problem(served capability.Set) string {
	if !p.Enabled {
		return fmt.Sprintf("child deployment %s not found: the component %s, which replaces it, is disabled; enable it with --enable-%s",
			p.Deployment, p.Component, p.Component)
	}
	var missing []string
	for _, kind := range p.Requires {
		if !served.Has(kind) {
			missing = append(missing, kind.GroupKind().String())
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("child deployment %s not yet Available: the component %s, which replaces it, waits for the API %s; install its CustomResourceDefinition",
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
	takeOver  takeover.Interface[*platformv1alpha1.AIHub]
	// webhookNamespace returns the namespace of registries that webhooks use.
	webhookNamespace func() string
	// acceptedUID is the UID of the namespace that was created, or whose labels were accepted.
	acceptedUID types.UID
}

func (r *aiHub) logic() reconciler.Logic[*platformv1alpha1.AIHub] {
	return reconciler.Logic[*platformv1alpha1.AIHub]{
		Phases: []reconciler.Phase[*platformv1alpha1.AIHub]{
			{Name: "listing the releases", Run: r.listReleases},
			{Name: "reconciling the namespace and the Catalog", Run: r.reconcile},
		},
		ReadyCondition: ConditionReady,
		Summary:        func(a *platformv1alpha1.AIHub) { setReadyAndPhase(&a.Status, r.now(), a.Generation) },
		Finalizer:      platformv1alpha1.AIHubFinalizer,
		Finalize:       r.finalize,
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

// reconcile reconciles the objects of the AIHub and reports the result in the status.
func (r *aiHub) reconcile(ctx context.Context, a *platformv1alpha1.AIHub) error {
	f := r.facts(a)
	err := r.reconcileObjects(ctx, a, &f)
	wait, waits := errors.AsType[*reconciler.Wait](err)
	switch {
	case waits && wait.Stalled:
		f.failure = wait.For
	case waits && wait.Retry > 0:
		return err // a short wait does not change the status
	case err != nil:
		f.failure = err.Error()
	}
	reportAIHub(&a.Status, r.now(), f)
	return err
}

// facts returns the inputs of the status that do not depend on the reconcile.
func (r *aiHub) facts(a *platformv1alpha1.AIHub) aihubFacts {
	served := r.served()
	return aihubFacts{
		generation: a.Generation, domain: aihub.GatewayDomain(&a.Spec),
		registry: r.settings.Registry.problem(served), catalog: r.settings.Catalog.problem(served),
	}
}

// reconcileObjects ensures the namespace, deletes legacy Deployments and reconciles the Catalog, in this order. Unmanaged changes nothing,
// and Removed skips the namespace.
func (r *aiHub) reconcileObjects(ctx context.Context, a *platformv1alpha1.AIHub, f *aihubFacts) error {
	state := a.Annotations[ManagementState]
	if state == stateUnmanaged {
		f.provisionedMessage = "nothing is created or deleted: the annotation " + ManagementState + " is " + stateUnmanaged
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
	err := r.takeOver.Prune(ctx, a, nil)
	warning, isWarning := errors.AsType[takeover.Warning](err)
	if err != nil && !isWarning {
		return err
	}
	f.warning = string(warning)
	return r.reconcileCatalog(ctx, a, f, state == stateRemoved)
}

// namespaceConflict returns why the namespace of the AIHub conflicts with the setting, or "". The setting restricts the cache and cannot
// change at runtime.
func namespaceConflict(setting, desired string) string {
	if setting == "" || setting == desired {
		return ""
	}
	return fmt.Sprintf("spec.instancesNamespace is %q, and the operator manages only namespace %q (REGISTRIES_NAMESPACE); "+
		"leave REGISTRIES_NAMESPACE empty or set it to %q, or change spec.instancesNamespace", desired, setting, desired)
}

// reconcileCatalog deletes the other Catalogs of the AIHub and then creates the Catalog. It creates none if isRemoved is set or the
// component of the catalog does not run.
func (r *aiHub) reconcileCatalog(ctx context.Context, a *platformv1alpha1.AIHub, f *aihubFacts, isRemoved bool) error {
	if !r.served().Has(catalogKind) {
		return nil
	}
	key := client.ObjectKey{Namespace: a.Spec.InstancesNamespace, Name: aihubv1alpha1.CatalogName}
	if isRemoved {
		key = client.ObjectKey{}
		f.provisionedMessage = "the Catalog is removed: the annotation " + ManagementState + " is " + stateRemoved
	}
	terminating, err := r.deleteCatalogs(ctx, r.cached, a, key)
	if err != nil {
		return err
	}
	if len(terminating) > 0 {
		return &reconciler.Wait{For: strings.Join(terminating, ", ") + " to be deleted"}
	}
	if isRemoved || f.catalog != "" {
		return nil
	}
	existing := &aihubv1alpha1.Catalog{}
	if err := r.cached.Get(ctx, key, existing); !apierrors.IsNotFound(err) {
		return err
	}
	if r.webhookNamespace() != key.Namespace {
		return &reconciler.Wait{For: "webhooks to observe namespace " + key.Namespace, Retry: reconciler.RequeueSoon}
	}
	err = r.applier.Create(ctx, a, apply.Object{Config: catalogConfig(key)})
	if _, foreign := errors.AsType[*apply.ForeignError](err); foreign {
		return nil // a Catalog of another client is accepted
	}
	return err
}

// catalogConfig returns a Catalog with an empty spec.
func catalogConfig(key types.NamespacedName) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
	u.SetName(key.Name)
	u.SetNamespace(key.Namespace)
	return client.ApplyConfigurationFromUnstructured(u)
}

// deleteCatalogs deletes the Catalogs that the AIHub controls, except one, and returns the names of those that still exist.
func (r *aiHub) deleteCatalogs(ctx context.Context, reader client.Reader, a *platformv1alpha1.AIHub, except client.ObjectKey) ([]string, error) {
	list := &aihubv1alpha1.CatalogList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing Catalogs: %w", err)
	}
	var terminating []string
	for i := range list.Items {
		c := &list.Items[i]
		key := client.ObjectKeyFromObject(c)
		if key.Name != aihubv1alpha1.CatalogName || key == except || !metav1.IsControlledBy(c, a) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, a.UID, c); err != nil {
			return nil, err
		}
		terminating = append(terminating, "Catalog "+key.String())
	}
	return terminating, nil
}

// finalize deletes the Catalog, and returns a Wait until it is deleted. The namespace and registries are kept.
func (r *aiHub) finalize(ctx context.Context, a *platformv1alpha1.AIHub) error {
	var reader client.Reader = r.cached
	if !r.served().Has(catalogKind) {
		reader = r.apiReader // discovery may be stale, and removing the finalizer is irreversible
	}
	terminating, err := r.deleteCatalogs(ctx, reader, a, client.ObjectKey{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && len(terminating) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	a.ObserveGeneration()
	f := r.facts(a)
	f.failure = "this AIHub is being deleted and waits for " + strings.Join(terminating, ", ") + " to be deleted"
	if f.catalog != "" {
		f.failure += "; " + f.catalog
	}
	reportAIHub(&a.Status, r.now(), f)
	return &reconciler.Wait{For: "the Catalog to be deleted"}
}
