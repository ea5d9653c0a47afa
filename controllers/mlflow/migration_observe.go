package mlflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// podsOfJob is the label that ties a pod to one life of a Job. A Job of the same name may have had others.
const podsOfJob = batchv1.ControllerUidLabel

// appsSelector selects what belongs to the server and the jobs beside it, also if the original operator made it.
func appsSelector(m *mlflowv1.MLflow) (k8slabels.Selector, error) {
	apps, err := k8slabels.NewRequirement(resources.LabelApp, selection.In,
		[]string{resources.NameOf(m), resources.Artifacts(m).Name, resources.Suffixed(resources.GCBaseName, m), resources.Suffixed(resources.ArchivalBaseName, m)})
	if err != nil {
		return nil, fmt.Errorf("selecting the objects of the server: %w", err)
	}
	return k8slabels.NewSelector().Add(*apps), nil
}

// look reads from the API server what decides about a requested migration. The cache does not serve: it holds no
// pods, no Jobs that the original operator made, and it may lag behind what this controller did a moment ago.
func (r *objects) look(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, f *migration.Facts) (*migration.Workloads, error) {
	seen := &migration.Workloads{}
	jobs := &batchv1.JobList{}
	labels := client.MatchingLabels{resources.LabelMigrationJob: "true", resources.LabelMigrationInstance: m.Name}
	if err := r.live.List(ctx, jobs, client.InNamespace(in.Namespace), labels); err != nil {
		return nil, fmt.Errorf("listing migration Jobs: %w", err)
	}
	for i := range jobs.Items {
		if err := r.lookAt(ctx, m, in, &jobs.Items[i], f.JobName, seen); err != nil {
			return nil, err
		}
	}
	pods, err := r.appPods(ctx, m, in)
	if err != nil {
		return nil, err
	}
	if err := r.lookForChores(ctx, m, in, pods, seen); err != nil {
		return nil, err
	}
	if err := r.lookForServers(ctx, m, in, pods, seen); err != nil {
		return nil, err
	}
	return seen, r.lookForCheck(ctx, m, in, seen)
}

// lookForCheck finds the Job that tries image and databases, where a server would be stopped. One that an earlier MLflow left
// checks nothing.
func (r *objects) lookForCheck(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, seen *migration.Workloads) error {
	if !seen.Runs {
		return nil
	}
	job := &batchv1.Job{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: resources.CheckJobName(m)}, job)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading check Job %s: %w", resources.CheckJobName(m), err)
	}
	kin := kinOf(job, m)
	if kin == kinNone {
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	state.Left = kin == kinLeft
	seen.Check = &migration.Check{JobState: state}
	if kin == kinOwn {
		seen.Check.For = job.Annotations[resources.CheckForAnnotation]
	}
	return nil
}

