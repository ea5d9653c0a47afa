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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// lookAgain is the pause where what is missing comes without an event: an API that goes, namespaces not known yet.
	lookAgain = time.Second
	// strangerRetry is the pause while a foreign object has a name that we need: its end is no event for us.
	strangerRetry = time.Minute
	// pauseRetry is the pause until the namespace of a paused cluster is read again, which no event announces.
	pauseRetry = time.Minute
	// sidecarRetry is the pause until admission is triggered again to replace a sidecar, sidecarPatience is how long: aggregated APIs are
	// polled every ten minutes.
	sidecarRetry, sidecarPatience = time.Minute, 15 * time.Minute
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
	clock     clock.PassiveClock
	memory    memory
	leftovers leftovers
}

// Reconcile implements reconcile.Reconciler. What it waits for is a *reconciler.Wait.
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
	if c := raycluster.View(cluster.Object); c.Deleted() {
		err = r.releaseFinalizer(ctx, cluster, c)
	} else {
		r.forget(request.NamespacedName, cluster.GetUID())
		err = r.around(ctx, cluster, c)
	}
	_, waiting := reconciler.AsWait(err)
	if !waiting && isConflict(err) {
		return ctrl.Result{RequeueAfter: lookAgain}, nil // it changed under our hands; the next reconcile sees how
	}
	if err != nil && !waiting && ctx.Err() == nil {
		r.warn(cluster, topicApply, ReasonNotApplied, err.Error())
	}
	return ctrl.Result{}, err
}

// isConflict tells whether an error consists of nothing but conflicts, and waits: one beside a failure must not hide it.
func isConflict(err error) bool {
	return apply.OnlyErrors(err, func(err error) bool {
		if _, waits := reconciler.AsWait(err); waits {
			return true
		}
		answer, is := any(err).(apierrors.APIStatus)
		return is && answer.Status().Reason == metav1.StatusReasonConflict
	})
}

// around brings everything around a living cluster to what it should be. Nothing is exposed before the policies stand. A step that fails
// does not keep the later ones from being done.
func (r *clusters) around(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	in, err := r.inputs(ctx, cluster, c)
	if err != nil {
		return err
	}
	p := resources.Build(c, in)
	if p.Binding, err = r.bindingFor(ctx, cluster, c, p); err != nil {
		return err
	}
	paused, again, err := r.paused(ctx, cluster, in)
	if err != nil {
		return err
	}
	errs, due := r.guard(ctx, cluster, c, in, p, paused)
	if !paused {
		authority, known := r.memory.of(cluster).certificates.Authority(c.Names().ProxyTLS, r.clock.Now())
		p.AddTrust(c, in, authority, known)
		errs = r.publish(ctx, cluster, c, in, p, errs)
		gateway := common.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
		said, err := routestatus.Read(ctx, r.whole, gateway, p.Exposing, r.clock.Now())
		errs = append(errs, err, said.Await())
		r.tell(cluster, c, in, said)
	}
	if in.HostTaken {
		errs = append(errs, &reconciler.Wait{For: "the host of the dashboard to be free", Retry: strangerRetry})
	}
	err = errors.Join(errs...)
	if _, waiting := reconciler.AsWait(err); err != nil && !waiting {
		return err
	}
	return errors.Join(err, again, due)
}

// guard makes what guards a cluster: policies, certificates, and what the sidecar needs. Before all of it stands nothing is exposed. A
// paused cluster has its policies, and its certificates renewed. It returns what kept it from standing, and a wait for the next renewal.
func (r *clusters) guard(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs,
	p resources.Plan, paused bool) (errs []error, due error) {
	errs = append(errs, r.apply(ctx, cluster, "the cluster is not published before its NetworkPolicies stand", p.Policies))
	if !paused {
		errs = append(errs, r.apply(ctx, cluster, "the dashboard is not published before its guard stands", p.Guards), r.bind(ctx, cluster, c, p.Binding))
	}
	if in.Mode.Active() {
		after, err := r.certificates.Keep(ctx, cluster, forCertificates(in, c), &r.memory.of(cluster).certificates)
		errs, due = append(errs, err), &reconciler.Wait{For: "a certificate to be due", Retry: after}
	}
	return errs, due
}

