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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

const (
	// sidecarRequeue is the interval of triggering admission to replace a sidecar.
	sidecarRequeue = time.Minute
	// sidecarTimeout is how long admission is triggered repeatedly: other replicas poll aggregated APIs every ten minutes.
	sidecarTimeout = 15 * time.Minute
)

// certificateReconciler issues and renews the certificates of pods and of the sidecar, see certificates.Reconciler.
type certificateReconciler interface {
	Reconcile(ctx context.Context, cluster *unstructured.Unstructured, in certificates.Inputs, memory *certificates.Memory) (time.Duration, error)
}

// clusterReconciler reconciles the objects of RayClusters.
type clusterReconciler struct {
	// client patches RayClusters, and reads the metadata of managed objects from the cache.
	client client.Client
	// cacheReader reads whole RayClusters and routes.
	cacheReader client.Reader
	apiReader   client.Reader
	// pods reads the pods of Ray clusters.
	pods         client.Reader
	applier      *apply.Applier
	certificates certificateReconciler
	settings     func(context.Context) (config.RayCluster, error)
	served       func() capability.Set
	domain       func() string
	// kubeRayNamespaces returns the namespaces of KubeRay, and false until discovery is complete.
	kubeRayNamespaces func(config.RayCluster) ([]string, bool)
	recorder          events.EventRecorder
	clock             clock.PassiveClock
	states            reconciler.SyncMap[types.NamespacedName, *clusterState]
	takeOver          takeover.Interface[*unstructured.Unstructured]
}

// Reconcile implements reconcile.Reconciler. It returns a *reconciler.Wait while it waits for a change.
func (r *clusterReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := emptyRayCluster()
	err := r.cacheReader.Get(ctx, request.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.forget(request.NamespacedName, "")
		deleted := raycluster.View(map[string]any{"metadata": map[string]any{"name": request.Name, "namespace": request.Namespace}})
		return ctrl.Result{}, r.deleteBindings(ctx, r.client, "", deleted, "") // a user may have removed the finalizer
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the RayCluster: %w", err)
	}
	if c := raycluster.View(cluster.Object); c.Terminating() {
		err = r.removeFinalizer(ctx, cluster, c)
	} else {
		r.forget(request.NamespacedName, cluster.GetUID())
		err = r.reconcileNormal(ctx, cluster, c)
	}
	_, waiting := reconciler.AsWait(err)
	if !waiting && isConflict(err) {
		return ctrl.Result{RequeueAfter: reconciler.RequeueSoon}, nil // the cache is stale
	}
	if err != nil && !waiting && ctx.Err() == nil {
		r.recordWarning(cluster, topicApply, ReasonNotApplied, err.Error())
	}
	return ctrl.Result{}, err
}

// isConflict reports whether err consists only of conflicts and waits. Any other error must be reported.
func isConflict(err error) bool {
	return apply.AllErrorsMatch(err, func(err error) bool {
		if _, waits := reconciler.AsWait(err); waits {
			return true
		}
		status, ok := any(err).(apierrors.APIStatus)
		return ok && status.Status().Reason == metav1.StatusReasonConflict
	})
}

// reconcileNormal reconciles all objects of a cluster that is not being deleted. Once plan and pause are known, an error in one step does
// not skip the later steps, but nothing is exposed unless reconcileSecurity succeeds.
func (r *clusterReconciler) reconcileNormal(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	in, err := r.inputs(ctx, cluster, c)
	if err != nil {
		return err
	}
	plan := resources.Build(c, in)
	if plan.Binding, err = r.desiredBinding(ctx, cluster, c, plan); err != nil {
		return err
	}
	paused, pauseWait, err := r.paused(ctx, cluster, in)
	if err != nil {
		return err
	}
	errs, renewalWait := r.reconcileSecurity(ctx, cluster, c, in, plan, paused)
	if !paused {
		authority, known := r.stateOf(cluster).certificates.Authority(c.Names().ProxyTLS, r.clock.Now())
		plan.AddBackendTLSPolicy(c, in, authority, known)
		errs = r.reconcileExposure(ctx, cluster, c, in, plan, errs)
		gateway := pkgresources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
		routes, err := routestatus.Read(ctx, r.cacheReader, gateway, plan.Exposure, r.clock.Now())
		errs = append(errs, err, routes.Wait())
		r.recordEvents(cluster, c, in, routes)
	}
	err = errors.Join(errs...)
	if _, waiting := reconciler.AsWait(err); err != nil && !waiting {
		return err
	}
	return errors.Join(err, pauseWait, renewalWait)
}

// reconcileSecurity applies NetworkPolicies and certificates and, unless the cluster is paused, the objects of the sidecar and its
// ClusterRoleBinding. It returns the errors, and a wait for the next renewal.
func (r *clusterReconciler) reconcileSecurity(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs,
	plan resources.Plan, paused bool) (errs []error, renewalWait error) {
	errs = append(errs, r.apply(ctx, cluster, "the cluster is not published until its NetworkPolicies exist", plan.Policies))
	if !paused {
		errs = append(errs, r.apply(ctx, cluster, "the dashboard is not published until the objects of its authentication proxy exist", plan.SidecarObjects), r.ensureBinding(ctx, cluster, c, plan.Binding))
	}
	if in.Mode.Active() {
		after, err := r.certificates.Reconcile(ctx, cluster, certificateInputs(in, c), &r.stateOf(cluster).certificates)
		errs, renewalWait = append(errs, err), &reconciler.Wait{For: "a certificate to be due", Retry: after}
	}
	return errs, renewalWait
}