// lookAt puts a migration Job into the place that it has in the cluster, if it has one. name is that of the Job that is wanted.
func (r *objects) lookAt(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job, name string, seen *migration.Workloads) error {
	kin, phase, current := kinOf(job, m), migration.PhaseOf(job), job.Name == name
	switch {
	case kin == kinNone || !current && phase != migration.JobRunning:
		return nil
	case kin == kinLeft && phase != migration.JobRunning: // how it ended says nothing about this MLflow, which may have other stores
		seen.Leftover = &migration.JobState{Name: job.Name, UID: job.UID, Phase: phase, Ours: true, Left: true, Leaving: job.DeletionTimestamp != nil}
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	if kin == kinOwn && current {
		seen.Job = &state
		return nil
	}
	state.Left = kin == kinLeft
	seen.Others = append(seen.Others, state)
	return nil
}

// kinship is what a migration Job is to an MLflow.
type kinship string

const (
	kinNone kinship = "foreign"
	kinOwn  kinship = "its own"
	// kinLeft: this operator made it for an MLflow of this name that is gone, and whose children were orphaned.
	kinLeft kinship = "left behind"
)

// kinOf goes by the controller of a Job, and by our labels where it has no owner at all. Only those on which no one else may
// rely are left behind: they may be removed.
func kinOf(job *batchv1.Job, m *mlflowv1.MLflow) kinship {
	switch {
	case metav1.IsControlledBy(job, m):
		return kinOwn
	case len(job.OwnerReferences) == 0 && apply.IsOurs(job, ComponentName) && job.Labels[resources.LabelMigrationInstance] == m.Name:
		return kinLeft
	}
	return kinNone
}

// jobState reads a Job and, unless it succeeded, its pods.
func (r *objects) jobState(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job) (migration.JobState, error) {
	state := migration.JobState{
		Name: job.Name, UID: job.UID, Phase: migration.PhaseOf(job), Since: job.CreationTimestamp.Time,
		Ours:    job.Labels[names.OperatorLabel] == names.OperatorName,
		Leaving: job.DeletionTimestamp != nil,
		Force:   job.Annotations[resources.ForcedByAnnotation],
	}
	for i := range job.Spec.Template.Spec.Containers {
		if c := &job.Spec.Template.Spec.Containers[i]; c.Name == resources.MigrationContainer {
			state.Image = c.Image
		}
	}
	if state.Phase == migration.JobSucceeded {
		return state, nil
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabels{podsOfJob: string(job.UID)}); err != nil {
		return state, fmt.Errorf("list pods for migration Job %s: %w", job.Name, err)
	}
	if state.Phase == migration.JobFailed {
		state.FailedAt = migration.FailedCondition(job).LastTransitionTime.Time
		state.Failure = migration.Classify(job, pods.Items, in.Version)
		return state, nil
	}
	state.Cause = migration.FailedAttempt(pods.Items, in.Version)
	state.Started = migration.RunsProgram(pods.Items)
	if state.Started || state.Cause != "" {
		return state, nil
	}
	var err error
	state.Cause, err = r.causeOf(ctx, m, pods.Items)
	return state, err
}

// appPods are the pods of the server and of the jobs beside it.
func (r *objects) appPods(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) ([]corev1.Pod, error) {
	apps, err := appsSelector(m)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabelsSelector{Selector: apps}); err != nil {
		return nil, fmt.Errorf("listing the pods that use the database: %w", err)
	}
	return pods.Items, nil
}

// lookForChores finds the CronJobs beside the server, also those that are not wanted any more, and their unfinished Jobs.
func (r *objects) lookForChores(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, pods []corev1.Pod, seen *migration.Workloads) error {
	apps, err := appsSelector(m)
	if err != nil {
		return err
	}
	crons := &batchv1.CronJobList{}
	if err := r.live.List(ctx, crons, client.InNamespace(in.Namespace), client.MatchingLabelsSelector{Selector: apps}); err != nil {
		return fmt.Errorf("listing CronJobs: %w", err)
	}
	if len(crons.Items) == 0 {
		return nil
	}
	jobs := &batchv1.JobList{}
	if err := r.live.List(ctx, jobs, client.InNamespace(in.Namespace)); err != nil {
		return fmt.Errorf("listing the Jobs of the CronJobs: %w", err)
	}
	for i := range crons.Items {
		cron := &crons.Items[i]
		seen.Scheduling = seen.Scheduling || cron.Spec.Suspend == nil || !*cron.Spec.Suspend
		for k := range jobs.Items {
			if job := &jobs.Items[k]; metav1.IsControlledBy(job, cron) && migration.PhaseOf(job) == migration.JobRunning {
				seen.Chores = append(seen.Chores, choreOf(job, pods, r.clock.Now()))
			}
		}
	}
	return nil
}

