package mlflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
const jobUIDLabel = batchv1.ControllerUidLabel

// ofServers selects what belongs to the servers and the jobs beside them, also if the original operator made it.
func workloadSelector(m *mlflowv1.MLflow) client.MatchingLabelsSelector {
	apps, err := k8slabels.NewRequirement(resources.LabelApp, selection.In,
		[]string{resources.NameOf(m), resources.Artifacts(m).Name, resources.Suffixed(resources.GCBaseName, m), resources.Suffixed(resources.ArchivalBaseName, m)})
	utilruntime.Must(err) // these are fit for labels
	return client.MatchingLabelsSelector{Selector: k8slabels.NewSelector().Add(*apps)}
}

// look reads from the API server what decides about a requested migration. The cache does not serve: it holds no
// pods, no Jobs that the original operator made, and it may lag behind what this controller did a moment ago.
func (r *mlflowReconciler) observeWorkloads(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, f *migration.Facts) (*migration.Workloads, error) {
	seen, namespace := &migration.Workloads{}, client.InNamespace(in.Namespace)
	jobs, pods, crons := &batchv1.JobList{}, &corev1.PodList{}, &batchv1.CronJobList{}
	// A Job that a CronJob made is seen although the CronJob has been suspended since.
	if err := r.apiReader.List(ctx, crons, namespace, workloadSelector(m)); err != nil {
		return nil, fmt.Errorf("listing CronJobs: %w", err)
	}
	if err := r.apiReader.List(ctx, jobs, namespace); err != nil {
		return nil, fmt.Errorf("listing migration Jobs: %w", err)
	}
	for i := range jobs.Items {
		if err := r.observeJob(ctx, m, in, &jobs.Items[i], f.JobName, seen); err != nil {
			return nil, err
		}
	}
	if err := r.apiReader.List(ctx, pods, namespace, workloadSelector(m)); err != nil {
		return nil, fmt.Errorf("listing the pods that use the database: %w", err)
	}
	for i := range crons.Items {
		observeCronJob(&crons.Items[i], jobs.Items, pods.Items, seen)
	}
	return seen, r.observeServers(ctx, m, pods.Items, seen)
}

// lookAt puts a migration Job, or that of a check, into the place that it has in the cluster, if it has one. name is that of the Job
// that is wanted.
func (r *mlflowReconciler) observeJob(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job, name string, seen *migration.Workloads) error {
	own, left := jobOwnership(job, m)
	checks, current := job.Name == resources.CheckJobName(m), job.Name == name
	if !own && !left || !checks && !current && migration.PhaseOf(job) != migration.JobRunning {
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	state.Orphaned = left
	switch {
	case checks:
		state.RequestHash = job.Annotations[resources.CheckForAnnotation]
		if left {
			state.RequestHash = "" // one that an earlier MLflow left checks nothing
		}
		seen.Check = &state
	case own && current:
		seen.Job = &state
	default: // how one of an earlier MLflow ended says nothing about this MLflow, which may have other stores
		seen.OtherJobs = append(seen.OtherJobs, state)
	}
	return nil
}

// kinOf reports whether a Job is one of an MLflow, or was left: this operator made it for an MLflow of this name that is gone, and whose
// children were orphaned, or are not collected yet, which may take the garbage collector minutes. Only those on which no one else may rely
// are left: they may be removed.
func jobOwnership(job *batchv1.Job, m *mlflowv1.MLflow) (own, left bool) {
	if job.Labels[resources.LabelMigrationInstance] != m.Name {
		return false, false
	}
	own = metav1.IsControlledBy(job, m)
	relied := slices.ContainsFunc(job.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return !apply.RefersToPreviousUID(ref, mlflowv1.GroupVersion.WithKind("MLflow").GroupKind(), m.Name, m.UID)
	})
	return own, !own && !relied && apply.IsOurs(job, ComponentName)
}

// jobState reads a Job and its pods.
func (r *mlflowReconciler) jobState(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job) (migration.JobState, error) {
	state := migration.JobState{
		Name: job.Name, UID: job.UID, Phase: migration.PhaseOf(job), StartedAt: job.CreationTimestamp.Time,
		Managed:     job.Labels[names.OperatorLabel] == names.OperatorName,
		Terminating: job.DeletionTimestamp != nil,
		RequestHash: job.Annotations[resources.ForcedByAnnotation],
	}
	for _, c := range job.Spec.Template.Spec.Containers {
		if c.Name == resources.MigrationContainer {
			state.Image = c.Image
		}
	}
	pods := &corev1.PodList{}
	if err := r.apiReader.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabels{jobUIDLabel: string(job.UID)}); err != nil {
		return state, fmt.Errorf("list pods for migration Job %s: %w", job.Name, err)
	}
	if state.Phase != migration.JobRunning {
		state.ExitCode, state.ImageReport = migration.ReportFromPods(pods.Items)
	}
	if state.Phase == migration.JobSucceeded {
		return state, nil
	}
	if state.Phase == migration.JobFailed {
		state.FailedAt = migration.FailedCondition(job).LastTransitionTime.Time
		state.Failure = migration.Classify(job, pods.Items, in.Version)
		return state, nil
	}
	state.Cause = migration.FailedAttemptMessage(pods.Items, in.Version)
	state.Started = migration.IsMigrating(pods.Items)
	if state.Started || state.Cause != "" {
		return state, nil
	}
	var err error
	if len(pods.Items) == 0 {
		if state.Cause, err = r.podCreationError(ctx, job); err != nil || state.Cause != "" {
			return state, err
		}
	}
	state.Cause, err = r.podFailureCause(ctx, m, pods.Items)
	return state, err
}

