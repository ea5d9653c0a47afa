package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// This file can be deleted with release 1.0: migration from the legacy operator then requires an earlier release.

// Deployments of the legacy operator. legacyAIHubDeployment creates the other two.
const (
	legacyRegistryDeployment = "model-registry-operator-controller-manager"
	legacyCatalogDeployment  = "catalog-controller-manager"
	legacyAIHubDeployment    = "aihub-controller-manager"
)

// legacyDeployments deletes the Deployments that the legacy operator created for the AIHub, because this operator replaces them. It deletes only
// Deployments that the AIHub controls, in namespaces of administrators, because users can forge ownerReferences in their own
// namespaces. Any other Deployment may be this operator under an older name.
type legacyDeployments struct {
	operatorNamespace string
	// readers maps the name of a Deployment to its cache.
	readers map[string]client.Reader

	// deleted holds the UIDs of deleted Deployments. It needs no lock, because reconciles of the singleton AIHub never overlap.
	deleted map[types.NamespacedName]types.UID
}

// newLegacyDeployments creates a cache and a source for each of the two names, because list and watch are permitted by name only.
func newLegacyDeployments(mgr ctrl.Manager, operatorNamespace string, h handler.EventHandler) (*legacyDeployments, []source.Source, error) {
	l := &legacyDeployments{operatorNamespace: operatorNamespace, readers: map[string]client.Reader{}}
	var sources []source.Source
	caches, err := servers.NamedCaches(mgr, "", apply.Transform(), legacyRegistryDeployment, legacyCatalogDeployment)
	for name, c := range caches {
		l.readers[name] = c
		sources = append(sources, source.Kind(c, client.Object(objectmeta.New(servers.Deployment)), h))
	}
	return l, sources, err
}

// deleteAll deletes the Deployments, and returns a *reconciler.Wait until they and their pods are deleted. It does not delete a recreated
// Deployment, because its creator would recreate it again. The warning names the Deployment and the creator.
func (l *legacyDeployments) deleteAll(ctx context.Context, applier *apply.Applier, a *platformv1alpha1.AIHub) (warning string, err error) {
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(l.readers)) {
		for _, namespace := range sets.List(sets.New(l.operatorNamespace, a.Spec.ApplicationNamespace)) {
			key := types.NamespacedName{Namespace: namespace, Name: name}
			text, err := l.deleteOne(ctx, applier, a, key)
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

func (l *legacyDeployments) deleteOne(ctx context.Context, applier *apply.Applier, a *platformv1alpha1.AIHub, key types.NamespacedName) (warning string, err error) {
	d, err := objectmeta.Get(ctx, l.readers[key.Name], servers.Deployment, key)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading Deployment %s of a legacy operator: %w", key, err)
	case d == nil || !metav1.IsControlledBy(d, a):
		return "", nil
	case d.DeletionTimestamp == nil && !l.recordDeletion(key, d.UID):
		return fmt.Sprintf("Deployment %s of a legacy operator, which this operator replaces, was deleted and has been created again; "+
			"delete Deployment %s, which creates it, and then this one", key, legacyAIHubDeployment), nil
	}
	if err := applier.DeleteOwned(ctx, a.UID, d, apply.Foreground); err != nil {
		return "", err
	}
	return "", &reconciler.Wait{For: fmt.Sprintf("Deployment %s of a legacy operator, which this operator replaces, to be deleted", key)}
}

// recordDeletion stores the UID of a Deployment before its deletion. It returns false if a Deployment of that name with another UID is stored.
func (l *legacyDeployments) recordDeletion(key types.NamespacedName, uid types.UID) bool {
	if deleted, found := l.deleted[key]; found && deleted != uid {
		return false
	}
	if l.deleted == nil {
		l.deleted = map[types.NamespacedName]types.UID{}
	}
	l.deleted[key] = uid
	return true
}

// reset removes the stored UIDs of a deleted AIHub.
func (l *legacyDeployments) reset() {
	l.deleted = nil
}