// choreOf reads an unfinished Job of a CronJob and what its pods do.
func choreOf(job *batchv1.Job, all []corev1.Pod, now time.Time) migration.ChoreJob {
	pods := slices.DeleteFunc(slices.Clone(all), func(pod corev1.Pod) bool { return pod.Labels[podsOfJob] != string(job.UID) })
	since := job.CreationTimestamp.Time
	if job.Status.StartTime != nil {
		since = job.Status.StartTime.Time
	}
	return migration.ChoreJob{
		JobState: migration.JobState{
			Name: job.Name, UID: job.UID, Phase: migration.JobRunning, Since: since, Leaving: job.DeletionTimestamp != nil,
			Started: slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !neverStarted(&pod) }),
		},
		Overdue: now.Sub(since) > resources.ChoreDeadline*time.Second,
		Pods:    nameUsers(pods),
	}
}

// lookForServers counts what may use the database: replicas and pods of the servers, and other pods of ours. Pods that
// are on their way out still use it, and so does a server for artifacts that is no longer wanted.
func (r *objects) lookForServers(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, pods []corev1.Pod, seen *migration.Workloads) error {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !mayUse(&pod) })
	seen.Settled = true
	var counts []string
	for _, s := range []resources.Server{resources.Tracking(m), resources.Artifacts(m)} {
		d, exists, foreign, err := r.readDeployment(ctx, m, in.Namespace, s)
		if err != nil {
			return err
		}
		ofServer := func(pod corev1.Pod) bool { return pod.Labels[resources.LabelApp] == s.Name }
		if foreign {
			users = slices.DeleteFunc(users, ofServer)
		}
		seen.Settled = seen.Settled && (!exists || stopped(d))
		if s.Name == resources.NameOf(m) {
			state := conditions.Rollout(d)
			seen.Serving = state.Ready && state.Desired > 0
			seen.Runs = exists && metav1.IsControlledBy(d, m) && d.DeletionTimestamp == nil && common.OrOne(d.Spec.Replicas) > 0
		}
		own := int32(len(users) - len(slices.DeleteFunc(slices.Clone(users), ofServer)))
		busy := max(own, d.Status.Replicas)
		if busy > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", s.Name, busy))
		}
		seen.Busy += busy - own
		seen.Several = seen.Several || exists && s.Name != resources.NameOf(m)
	}
	seen.Busy += int32(len(users))
	seen.Users, seen.Counts = nameUsers(users), strings.Join(counts, ", ")
	return nil
}

// readDeployment reads the Deployment of a server from the API server, an empty one where there is none that counts: one for artifacts
// counts if it is ours.
func (r *objects) readDeployment(ctx context.Context, m *mlflowv1.MLflow, namespace string, s resources.Server) (d *appsv1.Deployment, exists, foreign bool, err error) {
	d = &appsv1.Deployment{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.Name}, d)
	switch {
	case apierrors.IsNotFound(err):
		return d, false, false, nil
	case err != nil:
		return nil, false, false, fmt.Errorf("reading Deployment %s: %w", s.Name, err)
	case s.Name != resources.NameOf(m) && !metav1.IsControlledBy(d, m):
		return &appsv1.Deployment{}, false, true, nil
	}
	return d, true, false, nil
}

// stopped reports that a Deployment wants no replica and that its controller knows.
func stopped(d *appsv1.Deployment) bool {
	return d.Spec.Replicas != nil && *d.Spec.Replicas == 0 && d.Status.ObservedGeneration >= d.Generation
}

// mayUse reports that a pod uses the database, or may come to do so. One that has no node, or is deleted, before it started
// never will: what makes such pods is stopped before they are counted.
func mayUse(pod *corev1.Pod) bool {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return false
	case neverStarted(pod):
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
	}
	return true
}

// neverStarted reports that no container of a pod but those that prepare it has run.
func neverStarted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// maxNamed is how many pods a message names.
const maxNamed = 3

// nameUsers names pods and the cause for which they do not continue; empty when there is none.
func nameUsers(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	names := make([]string, 0, len(pods))
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	text := "pod " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		text += fmt.Sprintf(" and %d more", len(names)-maxNamed)
	}
	return migration.WithCause(text, conditions.Diagnose(pods))
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
