// Package takeover deletes the Deployments of the legacy operator of the AIHub. The manager works without this package: it can be deleted
// in version 1.0, unless that version supports direct upgrades from the legacy operator.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// Deployments of the legacy operator. aihubDeployment creates the other two.
const (
	registryDeployment = "model-registry-operator-controller-manager"
	catalogDeployment  = "catalog-controller-manager"
	aihubDeployment    = "aihub-controller-manager"
)

// TakeOver deletes the Deployments that the legacy operator created for the AIHub, because this operator replaces them. It deletes only
// Deployments that the AIHub controls, in namespaces of administrators, because users can forge ownerReferences in their own
// namespaces. Any other Deployment may be this operator under an older name.
type TakeOver struct {
	takeover.None[*platformv1alpha1.AIHub]

	Applier           *apply.Applier
	OperatorNamespace string
	// Readers maps the name of a Deployment to its reader.
	Readers map[string]client.Reader

	// deleted holds the UIDs of the Deployments that were deleted for the AIHub with the UID owner. It needs no lock, because reconciles of
	// the singleton AIHub never overlap.
	deleted map[types.NamespacedName]types.UID
	owner   types.UID
}

// New adds a cache for each Deployment to the manager, because list and watch are permitted by name only.
func New(mgr ctrl.Manager, applier *apply.Applier, operatorNamespace string) (*TakeOver, error) {
	t := &TakeOver{Applier: applier, OperatorNamespace: operatorNamespace, Readers: map[string]client.Reader{}}
	caches, err := servers.NamedCaches(mgr, "", apply.Transform(), registryDeployment, catalogDeployment)
	for name, c := range caches {
		t.Readers[name] = c
	}
	return t, err
}

// Sources returns the sources of the Deployments for a controller.
func (t *TakeOver) Sources(h handler.EventHandler) (sources []source.Source) {
	for _, reader := range t.Readers {
		sources = append(sources, source.Kind(reader.(cache.Cache), client.Object(objectmeta.New(servers.Deployment)), h))
	}
	return sources
}

// Prune deletes the Deployments, and returns a *reconciler.Wait until they and their pods are deleted. It does not delete a recreated
// Deployment, because its creator would recreate it again: it returns a takeover.Warning that names the Deployment and the creator.
func (t *TakeOver) Prune(ctx context.Context, a *platformv1alpha1.AIHub, _ apply.Desired) error {
	if t.owner != a.UID {
		t.owner, t.deleted = a.UID, map[types.NamespacedName]types.UID{}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(t.Readers)) {
		for _, namespace := range sets.List(sets.New(t.OperatorNamespace, a.Spec.ApplicationNamespace)) {
			err := t.deleteOne(ctx, a, types.NamespacedName{Namespace: namespace, Name: name})
			if warning, ok := errors.AsType[takeover.Warning](err); ok {
				warnings = append(warnings, string(warning))
			} else if err != nil {
				return err
			}
		}
	}
	if len(warnings) > 0 {
		return takeover.Warning(strings.Join(warnings, "; "))
	}
	return nil
}

func (t *TakeOver) deleteOne(ctx context.Context, a *platformv1alpha1.AIHub, key types.NamespacedName) error {
	d, err := objectmeta.Get(ctx, t.Readers[key.Name], servers.Deployment, key)
	switch {
	case err != nil:
		return fmt.Errorf("reading Deployment %s of a legacy operator: %w", key, err)
	case d == nil || !metav1.IsControlledBy(d, a):
		return nil
	}
	if d.DeletionTimestamp == nil {
		if deleted, found := t.deleted[key]; found && deleted != d.UID {
			return takeover.Warning(fmt.Sprintf("Deployment %s of a legacy operator, which this operator replaces, was deleted and has been created again; "+
				"delete Deployment %s, which creates it, and then this one", key, aihubDeployment))
		}
		t.deleted[key] = d.UID
	}
	if err := t.Applier.DeleteOwned(ctx, a.UID, d, apply.Foreground); err != nil {
		return err
	}
	return &reconciler.Wait{For: fmt.Sprintf("Deployment %s of a legacy operator, which this operator replaces, to be deleted", key)}
}
