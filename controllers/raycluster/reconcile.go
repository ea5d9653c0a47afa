package raycluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const (
	// lookAgain is the pause where what is missing comes without an event: an API that goes, namespaces not known yet.
	lookAgain = time.Second
	// strangerRetry is the pause while a foreign object has a name that we need: its end is no event for us.
	strangerRetry = time.Minute
)

// keeper issues and renews what the pods of a cluster and the sidecar before its dashboard serve with, see certificates.Keeper.
type keeper interface {
	Keep(ctx context.Context, cluster *unstructured.Unstructured, in certificates.Inputs, memory *certificates.Memory) (time.Duration, error)
}

// clusters reconciles what is around RayClusters.
type clusters struct {
	// cached reads RayClusters as they are, metadata of what was made for them, and writes.
	cached client.Client
	whole  client.Reader
	live   client.Reader
	// pods holds those of Ray.
	pods         client.Reader
	applier      *apply.Applier
	certificates keeper
	settings     func(context.Context) (config.RayCluster, error)
	served       func() capability.Set
	domain       func() string
	// kubeRay returns the namespaces of KubeRay, false while they are looked for.
	kubeRay   func(config.RayCluster) ([]string, bool)
	recorder  events.EventRecorder
	memory    memory
	leftovers leftovers
}

// Reconcile implements reconcile.Reconciler.
func (r *clusters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := wholeCluster()
	err := r.whole.Get(ctx, request.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName, "")
		return ctrl.Result{}, r.sweep(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the RayCluster: %w", err)
	}
	var retry time.Duration
	switch c := raycluster.View(cluster.Object); {
	case c.Deleted():
		err = r.releaseFinalizer(ctx, cluster, c)
	default:
		r.forget(request.NamespacedName, cluster.GetUID())
		retry, err = r.around(ctx, cluster, c)
	}
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: retry}, nil
	case isConflict(err):
		return ctrl.Result{RequeueAfter: lookAgain}, nil // it changed under our hands; the next reconcile sees how
	case ctx.Err() == nil:
		r.warn(cluster, topicApply, ReasonNotApplied, err.Error())
	}
	return ctrl.Result{}, err
}

// isConflict tells whether an error consists of nothing but conflicts: one beside a failure must not hide it.
func isConflict(err error) bool {
	return apply.Only(err, func(err error) bool {
		answer, is := any(err).(apierrors.APIStatus)
		return is && answer.Status().Reason == metav1.StatusReasonConflict
	})
}

// around brings everything around a living cluster to what it should be. Nothing is exposed before the policies stand.
func (r *clusters) around(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) (time.Duration, error) {
	in, ready, err := r.inputs(ctx, cluster, c)
	if err != nil {
		return 0, err
	}
	if !ready {
		return lookAgain, nil
	}
	p, err := resources.Build(c, in)
	if err != nil {
		return 0, fmt.Errorf("building the objects of the RayCluster: %w", err)
	}
	if p.Binding, err = r.bindingFor(ctx, cluster, c, p); err != nil {
		return 0, err
	}
	paused, again, err := r.paused(ctx, cluster, in)
	if err != nil {
		return 0, err
	}
	work := &work{}
	stands := r.guard(ctx, work, cluster, c, in, p, paused)
	work.add(again, nil)
	if paused {
		return work.retry, errors.Join(work.errs...)
	}
	authority, known := r.memory.of(cluster).certificates.Authority(c.Names().ProxyTLS)
	p.AddTrust(c, in, authority, known)
	if stands {
		work.add(r.apply(ctx, cluster, "not everything around the cluster could be made", p.Exposing))
	}
	if len(work.errs) == 0 {
		r.memory.of(cluster).resolve(topicApply)
	}
	work.add(0, r.prune(ctx, cluster, c, append(p.All(), certificates.Wanted(c, forCertificates(in, c))...)))
	if p.Binding == nil {
		work.add(0, r.unbind(ctx, cluster, c))
	}
	work.add(0, r.reinject(ctx, cluster, c, in))
	work.add(0, r.repairPulls(ctx, cluster, c, in))
	r.tell(cluster, c, in)
	return work.retry, errors.Join(work.errs...)
}

// guard makes what guards a cluster: policies, certificates, and what the sidecar needs. It tells whether all of it stands, before
// which nothing is exposed. A paused cluster has its policies, and its certificates renewed.
func (r *clusters) guard(ctx context.Context, work *work, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs, p resources.Plan, paused bool) bool {
	failures, retry := len(work.errs), work.retry
	work.retry = 0
	work.add(r.apply(ctx, cluster, "the cluster is not published before its NetworkPolicies stand", p.Policies))
	if !paused {
		work.add(r.apply(ctx, cluster, "the dashboard is not published before its guard stands", p.Guards))
		work.add(r.bind(ctx, cluster, c, p.Binding))
	}
	stands := len(work.errs) == failures && work.retry == 0 // a retry means that a foreign object has one of the names
	work.add(retry, nil)
	if in.Mode.Active() {
		work.add(r.certificates.Keep(ctx, cluster, forCertificates(in, c), &r.memory.of(cluster).certificates))
	}
	return stands && len(work.errs) == failures
}

// apply writes objects, and tells what it means that they could not be.
func (r *clusters) apply(ctx context.Context, cluster *unstructured.Unstructured, what string, desired apply.Desired) (time.Duration, error) {
	if err := r.applier.Apply(ctx, cluster, desired); err != nil {
		return r.notApplied(cluster, what, err)
	}
	return 0, nil
}

// notApplied tells the user what could not be written, and says when to try again. An API that is just going away is no
// fault of anything.
func (r *clusters) notApplied(cluster *unstructured.Unstructured, what string, err error) (time.Duration, error) {
	if apply.Vanishing(err) {
		return lookAgain, nil
	}
	err = fmt.Errorf("%s: %w", what, err)
	if apply.Blocked(err) {
		r.warn(cluster, topicApply, ReasonNotApplied, err.Error())
		return strangerRetry, nil
	}
	return 0, err
}

// warn says what its user should know of a cluster, once for each change.
func (r *clusters) warn(cluster *unstructured.Unstructured, topic topic, reason, text string) {
	r.event(cluster, topic, corev1.EventTypeWarning, reason, text)
}

// note is warn for what nothing is wrong with.
func (r *clusters) note(cluster *unstructured.Unstructured, topic topic, reason, text string) {
	r.event(cluster, topic, corev1.EventTypeNormal, reason, text)
}

func (r *clusters) event(cluster *unstructured.Unstructured, topic topic, severity, reason, text string) {
	if r.memory.of(cluster).isNews(topic, text) {
		r.recorder.Eventf(cluster, nil, severity, reason, eventAction, "%s", clip(text))
	}
}

// forget drops what is remembered of the cluster that had the name before the one with the uid; empty for none.
func (r *clusters) forget(name types.NamespacedName, uid types.UID) {
	if gone := r.memory.replace(name, uid); gone != nil {
		r.applier.Forget(gone.uid)
		gone.certificates.Forget()
	}
}

// work collects how the steps of a reconcile ended: one that fails does not keep the later ones from being done.
type work struct {
	retry time.Duration
	errs  []error
}

func (w *work) add(retry time.Duration, err error) {
	if err != nil {
		w.errs = append(w.errs, err)
	}
	if retry > 0 && (w.retry == 0 || retry < w.retry) {
		w.retry = retry
	}
}

// wholeCluster is an empty RayCluster.
func wholeCluster() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(raycluster.GVK)
	return u
}
