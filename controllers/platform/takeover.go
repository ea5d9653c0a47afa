package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

// This file ends what the original operator left running, and may go with release 1.0: who comes from the original has to run an
// earlier release first.

// The Deployments that the original ran, and the one that made the first two.
const (
	legacyRegistryDeployment = "model-registry-operator-controller-manager"
	legacyCatalogDeployment  = "catalog-controller-manager"
	legacyAIHubDeployment    = "aihub-controller-manager"
)

// formerPrograms removes the Deployments that an older controller made for the AIHub: they do what this program does. Only those
// go that the AIHub controls, in namespaces of administrators: an owner reference proves nothing, since users can write one, and what
// others made may be this very program under an older name.
type legacyDeployments struct {
	// home is the namespace of the manager.
	operatorNamespace string
	// readers hold the Deployments of a name.
	readers map[string]client.Reader

	// deleted are those that were deleted for the one AIHub, whose reconciles never overlap.
	deleted map[types.NamespacedName]types.UID
}

// newFormerPrograms follows the Deployments of the two names, of which alone it may know.
func newLegacyDeployments(mgr ctrl.Manager, home string, h handler.EventHandler) (*legacyDeployments, []source.Source, error) {
	f := &legacyDeployments{operatorNamespace: home, readers: map[string]client.Reader{}}
	var sources []source.Source
	for _, name := range []string{legacyRegistryDeployment, legacyCatalogDeployment} {
		by := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
		c, err := component.NewSelectorCache(mgr, capability.MetadataOf(registry.Deployment), by, apply.Transform())
		if err != nil {
			return nil, nil, err
		}
		f.readers[name] = c
		sources = append(sources, source.Kind(c, client.Object(capability.MetadataOf(registry.Deployment)), h))
	}
	return f, sources, nil
}

// remove deletes what is left, and returns a *reconciler.Wait until it is gone with its pods. A Deployment that comes back is made by
// another controller that would continue: that is for users to end, and the warning names it.
func (f *legacyDeployments) deleteAll(ctx context.Context, applier *apply.Applier, a *platformv1alpha1.AIHub) (warning string, err error) {
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(f.readers)) {
		for _, namespace := range sets.List(sets.New(f.operatorNamespace, a.Spec.ApplicationNamespace)) {
			key := types.NamespacedName{Namespace: namespace, Name: name}
			text, err := f.deleteOne(ctx, applier, a, key)
			if err != nil {
				return "", err
			}
			if text != "" {
				warnings = append(warnings, text)
			}
		}
	}
	return strings.Join(warnings, "; "), nil
}

// removeOne deletes one Deployment, as remove does.
func (f *legacyDeployments) deleteOne(ctx context.Context, applier *apply.Applier, a *platformv1alpha1.AIHub, key types.NamespacedName) (warning string, err error) {
	d, err := capability.GetMetadata(ctx, f.readers[key.Name], registry.Deployment, key)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading Deployment %s of an older operator: %w", key, err)
	case d == nil || !metav1.IsControlledBy(d, a):
		return "", nil
	case d.DeletionTimestamp == nil && !f.isFirstDeletion(key, d.UID):
		return fmt.Sprintf("Deployment %s of an older operator, which does the same work, was deleted and has been created again; "+
			"delete Deployment %s, which makes it, and then this one", key, legacyAIHubDeployment), nil
	}
	if err := applier.DeleteForeground(ctx, a.UID, d); err != nil {
		return "", err
	}
	return "", &reconciler.Wait{For: fmt.Sprintf("Deployment %s of an older operator, which does the same work, to be gone", key)}
}

// first notes that a Deployment is deleted, unless another one of the name was before.
func (f *legacyDeployments) isFirstDeletion(key types.NamespacedName, uid types.UID) bool {
	if before, known := f.deleted[key]; known && before != uid {
		return false
	}
	if f.deleted == nil {
		f.deleted = map[types.NamespacedName]types.UID{}
	}
	f.deleted[key] = uid
	return true
}

// forget drops what is remembered, when the AIHub is gone.
func (f *legacyDeployments) reset() {
	f.deleted = nil
}