// refused returns why the pods of a Job could not be created: a Job has no condition for it.
func (r *mlflowReconciler) podCreationError(ctx context.Context, job *batchv1.Job) (string, error) {
	events := &corev1.EventList{}
	err := r.apiReader.List(ctx, events, client.InNamespace(job.Namespace), client.MatchingFields{"involvedObject.uid": string(job.UID)})
	if err != nil {
		return "", fmt.Errorf("list Events of migration Job %s: %w", job.Name, err)
	}
	return conditions.RefusedPods(events.Items, job.CreationTimestamp.Time, func(name string) bool { return name == job.Name }), nil
}

// lookForChores finds the unfinished Jobs of a CronJob beside the server, also of one that is not wanted any more.
func observeCronJob(cron *batchv1.CronJob, jobs []batchv1.Job, pods []corev1.Pod, seen *migration.Workloads) {
	seen.CronJobsActive = seen.CronJobsActive || cron.Spec.Suspend == nil || !*cron.Spec.Suspend
	for i := range jobs {
		if job := &jobs[i]; metav1.IsControlledBy(job, cron) && migration.PhaseOf(job) == migration.JobRunning {
			seen.CronJobRuns = append(seen.CronJobRuns, cronJobRunState(job, pods))
		}
	}
}

// choreOf reads an unfinished Job of a CronJob and what its pods do.
func cronJobRunState(job *batchv1.Job, all []corev1.Pod) migration.JobState {
	pods := slices.DeleteFunc(slices.Clone(all), func(pod corev1.Pod) bool { return pod.Labels[jobUIDLabel] != string(job.UID) })
	since := job.CreationTimestamp.Time
	if job.Status.StartTime != nil {
		since = job.Status.StartTime.Time
	}
	return migration.JobState{
		Name: job.Name, UID: job.UID, Phase: migration.JobRunning, StartedAt: since, Terminating: job.DeletionTimestamp != nil,
		Started: slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !neverStarted(&pod) }),
		Cause:   describePods(pods),
	}
}

// lookForServers counts what may use the database: replicas and pods of the servers, and other pods of ours. Pods that
// are on their way out still use it, and so does a server for artifacts that is no longer wanted, if it is ours.
func (r *mlflowReconciler) observeServers(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod, seen *migration.Workloads) error {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !mayUseDatabase(&pod) })
	seen.ScaledDown = true
	var counts []string
	several := false
	for _, s := range []resources.Server{resources.Tracking(m), resources.Artifacts(m)} {
		d, err := r.deployment(ctx, s, r.apiReader)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		exists, tracking := err == nil, s.Name == resources.NameOf(m)
		ofServer := func(pod corev1.Pod) bool { return pod.Labels[resources.LabelApp] == s.Name }
		if exists && !tracking && !metav1.IsControlledBy(d, m) {
			users = slices.DeleteFunc(users, ofServer)
			continue
		}
		if tracking {
			state := conditions.Rollout(d)
			seen.ServerReady, seen.ServerEnabled = state.Ready && state.Desired > 0, isEnabled(d, m)
		}
		seen.ScaledDown = seen.ScaledDown && (!exists || isScaledDown(d))
		several = exists && !tracking
		own := int32(len(users) - len(slices.DeleteFunc(slices.Clone(users), ofServer)))
		busy := max(own, d.Status.Replicas)
		if busy > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", s.Name, busy))
		}
		seen.DatabaseUsers += busy - own
	}
	seen.DatabaseUsers += int32(len(users))
	seen.UserPods = describePods(users)
	if several {
		seen.UsersPerServer = strings.Join(counts, ", ")
	}
	return nil
}

// runs reports that a Deployment of an MLflow is meant to run.
func isEnabled(d *appsv1.Deployment, m *mlflowv1.MLflow) bool {
	return metav1.IsControlledBy(d, m) && d.DeletionTimestamp == nil && common.OrOne(d.Spec.Replicas) > 0
}

// stopped reports that a Deployment wants no replica and that its controller knows.
func isScaledDown(d *appsv1.Deployment) bool {
	return common.OrOne(d.Spec.Replicas) == 0 && d.Status.ObservedGeneration >= d.Generation
}

// mayUse reports that a pod uses the database, or may come to do so. One that has no node, or is deleted, before it started
// never will: what makes such pods is stopped before they are counted.
func mayUseDatabase(pod *corev1.Pod) bool {
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
const maxPodNames = 3

// nameUsers names pods and the cause for which they do not continue; empty when there is none.
func describePods(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	names := make([]string, 0, len(pods))
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	text := "pod " + strings.Join(names[:min(len(names), maxPodNames)], ", ")
	if len(names) > maxPodNames {
		text += fmt.Sprintf(" and %d more", len(names)-maxPodNames)
	}
	return migration.WithCause(text, conditions.Diagnose(pods))
}

// causeOf names what keeps pods from running: what they say, else a Secret or key that does not exist, which keeps pods
// waiting without a word; empty when nothing is known.
func (r *mlflowReconciler) podFailureCause(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod) (string, error) {
	if cause := conditions.Diagnose(pods); cause != "" {
		return cause, nil
	}
	namespace := r.inputs().Namespace
	resolved, err := r.references.Resolve(ctx, m.UID, namespace, references(m, resources.Servers(m)...))
	if err != nil || len(resolved.Missing) == 0 {
		return "", err
	}
	return resolved.Missing[0].String() + " in namespace " + namespace, nil
}
