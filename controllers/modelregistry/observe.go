package modelregistry

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// cooldown is how long a Deployment has to be available before it counts.
	cooldown = 5 * time.Second
	// grace is how long what follows a Deployment may take until it counts as a failure.
	grace = time.Minute
	// lookAgain is how often a server that is not available is looked at although nothing was heard of it: the log of a container
	// changes without an event.
	lookAgain = 30 * time.Second
)

// observe tells whether the server answers, and if not, why.
func (r *registries) observe(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.reportLeftover(ctx, m); err != nil {
		return err
	}
	d, err := r.deployment(ctx, m.Namespace, serviceName(m))
	if err != nil {
		return err
	}
	if d.Generation != d.Status.ObservedGeneration && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		// A matter of milliseconds, and often of an annotation only. What was true stays so until more is known.
		return &reconciler.Wait{For: "the Deployment controller", Retry: time.Second}
	}
	f, err := r.problem(ctx, m, d)
	if err != nil {
		return err
	}
	if f != nil {
		reportUnavailable(m, r.early(d, *f))
		return &reconciler.Wait{For: "the server to become available", Retry: lookAgain}
	}
	if left := r.cooling(d); left > 0 {
		reportUnavailable(m, finding{ReasonCooldown, "Deployment only recently available"})
		return &reconciler.Wait{For: "the Deployment to stay available", Retry: left}
	}
	if m.Spec.KubeRBACProxy != nil {
		message, err := r.checkProxy(ctx, m, d)
		if err != nil {
			return err
		}
		if message != "" {
			reportUnavailable(m, r.early(d, finding{ReasonResourcesUnavailable, message}))
			return &reconciler.Wait{For: "the proxy to become available", Retry: lookAgain}
		}
	}
	return r.reportRollout(ctx, m, d)
}

// reportRollout tells that the server answers. While its next pods do not, the old one serves, and the condition says why.
func (r *registries) reportRollout(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) error {
	if d.Status.UnavailableReplicas == 0 {
		reportAvailable(m, "")
		return nil
	}
	f, err := r.diagnose(ctx, m, d)
	if err != nil {
		return err
	}
	rollout := ""
	if f != nil && f.reason != ReasonStarting {
		rollout = f.message
	}
	reportAvailable(m, rollout)
	return &reconciler.Wait{For: "the rollout to end", Retry: lookAgain}
}

// early says of what is missing after a Deployment has just become available that it is on its way: endpoints and Routes follow
// within moments.
func (r *registries) early(d *appsv1.Deployment, f finding) finding {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue && r.clock.Since(c.LastTransitionTime.Time) < grace {
			f.reason = ReasonStarting
		}
	}
	return f
}

// deployment reads a Deployment from the cache, or from the API server when it does not bear our label yet. One that is not
// there is empty.
func (r *registries) deployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	d, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: namespace, Name: name}
	err := r.cached.Get(ctx, key, d)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, d)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return d, nil
}

// problem returns what keeps the server from answering, nil when nothing does.
func (r *registries) problem(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (*finding, error) {
	available, message := judge(d.Status)
	switch {
	case available: // also while a rollout replaces the pod that serves
		return r.checkEndpoints(ctx, m)
	case d.Status.UnavailableReplicas != 0:
		return r.diagnose(ctx, m, d)
	case len(d.Status.Conditions) == 0:
		return &finding{ReasonStarting, "Deployment is unavailable: it has not been taken up yet"}, nil
	default:
		return &finding{ReasonUnavailable, "Deployment is unavailable: " + message}, nil
	}
}

// judge tells from its conditions whether a Deployment is available, and what the telling condition says.
func judge(status appsv1.DeploymentStatus) (available bool, message string) {
	for _, c := range status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentAvailable:
			available = c.Status == corev1.ConditionTrue
			if message == "" {
				message = c.Message
			}
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse,
			c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			message = c.Message
		}
	}
	return available && !conditions.GivenUp(status), message
}

// cooling returns how long a Deployment that is available has to stay so until it counts.
func (r *registries) cooling(d *appsv1.Deployment) time.Duration {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue {
			return cooldown - r.clock.Since(c.LastTransitionTime.Time)
		}
	}
	return 0
}

// checkEndpoints says whether the Service leads to a server that is ready. EndpointSlices copy the labels of their Service a
// moment after it got ours, so that one which the cache does not show is asked for.
func (r *registries) checkEndpoints(ctx context.Context, m *v1beta1.ModelRegistry) (*finding, error) {
	of := client.MatchingLabels{discoveryv1.LabelServiceName: serviceName(m)}
	slices := &discoveryv1.EndpointSliceList{}
	if err := r.cached.List(ctx, slices, client.InNamespace(m.Namespace), of); err != nil {
		return nil, fmt.Errorf("listing endpoints: %w", err)
	}
	if len(slices.Items) == 0 {
		if err := r.live.List(ctx, slices, client.InNamespace(m.Namespace), of); err != nil {
			return nil, fmt.Errorf("listing endpoints: %w", err)
		}
	}
	if len(slices.Items) == 0 {
		return &finding{ReasonUnavailable, "Service endpoints not found: Service " + serviceName(m) + " has none yet"}, nil
	}
	if conditions.AnyReady(slices.Items) {
		return nil, nil
	}
	return &finding{ReasonUnavailable, "Service endpoints not ready - no ready addresses available"}, nil
}

// reportLeftover reports a generated database that still runs although the registry turned to another one.
func (r *registries) reportLeftover(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !generates(m) {
		d := &appsv1.Deployment{}
		err := r.cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: databaseName(m)}, d)
		if err == nil && metav1.IsControlledBy(d, m) {
			setCondition(m, ConditionLeftover, metav1.ConditionTrue, ReasonKept, fmt.Sprintf(
				"Deployment %s is not used any more: move its data, then delete Deployment, Service, NetworkPolicy and PersistentVolumeClaim of the database", d.Name))
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading Deployment %s: %w", databaseName(m), err)
		}
	}
	conditions.Remove(&m.Status.Conditions, ConditionLeftover)
	return nil
}
