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
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// CreatedAtStart marks a Catalog that bootstrap created. bootstrap deletes the Catalog if the settings disable it.
const CreatedAtStart = "modelcatalog.opendatahub.io/created-at-start"

// ReasonNotAdopted is the reason of Events on Deployments with the labels of a legacy catalog in an untrusted namespace.
const ReasonNotAdopted = "CatalogNotTakenOver"

const (
	minBootstrapBackoff = time.Second
	maxBootstrapBackoff = 30 * time.Second
)

// bootstrap creates or deletes the Catalog as settings and legacy catalogs require, each time this manager becomes the leader. A Catalog
// that is deleted later is not created again before a manager becomes the leader again.
type bootstrap struct {
	settings  Settings
	client    client.Client
	apiReader client.Reader
	applier   *apply.Applier
	recorder  events.EventRecorder
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It retries until it succeeds or ctx ends.
func (b *bootstrap) Start(ctx context.Context) error {
	servers.Retry(ctx, b.clock, minBootstrapBackoff, maxBootstrapBackoff, b.run, func(err error, after time.Duration) {
		b.log.Info("Creating or deleting the default Catalog failed; retrying", "reason", err.Error(), "after", after)
	})
	return nil
}

func (b *bootstrap) run(ctx context.Context) error {
	list := &aihubv1alpha1.CatalogList{}
	if err := b.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing Catalogs: %w", err)
	}
	if !b.settings.EnableModelCatalog {
		return b.deleteCatalogs(ctx, list.Items)
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
	exists, err := b.hasAIHub(ctx)
	if err != nil || exists {
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

// deleteOrphanedBinding deletes the ClusterRoleBinding of a Catalog that was deleted without its finalizer: a ServiceAccount of the
// same name would get the permissions.
func (b *bootstrap) deleteOrphanedBinding(ctx context.Context) error {
	binding, err := objectmeta.Get(ctx, b.client, servers.ClusterRoleBinding, client.ObjectKey{Name: resources.DelegatorBinding})
	if err != nil || binding == nil || !isManaged(binding) {
		return err
	}
	return b.applier.DeleteOwned(ctx, "", binding)
}

// targetNamespace returns the configured namespace if the settings request a Catalog, or else the first namespace of a legacy catalog, or "".
func (b *bootstrap) targetNamespace(ctx context.Context) (string, error) {
	if b.settings.RequestModelCatalog && b.settings.Namespace != "" {
		return b.settings.Namespace, nil
	}
	namespaces, err := b.legacyNamespaces(ctx)
	if err != nil || len(namespaces) == 0 {
		return "", err
	}
	return namespaces[0], nil
}

// legacyNamespaces returns the trusted namespaces with a Deployment of a legacy catalog that is neither terminating nor controlled by a
// Catalog. In other namespaces, a user may have set the labels to get a ServiceAccount that may create access reviews.
func (b *bootstrap) legacyNamespaces(ctx context.Context) ([]string, error) {
	trusted, err := b.trustedNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	list := objectmeta.NewList(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	legacyLabels := client.MatchingLabels{resources.LabelComponent: resources.Name, resources.LabelCreatedBy: resources.CreatedBy}
	if err := b.apiReader.List(ctx, list, client.InNamespace(b.settings.Namespace), legacyLabels); err != nil {
		return nil, fmt.Errorf("listing the Deployments of a legacy catalog: %w", err)
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

// trustedNamespaces returns the namespaces in which a legacy catalog is accepted: the configured one, or else that of the manager and that
// of the subject of the legacy ClusterRoleBinding. Users cannot create ClusterRoleBindings.
func (b *bootstrap) trustedNamespaces(ctx context.Context) ([]string, error) {
	if b.settings.Namespace != "" {
		return []string{b.settings.Namespace}, nil
	}
	trusted := []string{b.settings.AdmissionRules.Namespace}
	binding := &rbacv1.ClusterRoleBinding{}
	err := b.apiReader.Get(ctx, client.ObjectKey{Name: resources.DelegatorBinding}, binding)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ClusterRoleBinding %s: %w", resources.DelegatorBinding, err)
	}
	// Ignore the ClusterRoleBinding of a registry named model-catalog, and that of this operator, whose Catalog can be in any namespace.
	if isManaged(binding) || !isManagedOrLegacy(binding) || len(binding.Subjects) != 1 {
		return trusted, nil
	}
	if s := binding.Subjects[0]; s.Kind == rbacv1.ServiceAccountKind && s.Name == resources.Name && binding.RoleRef.Name == rbacproxy.DelegatorRole {
		trusted = append(trusted, s.Namespace)
	}
	return trusted, nil
}

// reportUntrusted records an Event for a Deployment with legacy labels that a user may have created.
func (b *bootstrap) reportUntrusted(d *metav1.PartialObjectMetadata) {
	d.SetGroupVersionKind(servers.Deployment)
	text := fmt.Sprintf("Deployment %s has the labels of the catalog of a legacy operator, but neither the settings nor ClusterRoleBinding %s name its namespace: "+
		"nothing is taken over; if it is the catalog of this cluster, set REGISTRIES_NAMESPACE to %s or create Catalog %s there",
		client.ObjectKeyFromObject(d), resources.DelegatorBinding, d.Namespace, aihubv1alpha1.CatalogName)
	b.log.Info(text)
	b.recorder.Eventf(d, nil, corev1.EventTypeWarning, ReasonNotAdopted, "TakeOver", "%s", text)
}

// hasAIHub reports whether an AIHub exists, whose controller creates the Catalog.
func (b *bootstrap) hasAIHub(ctx context.Context) (bool, error) {
	err := b.apiReader.Get(ctx, client.ObjectKey{Name: platformv1alpha1.AIHubName}, objectmeta.New(aihub.Kind))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading AIHub %s: %w", platformv1alpha1.AIHubName, err)
	}
	return true, nil
}

// deleteCatalogs deletes a Catalog that bootstrap created or, if no Catalog exists, the objects of a legacy catalog. It keeps other
// Catalogs and the user-editable ConfigMaps.
func (b *bootstrap) deleteCatalogs(ctx context.Context, catalogs []aihubv1alpha1.Catalog) error {
	var errs []error
	for i := range catalogs {
		if c := &catalogs[i]; c.Annotations[CreatedAtStart] == "true" && c.Name == aihubv1alpha1.CatalogName && metav1.GetControllerOfNoCopy(c) == nil {
			errs = append(errs, b.applier.DeleteOwned(ctx, c.UID, c))
		}
	}
	if len(catalogs) > 0 {
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
		errs = append(errs, deleteManaged(ctx, b.applier, "", b.legacyKeys(namespace)))
	}
	return errors.Join(errs...)
}

// legacyKeys returns the keys of the objects of a legacy catalog to delete. The garbage collector deletes others. The ConfigMaps of users
// are kept, and with SkipCatalogDatabase the Secret of the database.
func (b *bootstrap) legacyKeys(namespace string) []apply.Key {
	keys := []apply.Key{
		apply.NewKey(servers.ClusterRoleBinding, "", resources.DelegatorBinding),
		apply.NewKey(capability.HTTPRoute, b.settings.Gateway.ForPlatform(true).RouteNamespace, resources.Name),
	}
	add := func(kind schema.GroupVersionKind, names ...string) {
		for _, name := range names {
			keys = append(keys, apply.NewKey(kind, namespace, name))
		}
	}
	add(servers.Deployment, resources.Name, resources.DatabaseName)
	add(servers.Service, resources.DatabaseName)
	add(servers.ServiceAccount, resources.Name)
	add(servers.ConfigMap, resources.ProxyConfig)
	add(servers.Claim, resources.DatabaseName)
	add(servers.NetworkPolicy, resources.DatabaseName, resources.RoutePolicy)
	add(servers.Secret, legacyCookieSecret)
	add(capability.Route, resources.RouteName)
	if !b.settings.SkipCatalogDatabase {
		add(servers.Secret, resources.DatabaseName)
	}
	return keys
}