// reconcileExposure applies Services and routes if errs contains no error, and deletes undesired objects. It triggers admission to update
// the pod templates, and deletes pods that lack a pull secret.
func (r *clusterReconciler) reconcileExposure(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs,
	plan resources.Plan, errs []error) []error {
	if errors.Join(errs...) == nil {
		errs = append(errs, r.apply(ctx, cluster, "some objects of the cluster could not be applied", plan.Exposure))
	}
	if errors.Join(errs...) == nil {
		r.stateOf(cluster).messages.Replace(topicApply, "")
	}
	errs = append(errs, r.prune(ctx, cluster, append(plan.All(), certificates.Desired(c, certificateInputs(in, c))...)))
	if plan.Binding == nil {
		errs = append(errs, r.removeBindingAndFinalizer(ctx, cluster, c))
	}
	return append(errs, r.triggerAdmission(ctx, cluster, c, in), r.deletePodsMissingPullSecret(ctx, cluster, c, in))
}

// apply applies objects. The error begins with the consequence. If a retry cannot fix the error, see apply.IsBlocked, it records an Event.
func (r *clusterReconciler) apply(ctx context.Context, cluster *unstructured.Unstructured, consequence string, desired apply.Desired) error {
	topic := topicApply + topic(consequence)
	err := r.applier.Apply(ctx, cluster, desired)
	if err == nil {
		r.stateOf(cluster).messages.Replace(topic, "")
		return nil
	}
	err = fmt.Errorf("%s: %w", consequence, err)
	if apply.IsBlocked(err) {
		r.recordWarning(cluster, topic, ReasonNotApplied, err.Error())
	}
	return err
}

// prune deletes undesired objects, including those of a legacy operator.
func (r *clusterReconciler) prune(ctx context.Context, cluster *unstructured.Unstructured, desired apply.Desired) error {
	if err := r.applier.Prune(ctx, cluster, desired, prunedKinds(r.served()), nil); err != nil {
		return fmt.Errorf("deleting objects that are no longer desired: %w", err)
	}
	return r.takeOver.Prune(ctx, cluster, desired)
}

// paused reports whether reconciliation is limited to NetworkPolicies and certificates, and returns the wait for the next check. All editors
// of a RayCluster can set the annotation, so an administrator must allow it by the setting or by the same annotation on the namespace.
func (r *clusterReconciler) paused(ctx context.Context, cluster *unstructured.Unstructured, in resources.Inputs) (paused bool, wait, err error) {
	if !in.Mode.Active() || !isPaused(cluster.GetAnnotations()) {
		r.stateOf(cluster).messages.Replace(topicPaused, "")
		return false, nil, nil
	}
	wait = &reconciler.Wait{For: "the pause to be allowed or to end", Retry: reconciler.RequeueBlocked}
	allowed := in.AllowPause
	if !allowed {
		namespace, err := objectmeta.Get(ctx, r.apiReader, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: cluster.GetNamespace()})
		if err != nil {
			return false, nil, err
		}
		allowed = namespace != nil && isPaused(namespace.Annotations)
	}
	if !allowed {
		r.recordWarning(cluster, topicPaused, ReasonPauseIgnored, fmt.Sprintf("annotation %s has no effect: an administrator has to allow it "+
			"by raycluster.allowPause, or by the same annotation on namespace %s", names.PausedAnnotation, cluster.GetNamespace()))
		return false, wait, nil
	}
	r.recordNormal(cluster, topicPaused, ReasonPaused, fmt.Sprintf(
		"annotation %s is set: only NetworkPolicies and certificates are kept up to date", names.PausedAnnotation))
	return true, wait, nil
}

func isPaused(annotations map[string]string) bool {
	paused, _ := names.Paused(annotations)
	return paused
}

// recordWarning records a Warning about a cluster, once for each change of the note. An empty note clears the topic.
func (r *clusterReconciler) recordWarning(cluster *unstructured.Unstructured, topic topic, reason, note string) {
	r.recordEvent(cluster, topic, corev1.EventTypeWarning, reason, eventAction, note)
}

// recordNormal is recordWarning for an Event of type Normal.
func (r *clusterReconciler) recordNormal(cluster *unstructured.Unstructured, topic topic, reason, note string) {
	r.recordEvent(cluster, topic, corev1.EventTypeNormal, reason, eventAction, note)
}

func (r *clusterReconciler) recordEvent(cluster *unstructured.Unstructured, topic topic, eventType, reason, action, note string) {
	if r.stateOf(cluster).messages.Replace(topic, note) && note != "" {
		r.recorder.Eventf(cluster, nil, eventType, reason, action, "%s", note)
	}
}

func emptyRayCluster() *unstructured.Unstructured {
	return pkgresources.NewUnstructured(raycluster.GVK)
}
