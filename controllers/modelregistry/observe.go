package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// lookAgain is how often a server that is not available is checked although there was no event: the log of a container changes without
// one.
const lookAgain = 30 * time.Second

// observe reports whether the server answers, and if not, why.
func (r *registries) observe(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := errors.Join(r.reportLeftover(ctx, m), r.reportBackup(ctx, m)); err != nil {
		return err
	}
	d, err := r.deployment(ctx, m.Namespace, resources.ServiceName(m))
	if err != nil {
		return err
	}
	m.Status.Scale = common.Scaled(d, resources.ServerSelector(m))
	if d.Generation != d.Status.ObservedGeneration && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		// A matter of milliseconds, and often of an annotation only. What was true stays so until more is known.
		return &reconciler.Wait{For: "the Deployment controller", Retry: time.Second, Unready: true}
	}
	s, err := r.judge(ctx, m, d)
	if err != nil {
		return err
	}
	if s.Status != metav1.ConditionTrue {
		reportUnavailable(m, finding{s.Reason, s.Message})
		return &reconciler.Wait{
			For: "the server to become available", Retry: cmp.Or(s.Retry, lookAgain), Stalled: conditions.OutOfTime(d),
		}
	}
	return r.reportRollout(ctx, m, d, s.AskPods)
}

// judge returns what keeps the server from answering, also while a rollout replaces the pod that serves.
func (r *registries) judge(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (serving.State, error) {
	before := conditions.IsTrue(m.Status.Conditions, ConditionAvailable)
	s, err := serving.Judge(d, resources.ServiceName(m), r.clock.Now(), before, func() ([]discoveryv1.EndpointSlice, error) {
		return serving.Endpoints(ctx, r.cached, r.live, m.Namespace, resources.ServiceName(m))
	})
	switch available := s.Status == metav1.ConditionTrue; {
	case err != nil:
		return s, err
	case available && m.Spec.KubeRBACProxy != nil:
		message, err := r.checkProxy(ctx, m, d)
		if message != "" {
			s = serving.Following(d, r.clock.Now(), message)
			if s.Reason != serving.ReasonStarting {
				s.Reason = ReasonResourcesUnavailable
			}
		}
		return s, err
	case available, !s.AskPods:
		return s, nil
	case d.Status.UnavailableReplicas != 0:
		f, err := r.diagnose(ctx, m, d)
		if f != nil {
			s.Reason, s.Message = f.reason, f.message
		}
		return s, err
	}
	if len(d.Status.Conditions) > 0 {
		s.Reason = serving.ReasonUnavailable
	}
	return s, nil
}

// reportRollout reports that the server answers. While some of its pods do not, others serve, and the condition says why.
func (r *registries) reportRollout(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment, incomplete bool) error {
	if !incomplete {
		reportAvailable(m, "")
		return nil
	}
	f, err := r.diagnose(ctx, m, d)
	if err != nil {
		return err
	}
	rollout := ""
	if f != nil && f.reason != serving.ReasonStarting {
		rollout = f.message
	}
	reportAvailable(m, rollout)
	return &reconciler.Wait{For: "the rollout to end", Retry: lookAgain, Unready: true, Stalled: conditions.OutOfTime(d)}
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

// reportLeftover reports a generated database that still runs although the registry turned to another one.
func (r *registries) reportLeftover(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !generates(m) {
		d := &appsv1.Deployment{}
		err := r.cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.DatabaseName(m)}, d)
		if err == nil && metav1.IsControlledBy(d, m) {
			setCondition(m, ConditionLeftover, metav1.ConditionTrue, ReasonKept, fmt.Sprintf(
				"Deployment %s is not used any more: move its data, then delete Deployment, Service, NetworkPolicy and PersistentVolumeClaim of the database", d.Name))
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading Deployment %s: %w", resources.DatabaseName(m), err)
		}
	}
	conditions.Remove(&m.Status.Conditions, ConditionLeftover)
	return nil
}
