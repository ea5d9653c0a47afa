package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// CreatedAtStart marks a Catalog that bootstrap created. bootstrap deletes the Catalog if the settings disable it.
const CreatedAtStart = "modelcatalog.opendatahub.io/created-at-start"

const (
	minBootstrapBackoff = time.Second
	maxBootstrapBackoff = 30 * time.Second
)

// bootstrap creates or deletes the Catalog as settings and take-over require, each time this manager becomes the leader. A Catalog that is
// deleted later is not created again before a manager becomes the leader again.
type bootstrap struct {
	settings  Settings
	client    client.Client
	apiReader client.Reader
	applier   *apply.Applier
	takeOver  TakeOver
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
	namespaces, err := []string{b.settings.Namespace}, error(nil)
	if !b.settings.RequestModelCatalog || b.settings.Namespace == "" {
		namespaces, err = b.takeOver.Namespaces(ctx)
	}
	if err != nil || len(namespaces) == 0 {
		return err
	}
	// If an AIHub exists, its controller creates the Catalog.
	hub, err := objectmeta.Get(ctx, b.apiReader, aihub.Kind, client.ObjectKey{Name: platformv1alpha1.AIHubName})
	if hub != nil || err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	c := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespaces[0], Name: aihubv1alpha1.CatalogName, Annotations: map[string]string{CreatedAtStart: "true"},
	}}
	err = b.client.Create(ctx, c, client.FieldOwner(FieldOwner))
	if err == nil {
		b.log.Info("Created the Catalog", "namespace", c.Namespace)
	}
	return client.IgnoreAlreadyExists(err)
}

// deleteOrphanedBinding deletes the ClusterRoleBinding of a Catalog that was deleted without finalization: a new ServiceAccount of the
// same name would get the permissions.
func (b *bootstrap) deleteOrphanedBinding(ctx context.Context) error {
	binding, err := objectmeta.Get(ctx, b.client, servers.ClusterRoleBinding, client.ObjectKey{Name: resources.DelegatorBinding})
	if err != nil || binding == nil || !resources.IsManaged(binding) {
		return err
	}
	return b.applier.DeleteOwned(ctx, "", binding)
}

// deleteCatalogs deletes a Catalog that bootstrap created and keeps others. If no Catalog exists, it finalizes the take-over.
func (b *bootstrap) deleteCatalogs(ctx context.Context, catalogs []aihubv1alpha1.Catalog) error {
	if len(catalogs) == 0 {
		return b.takeOver.Finalize(ctx, &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: b.settings.Namespace}})
	}
	var errs []error
	for i := range catalogs {
		if c := &catalogs[i]; c.Annotations[CreatedAtStart] == "true" && c.Name == aihubv1alpha1.CatalogName && metav1.GetControllerOfNoCopy(c) == nil {
			errs = append(errs, b.applier.DeleteOwned(ctx, c.UID, c))
		}
	}
	return errors.Join(errs...)
}
