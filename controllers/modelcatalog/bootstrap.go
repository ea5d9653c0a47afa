package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

// CreatedAtStart marks the Catalog that was created by the start of this program. The switch that asked for it may take it
// back.
const CreatedAtStart = "modelcatalog.opendatahub.io/created-at-start"

// bootstrapMin and bootstrapMax bound the pauses after trouble.
const bootstrapMin, bootstrapMax = time.Second, 30 * time.Second

// bootstrap does at the start of the leader, once, what the start of the older operator did: it sees to it that there is a
// Catalog, or that nothing of the catalog is left. A Catalog that is deleted later stays deleted until the next start.
type bootstrap struct {
	settings Settings
	client   client.Client
	live     client.Reader
	applier  *apply.Applier
	clock    clock.Clock
	log      logr.Logger
}

// Start implements manager.Runnable. It tries again until it succeeds or ctx ends.
func (b *bootstrap) Start(ctx context.Context) error {
	registry.UntilDone(ctx, b.clock, bootstrapMin, bootstrapMax, b.run, func(err error, after time.Duration) {
		b.log.Info("The start of the catalog failed and is tried again", "reason", err.Error(), "after", after)
	})
	return nil
}

func (b *bootstrap) run(ctx context.Context) error {
	list := &aihubv1alpha1.CatalogList{}
	if err := b.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing Catalogs: %w", err)
	}
	if !b.settings.EnableModelCatalog {
		return b.remove(ctx, list.Items)
	}
	if len(list.Items) > 0 {
		return nil
	}
	namespace, err := b.namespace(ctx)
	if err != nil || namespace == "" {
		return err
	}
	owned, err := b.hubOwns(ctx)
	if err != nil || owned {
		return err
	}
	c := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: aihubv1alpha1.CatalogName, Annotations: map[string]string{CreatedAtStart: "true"},
	}}
	err = b.client.Create(ctx, c, client.FieldOwner(FieldOwner))
	if err == nil {
		b.log.Info("Created the Catalog", "namespace", namespace)
	}
	return client.IgnoreAlreadyExists(err)
}

// namespace is where a Catalog is to be made; empty when none is: the settings request none, and no older operator ran one.
func (b *bootstrap) namespace(ctx context.Context) (string, error) {
	if b.settings.RequestModelCatalog && b.settings.Namespace != "" {
		return b.settings.Namespace, nil
	}
	running, err := b.running(ctx)
	if err != nil || len(running) == 0 {
		return "", err
	}
	return running[0], nil
}

// running are the namespaces in which an older operator runs a catalog. What belongs to a Catalog that has been deleted is not
// counted: the garbage collector may not have removed it yet.
func (b *bootstrap) running(ctx context.Context) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	marks := client.MatchingLabels{resources.LabelComponent: resources.Name, resources.LabelCreatedBy: resources.CreatedBy}
	if err := b.live.List(ctx, list, client.InNamespace(b.settings.Namespace), marks); err != nil {
		return nil, fmt.Errorf("looking for the catalog of an older operator: %w", err)
	}
	var namespaces []string
	for i := range list.Items {
		owner := metav1.GetControllerOfNoCopy(&list.Items[i])
		if list.Items[i].Name == resources.Name && list.Items[i].DeletionTimestamp.IsZero() && (owner == nil || owner.Kind != aihubv1alpha1.Kind) {
			namespaces = append(namespaces, list.Items[i].Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// hubOwns reports whether an AIHub is there, which makes the Catalog by itself.
func (b *bootstrap) hubOwns(ctx context.Context) (bool, error) {
	err := b.live.Get(ctx, client.ObjectKey{Name: platformv1alpha1.AIHubName}, capability.MetadataOf(aihub.Kind))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading AIHub %s: %w", platformv1alpha1.AIHubName, err)
	}
	return true, nil
}

// remove takes back what a start made, a Catalog or the objects of an older operator. A Catalog that a user made stays, and
// what belongs to it with it. The sources of users stay in any case.
func (b *bootstrap) remove(ctx context.Context, all []aihubv1alpha1.Catalog) error {
	var errs []error
	for i := range all {
		if c := &all[i]; c.Annotations[CreatedAtStart] == "true" && c.Name == aihubv1alpha1.CatalogName && metav1.GetControllerOfNoCopy(c) == nil {
			errs = append(errs, b.applier.Remove(ctx, c.UID, c))
		}
	}
	if len(all) > 0 {
		return errors.Join(errs...)
	}
	namespaces := []string{b.settings.Namespace}
	if b.settings.Namespace == "" {
		var err error
		if namespaces, err = b.running(ctx); err != nil {
			return err
		}
	}
	for _, namespace := range namespaces {
		errs = append(errs, removeMade(ctx, b.applier, "", b.targets(namespace)))
	}
	return errors.Join(errs...)
}

// targets are the objects of a catalog without a Catalog. What its Deployments own goes with them.
func (b *bootstrap) targets(namespace string) []place {
	places := []place{
		{registry.ClusterBinding, types.NamespacedName{Name: resources.DelegatorBinding}},
		{capability.HTTPRoute, types.NamespacedName{Namespace: b.settings.Gateway.RouteNamespace, Name: resources.Name}},
	}
	here := func(kind schema.GroupVersionKind, names ...string) {
		for _, name := range names {
			places = append(places, place{kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	here(registry.Deployment, resources.Name, resources.DatabaseName)
	here(registry.Service, resources.DatabaseName)
	here(registry.ServiceAccount, resources.Name)
	here(registry.ConfigMap, resources.ProxyConfig)
	here(registry.Claim, resources.DatabaseName)
	here(registry.NetworkPolicy, resources.DatabaseName, resources.RoutePolicy)
	here(registry.Secret, cookieSecret)
	here(capability.Route, resources.RouteName)
	if !b.settings.SkipCatalogDatabase {
		here(registry.Secret, resources.DatabaseName)
	}
	return places
}
