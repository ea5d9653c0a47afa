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
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// jobUIDLabel selects the pods of a Job by its UID: an earlier Job may have had the same name.
const jobUIDLabel = batchv1.ControllerUidLabel

// workloadNames returns the names of the servers and CronJobs.
func workloadNames(m *mlflowv1.MLflow) []string {
	return []string{resources.NameOf(m), resources.Artifacts(m).Name, resources.Suffixed(resources.GCBaseName, m), resources.Suffixed(resources.ArchivalBaseName, m)}
}

// workloadSelector selects the objects of the servers and CronJobs, including those of the legacy operator.
func workloadSelector(m *mlflowv1.MLflow) client.MatchingLabelsSelector {
	requirement, err := k8slabels.NewRequirement(resources.LabelApp, selection.In, workloadNames(m))
	utilruntime.Must(err) // the values are valid label values
	return client.MatchingLabelsSelector{Selector: k8slabels.NewSelector().Add(*requirement)}
}

// observeWorkloads reads the Jobs, CronJobs, pods and Deployments of an MLflow from the API server. The cache has no pods and no
// Jobs of the legacy operator, and may be stale. If the migration Job exists and the database was idle less than JobPollInterval ago, no
// other workload is read: the server stays scaled down and the CronJobs suspended until the Job ends.
func (r *mlflowReconciler) observeWorkloads(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, f *migration.Facts) (*migration.Workloads, error) {
	if at, found := r.idleAt.Get(m.UID); found && f.Record.Outcome == mlflowv1.MigrationRunning && r.Clock.Since(at) < migration.JobPollInterval {
		job, workloads := &batchv1.Job{}, &migration.Workloads{ScaledDown: true}
		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: f.JobName}, job)
		if err == nil {
			err = r.observeJob(ctx, m, in, job, f.JobName, workloads)
		}
		if workloads.Job != nil || client.IgnoreNotFound(err) != nil {
			return workloads, err
		}
	}
	workloads, err := r.observeAll(ctx, m, in, f)
	if err == nil && workloads.DatabaseIdle() {
		r.idleAt.Set(m.UID, r.Clock.Now())
	}
	return workloads, err
}

func (r *mlflowReconciler) observeAll(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, f *migration.Facts) (*migration.Workloads, error) {
	workloads, namespace := &migration.Workloads{}, client.InNamespace(in.Namespace)
	jobs, pods, cronJobs := &batchv1.JobList{}, &corev1.PodList{}, &batchv1.CronJobList{}
	// List CronJobs first, so that the list of Jobs contains every Job that a CronJob created before it was suspended.
	if err := r.APIReader.List(ctx, cronJobs, namespace, workloadSelector(m)); err != nil {
		return nil, fmt.Errorf("listing CronJobs: %w", err)
	}
	if err := r.APIReader.List(ctx, jobs, namespace); err != nil {
		return nil, fmt.Errorf("listing Jobs: %w", err)
	}
	for i := range jobs.Items {
		if err := r.observeJob(ctx, m, in, &jobs.Items[i], f.JobName, workloads); err != nil {
			return nil, err
		}
	}
	if err := r.APIReader.List(ctx, pods, namespace, workloadSelector(m)); err != nil {
		return nil, fmt.Errorf("listing the pods that use the database: %w", err)
	}
	for i := range cronJobs.Items {
		if cronJob := &cronJobs.Items[i]; metav1.IsControlledBy(cronJob, m) || isLeftover(cronJob, m) {
			observeCronJob(cronJob, jobs.Items, pods.Items, workloads)
		}
	}
	return workloads, r.observeServers(ctx, m, pods.Items, workloads)
}