// publish exposes the cluster if nothing kept its guards from standing, removes what is not wanted, and mends pods and their templates.
func (r *clusters) publish(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs,
	p resources.Plan, errs []error) []error {
	if errors.Join(errs...) == nil {
		errs = append(errs, r.apply(ctx, cluster, "not everything around the cluster could be made", p.Exposing))
	}
	if errors.Join(errs...) == nil {
		r.memory.of(cluster).resolve(topicApply)
	}
	errs = append(errs, r.prune(ctx, cluster, c, append(p.All(), certificates.Wanted(c, forCertificates(in, c))...)))
	if p.Binding == nil {
		errs = append(errs, r.unbind(ctx, cluster, c))
	}
	return append(errs, r.reinject(ctx, cluster, c, in), r.repairPulls(ctx, cluster, c, in))
}

// apply writes objects, and tells what it means that they could not be. A foreign object that stands in the way is reported while it is
// waited for.
func (r *clusters) apply(ctx context.Context, cluster *unstructured.Unstructured, what string, desired apply.Desired) error {
	err := r.applier.Apply(ctx, cluster, desired)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", what, err)
	if apply.Blocked(err) {
		r.warn(cluster, topicApply, ReasonNotApplied, err.Error())
	}
	return err
}

// prune removes what is not wanted, and with it what the CodeFlare operator made that is not wanted.
func (r *clusters) prune(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, wanted apply.Desired) error {
	if err := r.applier.Prune(ctx, cluster, wanted, prunable(r.served()), nil); err != nil {
		return fmt.Errorf("removing what is not wanted: %w", err)
	}
	return r.removeLeftovers(ctx, cluster, c, wanted)
}

// paused tells whether a cluster is left alone but for its policies and certificates, and when to look again. All editors of a RayCluster
// can set the annotation, so it counts with an administrator's word only: the setting, or the same annotation on the namespace.
func (r *clusters) paused(ctx context.Context, cluster *unstructured.Unstructured, in resources.Inputs) (paused bool, again, err error) {
	if !in.Mode.Active() || !isPaused(cluster.GetAnnotations()) {
		r.memory.of(cluster).resolve(topicPaused)
		return false, nil, nil
	}
	again = &reconciler.Wait{For: "the pause to be allowed or to end", Retry: pauseRetry}
	allowed := in.AllowPause
	if !allowed {
		namespace, err := capability.GetMetadata(ctx, r.live, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: cluster.GetNamespace()})
		if err != nil {
			return false, nil, err
		}
		allowed = namespace != nil && isPaused(namespace.Annotations)
	}
	if !allowed {
		r.warn(cluster, topicPaused, ReasonPauseIgnored, fmt.Sprintf("annotation %s has no effect: an administrator has to allow it "+
			"by raycluster.allowPause, or by the same annotation on namespace %s", names.PausedAnnotation, cluster.GetNamespace()))
		return false, again, nil
	}
	r.note(cluster, topicPaused, ReasonPaused, fmt.Sprintf(
		"annotation %s is set: only NetworkPolicies and certificates are kept up to date", names.PausedAnnotation))
	return true, again, nil
}

func isPaused(annotations map[string]string) bool {
	paused, _ := names.Paused(annotations)
	return paused
}

// warn says what its user should know of a cluster, once for each change; an empty text says that there is nothing any more.
func (r *clusters) warn(cluster *unstructured.Unstructured, topic topic, reason, text string) {
	r.event(cluster, topic, corev1.EventTypeWarning, reason, eventAction, text)
}

// note is warn for what nothing is wrong with.
func (r *clusters) note(cluster *unstructured.Unstructured, topic topic, reason, text string) {
	r.event(cluster, topic, corev1.EventTypeNormal, reason, eventAction, text)
}

func (r *clusters) event(cluster *unstructured.Unstructured, topic topic, severity, reason, action, text string) {
	if text == "" {
		r.memory.of(cluster).resolve(topic)
	} else if r.memory.of(cluster).isNews(topic, text) {
		r.recorder.Eventf(cluster, nil, severity, reason, action, "%s", conditions.Clip(text, maxNote))
	}
}

// forget drops what is remembered of the cluster that had the name before the one with the uid; empty for none.
func (r *clusters) forget(name types.NamespacedName, uid types.UID) {
	if gone := r.memory.replace(name, uid); gone != nil {
		r.applier.Forget(gone.uid)
		gone.certificates.Forget()
	}
}

// wholeCluster is an empty RayCluster.
func wholeCluster() *unstructured.Unstructured {
	return common.NewUnstructured(raycluster.GVK)
}
