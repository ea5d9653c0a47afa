package mlflow

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// podsOfJob is the label that ties a pod to one life of a Job. A Job of the same name may have had others.
const podsOfJob = batchv1.ControllerUidLabel

// appsSelector selects what belongs to the server and the jobs beside it, whoever made it.
func appsSelector(m *mlflowv1.MLflow) (k8slabels.Selector, error) {
	apps, err := k8slabels.NewRequirement(labelApp, selection.In,
		[]string{resourceName(m), suffixed(gcBaseName, m), suffixed(archivalBaseName, m)})
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of the server: %w", err)
	}
	return k8slabels.NewSelector().Add(*apps), nil
}

// look asks the API server for what decides about a migration that is asked for. The cache does not serve: it holds no
// pods, no Jobs that the original operator made, and it may lag behind what this controller did a moment ago.
func (r *objects) look(ctx context.Context, m *mlflowv1.MLflow, in Inputs, f *migrationFacts) (*migrationWorld, error) {
	world := &migrationWorld{}
	jobs := &batchv1.JobList{}
	labels := client.MatchingLabels{labelMigrationJob: "true", labelMigrationInstance: m.Name}
	if err := r.live.List(ctx, jobs, client.InNamespace(in.Namespace), labels); err != nil {
		return nil, fmt.Errorf("listing migration Jobs: %w", err)
	}
	for i := range jobs.Items {
		if err := r.lookAt(ctx, m, in, &jobs.Items[i], f.JobName, world); err != nil {
			return nil, err
		}
	}
	if world.Leftover != nil || world.Job != nil && world.Job.Phase != jobRunning {
		return world, nil // what else runs decides about nothing
	}
	return world, r.lookForUsers(ctx, m, in, world)
}

// lookAt puts a migration Job into the place that it has in the world, if it has one. name is that of the Job that is wanted.
func (r *objects) lookAt(ctx context.Context, m *mlflowv1.MLflow, in Inputs, job *batchv1.Job, name string, world *migrationWorld) error {
	kin, phase, current := kinOf(job, m), phaseOf(job), job.Name == name
	switch {
	case kin == kinNone || !current && phase != jobRunning:
		return nil
	case kin == kinLeft && phase != jobRunning: // how it ended says nothing about this MLflow, which may have other stores
		world.Leftover = &migrationJobState{Name: job.Name, UID: job.UID, Phase: phase, Ours: true, Left: true, Leaving: job.DeletionTimestamp != nil}
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	if kin == kinOwn && current {
		world.Job = &state
		return nil
	}
	state.Left = kin == kinLeft
	world.Others = append(world.Others, state)
	return nil
}

// kinship is what a migration Job is to an MLflow.
type kinship string

const (
	kinNone kinship = "somebody else's"
	kinOwn  kinship = "its own"
	// kinLeft: this operator made it for an MLflow of this name that is gone, and was told to leave behind what it owned.
	kinLeft kinship = "left behind"
)

// kinOf goes by the controller of a Job, and by our labels where nobody owns it at all. Only those on whom nobody else may
// rely are left behind: they may be removed.
func kinOf(job *batchv1.Job, m *mlflowv1.MLflow) kinship {
	switch labels := job.Labels; {
	case metav1.IsControlledBy(job, m):
		return kinOwn
	case len(job.OwnerReferences) == 0 && labels[names.OperatorLabel] == names.OperatorName &&
		labels[names.ComponentLabel] == ComponentName && labels[labelMigrationInstance] == m.Name:
		return kinLeft
	}
	return kinNone
}

// jobState reads a Job and, unless it succeeded, its pods.
func (r *objects) jobState(ctx context.Context, m *mlflowv1.MLflow, in Inputs, job *batchv1.Job) (migrationJobState, error) {
	state := migrationJobState{
		Name: job.Name, UID: job.UID, Phase: phaseOf(job), Since: job.CreationTimestamp.Time,
		Ours:    job.Labels[names.OperatorLabel] == names.OperatorName,
		Leaving: job.DeletionTimestamp != nil,
		Force:   job.Annotations[forcedByAnnotation],
	}
	for i := range job.Spec.Template.Spec.Containers {
		if c := &job.Spec.Template.Spec.Containers[i]; c.Name == migrationContainer {
			state.Image = c.Image
		}
	}
	if state.Phase == jobSucceeded {
		return state, nil
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabels{podsOfJob: string(job.UID)}); err != nil {
		return state, fmt.Errorf("list pods for migration Job %s: %w", job.Name, err)
	}
	if state.Phase == jobFailed {
		state.FailedAt = failedCondition(job).LastTransitionTime.Time
		state.Failure = classifyFailure(job, pods.Items, in.Version)
		return state, nil
	}
	state.Started = runsProgram(pods.Items)
	if state.Started {
		return state, nil
	}
	var err error
	state.Cause, err = r.causeOf(ctx, m, pods.Items)
	return state, err
}

// lookForUsers counts what may use the database: replicas and pods of the server, and pods of the CronJobs. Pods that
// are on their way out still use it.
func (r *objects) lookForUsers(ctx context.Context, m *mlflowv1.MLflow, in Inputs, world *migrationWorld) error {
	d := &appsv1.Deployment{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: resourceName(m)}, d)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Deployment %s: %w", resourceName(m), err)
	}
	world.Settled = apierrors.IsNotFound(err) || stopped(d)

	apps := client.MatchingLabelsSelector{}
	if apps.Selector, err = appsSelector(m); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(in.Namespace), apps); err != nil {
		return fmt.Errorf("listing the pods that use the database: %w", err)
	}
	servers, others := countUsers(pods.Items, resourceName(m))
	world.Busy = max(servers, d.Status.Replicas) + others

	if !collects(m) && !archives(m) {
		return nil // those of before are removed in this pass
	}
	jobs := &batchv1.CronJobList{}
	if err := r.live.List(ctx, jobs, client.InNamespace(in.Namespace), apps); err != nil {
		return fmt.Errorf("listing CronJobs: %w", err)
	}
	for i := range jobs.Items {
		if suspend := jobs.Items[i].Spec.Suspend; suspend == nil || !*suspend {
			world.Settled = false
		}
	}
	return nil
}

// stopped reports that a Deployment wants no replica and that its controller knows.
func stopped(d *appsv1.Deployment) bool {
	return d.Spec.Replicas != nil && *d.Spec.Replicas == 0 && d.Status.ObservedGeneration >= d.Generation
}

// countUsers tells pods of the server from others, and leaves out those that have ended.
func countUsers(pods []corev1.Pod, server string) (servers, others int32) {
	for i := range pods {
		switch pod := &pods[i]; {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Labels[labelApp] == server:
			servers++
		default:
			others++
		}
	}
	return servers, others
}

// causeOf names what keeps pods from running: what they say, else a Secret or key that does not exist, which keeps pods
// waiting without a word; empty when nothing is known.
func (r *objects) causeOf(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod) (string, error) {
	if cause := conditions.Diagnose(pods); cause != "" {
		return cause, nil
	}
	namespace := r.inputs().Namespace
	resolved, err := r.references.Resolve(ctx, m.UID, namespace, references(m))
	if err != nil || len(resolved.Missing) == 0 {
		return "", err
	}
	return resolved.Missing[0].String() + " in namespace " + namespace, nil
}