// observeJob adds a migration or check Job to the workloads. name is the name of the desired migration Job.
func (r *mlflowReconciler) observeJob(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job, name string, workloads *migration.Workloads) error {
	owned, orphaned := jobOwnership(job, m)
	isCheck, isDesired := job.Name == resources.CheckJobName(m), job.Name == name
	if !owned && !orphaned || !isCheck && !isDesired && migration.PhaseOf(job) != migration.JobRunning {
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	state.Orphaned = orphaned
	switch {
	case isCheck:
		state.RequestHash = job.Annotations[resources.CheckForAnnotation]
		if orphaned {
			state.RequestHash = "" // the check of a deleted MLflow does not apply to this one
		}
		workloads.Check = &state
	case owned && isDesired:
		workloads.Job = &state
	default: // includes orphaned Jobs: the deleted MLflow may have had other stores
		workloads.OtherJobs = append(workloads.OtherJobs, state)
	}
	return nil
}

// jobOwnership reports whether the MLflow controls a Job, or whether the Job is orphaned. Garbage collection can take minutes, so the
// operator deletes orphaned Jobs.
func jobOwnership(job *batchv1.Job, m *mlflowv1.MLflow) (owned, orphaned bool) {
	if job.Labels[resources.LabelMigrationInstance] != m.Name {
		return false, false
	}
	return metav1.IsControlledBy(job, m), isOrphaned(job, m)
}

// isOrphaned reports whether an object has the labels of this component and no owner, except deleted MLflow objects of the same name.
func isOrphaned(object metav1.Object, m *mlflowv1.MLflow) bool {
	return apply.HasComponentLabels(object, ComponentName) && !slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return !apply.RefersToPreviousUID(ref, mlflowv1.GroupVersion.WithKind("MLflow").GroupKind(), m.Name, m.UID)
	})
}

// isLeftover reports whether an object is orphaned and has the name of a server or CronJob, so that it is adopted or deleted. Users may
// have copied the labels to objects with other names.
func isLeftover(object metav1.Object, m *mlflowv1.MLflow) bool {
	return isOrphaned(object, m) && slices.Contains(workloadNames(m), object.GetName())
}

// jobState returns the state of a Job and its pods.
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
	if err := r.APIReader.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabels{jobUIDLabel: string(job.UID)}); err != nil {
		return state, fmt.Errorf("listing the pods of Job %s: %w", job.Name, err)
	}
	if state.Phase != migration.JobRunning {
		state.ExitCode, state.ImageReport = migration.ReportOf(job, pods.Items)
	}
	if state.Phase == migration.JobSucceeded {
		return state, nil
	}
	if state.Phase == migration.JobFailed {
		state.FailedAt = migration.FailedCondition(job).LastTransitionTime.Time
		state.Failure = migration.Classify(job, pods.Items, in.Version)
		return state, nil
	}
	state.Cause = migration.FailedAttemptMessage(job, pods.Items, in.Version)
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

// podCreationError returns why the pods of a Job could not be created, from Events: a Job has no such condition.
func (r *mlflowReconciler) podCreationError(ctx context.Context, job *batchv1.Job) (string, error) {
	events := &corev1.EventList{}
	err := r.APIReader.List(ctx, events, client.InNamespace(job.Namespace), client.MatchingFields{"involvedObject.uid": string(job.UID)})
	if err != nil {
		return "", fmt.Errorf("listing the Events of Job %s: %w", job.Name, err)
	}
	return conditions.PodCreationFailure(events.Items, job.CreationTimestamp.Time, func(name string) bool { return name == job.Name }), nil
}

// observeCronJob adds the state of a CronJob of this operator and its unfinished Jobs, even if the CronJob is no longer desired.
func observeCronJob(cronJob *batchv1.CronJob, jobs []batchv1.Job, pods []corev1.Pod, workloads *migration.Workloads) {
	workloads.CronJobsActive = workloads.CronJobsActive || cronJob.Spec.Suspend == nil || !*cronJob.Spec.Suspend
	for i := range jobs {
		if job := &jobs[i]; metav1.IsControlledBy(job, cronJob) && migration.PhaseOf(job) == migration.JobRunning {
			workloads.CronJobRuns = append(workloads.CronJobRuns, cronJobRunState(job, pods))
		}
	}
}

