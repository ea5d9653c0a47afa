package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// ReasonNotApplied is the reason of the Event for foreign objects of the same name and for deletions that timed out.
const ReasonNotApplied = "AddonNotApplied"

// addonReconciler reconciles the objects of an owner.
type addonReconciler struct {
	groups    map[types.NamespacedName]group
	served    func() capability.Set
	apiReader client.Reader
	applier   *apply.Applier
	recorder  events.EventRecorder
	// reported stores the message of the last Event of each owner.
	reported reconciler.UIDMap[string]
}

// Reconcile implements reconcile.Reconciler.
func (r *addonReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	g, served := r.groups[request.NamespacedName], r.served()
	var (
		kinds   []schema.GroupVersionKind
		desired apply.Desired
	)
	for _, object := range g.objects {
		kind := object.GroupVersionKind()
		if !served.Has(kind) {
			continue
		}
		kinds = append(kinds, kind)
		// Kinds of disabled components are not watched and therefore not in served.
		if served.HasAll(g.requires...) {
			desired = append(desired, apply.Object{Config: client.ApplyConfigurationFromUnstructured(object), Ownership: apply.Owned})
		}
	}
	if len(kinds) == 0 {
		return reconcile.Result{}, nil
	}
	owner, err := r.owner(ctx, g.owner, request.NamespacedName)
	if err != nil || owner == nil {
		return reconcile.Result{}, err
	}
	kinds = slices.Compact(kinds)
	return r.toResult(owner, errors.Join(r.applier.Apply(ctx, owner, desired), r.applier.Prune(ctx, owner, desired, kinds, nil)))
}

// owner returns the metadata of an owner, or nil if it does not exist or is terminating. It lists by name, because the applier already
// needs the list permission on owners.
func (r *addonReconciler) owner(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (client.Object, error) {
	list := objectmeta.NewList(kind)
	if err := r.apiReader.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{metav1.ObjectNameField: name.Name}); err != nil {
		return nil, fmt.Errorf("reading the owner %s %s: %w", kind.Kind, name, err)
	}
	if len(list.Items) == 0 || list.Items[0].DeletionTimestamp != nil {
		return nil, nil
	}
	list.Items[0].SetGroupVersionKind(kind)
	return &list.Items[0], nil
}

// toResult reports foreign objects and timed-out deletions in one Event, requeues for other terminating objects, and returns other errors.
func (r *addonReconciler) toResult(owner client.Object, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.reported.Delete(owner.GetUID())
		return reconcile.Result{}, nil
	case apply.IsTerminating(err):
		return reconcile.Result{RequeueAfter: reconciler.RequeueSoon}, nil
	case !apply.IsBlocked(err):
		return reconcile.Result{}, err
	}
	if last, _ := r.reported.Get(owner.GetUID()); last != err.Error() {
		r.reported.Set(owner.GetUID(), err.Error())
		r.recorder.Eventf(owner, nil, corev1.EventTypeWarning, ReasonNotApplied, "Reconcile", "%s", err.Error())
	}
	return reconcile.Result{RequeueAfter: reconciler.RequeueBlocked}, nil
}
