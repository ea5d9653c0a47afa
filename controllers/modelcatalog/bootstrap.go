package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// CreatedAtStart marks the Catalog that was created by the start of this program. The switch that asked for it may take it
// back.
const CreatedAtStart = "modelcatalog.opendatahub.io/created-at-start"

// ReasonNotTakenOver is the reason of Events about Deployments that only look like the catalog of an earlier operator.
const ReasonNotAdopted = "CatalogNotTakenOver"

// bootstrapMin and bootstrapMax bound the pauses after trouble.
const minBootstrapBackoff, maxBootstrapBackoff = time.Second, 30 * time.Second

// bootstrap does at the start of the leader, once, what the start of the older operator did: it sees to it that there is a
// Catalog, or that nothing of the catalog is left. A Catalog that is deleted later stays deleted until the next start.
type bootstrap struct {
	settings  Settings
	client    client.Client
	apiReader client.Reader
	applier   *apply.Applier
	recorder  events.EventRecorder
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It tries again until it succeeds or ctx ends.
func (b *bootstrap) Start(ctx context.Context) error {
	registry.Retry(ctx, b.clock, minBootstrapBackoff, maxBootstrapBackoff, b.run, func(err error, after time.Duration) {
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
		return b.deleteCreated(ctx, list.Items)
	}
	if len(list.Items) > 0 {
		return nil
	}
	if err := b.deleteOrphanedBinding(ctx); err != nil {
		return err
	}
	namespace, err := b.targetNamespace(ctx)
	if err != nil || namespace == "" {
		return err
	}
	owned, err := b.hasAIHub(ctx)
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

// sweep removes the ClusterRoleBinding of a Catalog that lost its finalizer by force: a ServiceAccount of the same name would inherit it.
func (b *bootstrap) deleteOrphanedBinding(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{}
	err := b.apiReader.Get(ctx, client.ObjectKey{Name: resources.DelegatorBinding}, binding)
	if err == nil && isManaged(binding) {
		return b.applier.DeleteOwned(ctx, "", binding)
	}
	return client.IgnoreNotFound(err)
}

// namespace is where a Catalog is to be made; empty when none is: the settings request none, and no older operator ran one.
func (b *bootstrap) targetNamespace(ctx context.Context) (string, error) {
	if b.settings.RequestModelCatalog && b.settings.Namespace != "" {
		return b.settings.Namespace, nil
	}
	running, err := b.legacyNamespaces(ctx)
	if err != nil || len(running) == 0 {
		return "", err
	}
	return running[0], nil
}

// running are the namespaces in which an older operator runs a catalog. What belongs to a Catalog that has been deleted is not
// counted: the garbage collector may not have removed it yet. Nor is what users may have made, because labels prove nothing: there
// is one Catalog in a cluster, and its account may ask about the rights of all users.
func (b *bootstrap) legacyNamespaces(ctx context.Context) ([]string, error) {
	trusted, err := b.trustedNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	marks := client.MatchingLabels{resources.LabelComponent: resources.Name, resources.LabelCreatedBy: resources.CreatedBy}
	if err := b.apiReader.List(ctx, list, client.InNamespace(b.settings.Namespace), marks); err != nil {
		return nil, fmt.Errorf("looking for the catalog of an older operator: %w", err)
	}
	var namespaces []string
	for i := range list.Items {
		d := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(d)
		switch {
		case d.Name != resources.Name || !d.DeletionTimestamp.IsZero() || owner != nil && owner.Kind == aihubv1alpha1.Kind:
		case slices.Contains(trusted, d.Namespace):
			namespaces = append(namespaces, d.Namespace)
		default:
			b.reportUntrusted(d)
		}
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// trusted are the namespaces in which a catalog of an older operator is one: that of registries, or where the settings name none that
// of the manager and the one that only an administrator or the older operator can have given the rights of the catalog.
func (b *bootstrap) trustedNamespaces(ctx context.Context) ([]string, error) {
	if b.settings.Namespace != "" {
		return []string{b.settings.Namespace}, nil
	}
	trusted := []string{b.settings.Authors.Namespace}
	binding := &rbacv1.ClusterRoleBinding{}
	err := b.apiReader.Get(ctx, client.ObjectKey{Name: resources.DelegatorBinding}, binding)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ClusterRoleBinding %s: %w", resources.DelegatorBinding, err)
	}
	// A registry called as the catalog is, which users may make, has a binding of this name too, and ours follows any Catalog.
	if isManaged(binding) || !isManagedOrLegacy(binding) || len(binding.Subjects) != 1 {
		return trusted, nil
	}
	if s := binding.Subjects[0]; s.Kind == rbacv1.ServiceAccountKind && s.Name == resources.Name && binding.RoleRef.Name == rbacproxy.DelegatorRole {
		trusted = append(trusted, s.Namespace)
	}
	return trusted, nil
}

// distrust reports a Deployment that looks like the catalog of an older operator, in a namespace where users may have made it.
func (b *bootstrap) reportUntrusted(d *metav1.PartialObjectMetadata) {
	d.SetGroupVersionKind(registry.Deployment)
	text := fmt.Sprintf("Deployment %s has the labels of an earlier operator's catalog, but neither the settings nor ClusterRoleBinding %s name its namespace: "+
		"nothing is taken over; if it is the catalog of this cluster, set REGISTRIES_NAMESPACE to %s or create Catalog %s there",
		client.ObjectKeyFromObject(d), resources.DelegatorBinding, d.Namespace, aihubv1alpha1.CatalogName)
	b.log.Info(text)
	b.recorder.Eventf(d, nil, corev1.EventTypeWarning, ReasonNotAdopted, "TakeOver", "%s", text)
}

// hubOwns reports whether an AIHub is there, which makes the Catalog by itself.
func (b *bootstrap) hasAIHub(ctx context.Context) (bool, error) {
	err := b.apiReader.Get(ctx, client.ObjectKey{Name: platformv1alpha1.AIHubName}, capability.MetadataOf(aihub.Kind))
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
func (b *bootstrap) deleteCreated(ctx context.Context, all []aihubv1alpha1.Catalog) error {
	var errs []error
	for i := range all {
		if c := &all[i]; c.Annotations[CreatedAtStart] == "true" && c.Name == aihubv1alpha1.CatalogName && metav1.GetControllerOfNoCopy(c) == nil {
			errs = append(errs, b.applier.DeleteOwned(ctx, c.UID, c))
		}
	}
	if len(all) > 0 {
		return errors.Join(errs...)
	}
	namespaces := []string{b.settings.Namespace}
	if b.settings.Namespace == "" {
		var err error
		if namespaces, err = b.legacyNamespaces(ctx); err != nil {
			return err
		}
	}
	for _, namespace := range namespaces {
		errs = append(errs, deleteManaged(ctx, b.applier, "", b.catalogKeys(namespace)))
	}
	return errors.Join(errs...)
}

// targets are the objects of a catalog without a Catalog. What its Deployments own goes with them.
func (b *bootstrap) catalogKeys(namespace string) []objectKey {
	places := []objectKey{
		{registry.ClusterRoleBinding, types.NamespacedName{Name: resources.DelegatorBinding}},
		{capability.HTTPRoute, types.NamespacedName{Namespace: b.settings.Gateway.On(true).RouteNamespace, Name: resources.Name}},
	}
	here := func(kind schema.GroupVersionKind, names ...string) {
		for _, name := range names {
			places = append(places, objectKey{kind, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	here(registry.Deployment, resources.Name, resources.DatabaseName)
	here(registry.Service, resources.DatabaseName)
	here(registry.ServiceAccount, resources.Name)
	here(registry.ConfigMap, resources.ProxyConfig)
	here(registry.Claim, resources.DatabaseName)
	here(registry.NetworkPolicy, resources.DatabaseName, resources.RoutePolicy)
	here(registry.Secret, legacyCookieSecret)
	here(capability.Route, resources.RouteName)
	if !b.settings.SkipCatalogDatabase {
		here(registry.Secret, resources.DatabaseName)
	}
	return places
}