// cronJobRunState returns the state of an unfinished Job of a CronJob and its pods.
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

// observeServers adds the state of the servers, and counts the users of the database: the replicas of the servers, and the pods of servers
// and CronJobs for which mayUseDatabase returns true. An artifacts server that is no longer desired counts too, unless it is foreign.
func (r *mlflowReconciler) observeServers(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod, workloads *migration.Workloads) error {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !mayUseDatabase(&pod) })
	workloads.ScaledDown = true
	var counts []string
	hasArtifactsServer := false
	for _, s := range []resources.Server{resources.Tracking(m), resources.Artifacts(m)} {
		d, err := servers.DeploymentFrom(ctx, r.inputs().Namespace, s.Name, r.APIReader)
		if err != nil {
			return err
		}
		exists, tracking := d.Name != "", s.Name == resources.NameOf(m)
		ofServer := func(pod corev1.Pod) bool { return pod.Labels[resources.LabelApp] == s.Name }
		if exists && !tracking && !metav1.IsControlledBy(d, m) && !isLeftover(d, m) {
			users = slices.DeleteFunc(users, ofServer)
			continue
		}
		if tracking {
			state := conditions.Rollout(d)
			workloads.ServerReady, workloads.ServerEnabled = state.Ready && state.Desired > 0, isEnabled(d, m)
		}
		workloads.ScaledDown = workloads.ScaledDown && (!exists || isScaledDown(d))
		hasArtifactsServer = exists && !tracking
		serverPods := int32(len(users) - len(slices.DeleteFunc(slices.Clone(users), ofServer)))
		serverUsers := max(serverPods, d.Status.Replicas)
		if serverUsers > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", s.Name, serverUsers))
		}
		workloads.DatabaseUsers += serverUsers - serverPods
	}
	workloads.DatabaseUsers += int32(len(users))
	workloads.UserPodsText = describePods(users)
	if hasArtifactsServer {
		workloads.UsersPerServerText = strings.Join(counts, ", ")
	}
	return nil
}

// isEnabled reports whether a Deployment is controlled by the MLflow, desires replicas and is not terminating.
func isEnabled(d *appsv1.Deployment, m *mlflowv1.MLflow) bool {
	return metav1.IsControlledBy(d, m) && d.DeletionTimestamp == nil && pkgresources.ReplicasOrOne(d.Spec.Replicas) > 0
}

// isScaledDown reports whether a Deployment desires no replica and the Deployment controller has observed the current generation.
func isScaledDown(d *appsv1.Deployment) bool {
	return pkgresources.ReplicasOrOne(d.Spec.Replicas) == 0 && d.Status.ObservedGeneration >= d.Generation
}

// mayUseDatabase reports whether a pod uses the database or may do so later. A pod that never started and is unscheduled or terminating
// does not count: DatabaseIdle also requires that the Deployments are scaled to zero.
func mayUseDatabase(pod *corev1.Pod) bool {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return false
	case neverStarted(pod):
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
	}
	return true
}

// neverStarted reports whether a pod is pending and none of its containers has run, except init containers.
func neverStarted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// maxPodNames is the maximum number of pod names in a message.
const maxPodNames = 3

// describePods returns the names of at most maxPodNames pods and, if known, why pods do not run. It returns "" without pods.
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

// podFailureCause returns why pods do not run: the reason in their status, or else a missing Secret, ConfigMap or key, which the status
// does not always report. It returns "" if neither is found.
func (r *mlflowReconciler) podFailureCause(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod) (string, error) {
	if cause := conditions.Diagnose(pods); cause != "" {
		return cause, nil
	}
	namespace := r.inputs().Namespace
	resolved, err := r.References.Resolve(ctx, namespace, references(m, resources.Servers(m)...))
	if err != nil || len(resolved.Missing) == 0 {
		return "", err
	}
	return resolved.Missing[0].String() + " in namespace " + namespace, nil
}
