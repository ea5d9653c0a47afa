package models

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// models reconciles models of all sources.
type models struct {
	// sources by their ids.
	sources map[string]origin
	// client of a namespace; false where there is none.
	client func(namespace string) (meshclient.Client, bool)
	// enabled tells whether a namespace is served.
	enabled func(ctx context.Context, namespace string) (bool, error)
	// supported tells whether a namespace has a runtime for models with a label.
	supported func(ctx context.Context, namespace, label string) (bool, error)
	// cause says why no runtime of a namespace serves models with a label, and whether that is known yet.
	cause    func(ctx context.Context, namespace, label string) (modelmeshcontroller.Cause, bool, error)
	clock    clock.PassiveClock
	recorder events.EventRecorder
	memory   *memory
	breakers breakers
}

// Reconcile implements reconcile.Reconciler. The namespace of a request has the source before it.
func (r *models) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	id, name := split(key)
	from := r.sources[id] // other sources enqueue nothing
	rec, err := from.get(ctx, name)
	switch {
	case errors.Is(err, errAway):
		return ctrl.Result{}, nil // all its models are reconciled when it is back
	case err != nil:
		return ctrl.Result{}, err
	case rec == nil:
		retry, err := r.remove(ctx, key)
		return ctrl.Result{RequeueAfter: retry}, err
	}
	retry, err := r.reconcile(ctx, key, from, rec)
	return ctrl.Result{RequeueAfter: retry}, err
}

// reconcile brings mesh and status to what the spec wants. It returns when to look again by itself, zero for never.
func (r *models) reconcile(ctx context.Context, key types.NamespacedName, from origin, rec *record) (time.Duration, error) {
	if rec.paused() { // what the mesh reports meanwhile is still to be done when it no longer is
		_, err := from.write(ctx, rec, rec.status)
		if apierrors.IsConflict(err) {
			return reconciler.ConflictRetry, nil
		}
		return 0, err
	}
	e := r.memory.take(key)
	next, err := r.status(ctx, rec, &e)
	if err != nil {
		r.memory.put(key, e)
		r.memory.mark(key) // what it was woken for is still to be done
		return 0, err
	}
	if e.outcome != unasked || rec.problem != "" {
		next.ObservedGeneration = rec.object.GetGeneration()
	}
	written, err := from.write(ctx, rec, next)
	if written {
		r.recordEvents(rec, next)
	}
	r.memory.put(key, e)
	if apierrors.IsConflict(err) {
		return reconciler.ConflictRetry, nil
	}
	if err != nil || e.again.IsZero() {
		return 0, err
	}
	return max(e.again.Sub(r.clock.Now()), time.Millisecond), nil
}

// status is what the status has to be, after the mesh was asked where that is due.
func (r *models) status(ctx context.Context, rec *record, e *entry) (v1alpha1.PredictorStatus, error) {
	client, found := r.client(rec.Namespace)
	if !found {
		*e = entry{}
		return r.unserved(ctx, rec)
	}
	now := r.clock.Now()
	asked := rec.id() + " " + string(rec.UID) + " " + rec.problem
	called := e.due(asked, now)
	var failure error
	if called {
		e.begin(asked)
		failure = r.call(rec.Namespace, func() error { return r.ask(ctx, client, rec, e) })
	}
	next, err := r.desiredStatus(ctx, client, rec, e)
	if err != nil {
		return next, err
	}
	if called {
		plan(ctx, e, next, failure, now)
	}
	return r.withTrouble(rec, e, next), nil
}

// plan decides when the mesh is called again.
func plan(ctx context.Context, e *entry, next v1alpha1.PredictorStatus, failure error, now time.Time) {
	switch {
	case errors.Is(failure, errBusy):
		e.again = now.Add(pause(maxCalls, pauseBusy, pauseMin))
	case failure != nil:
		log.FromContext(ctx).Info("The mesh did not answer; it is called again", "reason", failure.Error())
		e.failed(failure)
		e.askAgain(now, pauseMax)
	case e.outcome == taken || e.outcome == different:
		e.askAgain(now, pauseMax)
	case e.outcome == answered && underway(next):
		e.askAgain(now, e.longest(next))
	default: // whatever happens now comes as an event, of etcd or of addresses
		e.rest()
	}
	if failure == nil {
		e.failures, e.trouble = 0, ""
	}
}

// withTrouble says in the status that the mesh gives no answer, once it has not for a while. What is known of the model stays: a mesh
// that does not answer the manager may still answer requests.
func (r *models) withTrouble(rec *record, e *entry, next v1alpha1.PredictorStatus) v1alpha1.PredictorStatus {
	if e.failures < maxFailures || rec.problem != "" {
		return next
	}
	if silent(rec.status.LastFailureInfo) {
		next.LastFailureInfo = rec.status.LastFailureInfo // the text of each attempt differs
	} else {
		next = withFailure(next, v1alpha1.RuntimeUnhealthy, textSilent+conditions.Clip(redact.Text(e.trouble), modelmeshcontroller.MaxEventNoteBytes), rec.id())
	}
	next.Available = rec.status.Available
	return next
}

// call runs what calls the mesh of a namespace, unless that does not answer.
func (r *models) call(namespace string, run func() error) error {
	if err := r.breakers.allow(namespace, r.clock.Now()); err != nil {
		return err
	}
	err := run()
	r.breakers.done(namespace, err, r.clock.Now())
	return err
}

// unserved is the status where there is no client. Where a namespace is about to be served it stays as it is.
func (r *models) unserved(ctx context.Context, rec *record) (v1alpha1.PredictorStatus, error) {
	next := *rec.status.DeepCopy()
	enabled, err := r.enabled(ctx, rec.Namespace)
	switch {
	case err != nil:
		return next, err
	case rec.problem != "":
		next = withFailure(next, v1alpha1.InvalidPredictorSpec, rec.problem, rec.id())
	case enabled:
		return next, nil
	default:
		next = withFailure(clearInvalidSpec(next), v1alpha1.RuntimeUnhealthy, textNotServed, rec.id())
	}
	next.Available = available(next) && enabled
	return next, nil
}

// remove takes a model out of the mesh whose resource is not there, if it ever was in there as far as is known. While no pod can be
// called it stays in memory; after a restart the mesh's own list shows it again.
func (r *models) remove(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if _, known := r.memory.look(key); !known {
		return 0, nil
	}
	id, name := split(key)
	client, found := r.client(name.Namespace)
	if !found {
		enabled, err := r.enabled(ctx, name.Namespace)
		if err == nil && !enabled {
			r.memory.drop(key)
		}
		return 0, err
	}
	e := r.memory.take(key)
	e.begin("removal")
	err := r.call(name.Namespace, func() error {
		_, err := client.DeleteVModel(ctx, &meshpb.DeleteVModelRequest{VModelId: name.Name, Owner: id})
		return err
	})
	switch {
	case err == nil:
		r.memory.put(key, e)
		r.memory.forget(key)
		return 0, nil
	case errors.Is(err, meshclient.ErrNoAddress):
		r.memory.put(key, e)
		return 0, nil
	default:
		log.FromContext(ctx).Info("The model was not removed from the mesh; it is tried again", "reason", err.Error())
		now := r.clock.Now()
		e.askAgain(now, pauseMax)
		r.memory.put(key, e)
		return e.again.Sub(now), nil
	}
}
