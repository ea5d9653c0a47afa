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
const podsOfJob = batchv1.ControllerUidLabel

// ofServers selects what belongs to the servers and the jobs beside them, also if the original operator made it.
func ofServers(m *mlflowv1.MLflow) client.MatchingLabelsSelector {
	apps, err := k8slabels.NewRequirement(resources.LabelApp, selection.In,
		[]string{resources.NameOf(m), resources.Artifacts(m).Name, resources.Suffixed(resources.GCBaseName, m), resources.Suffixed(resources.ArchivalBaseName, m)})
	utilruntime.Must(err) // these are fit for labels
	return client.MatchingLabelsSelector{Selector: k8slabels.NewSelector().Add(*apps)}
}

// look reads from the API server what decides about a requested migration. The cache does not serve: it holds no
// pods, no Jobs that the original operator made, and it may lag behind what this controller did a moment ago.
func (r *objects) look(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, f *migration.Facts) (*migration.Workloads, error) {
	seen, namespace := &migration.Workloads{}, client.InNamespace(in.Namespace)
	jobs, pods, crons := &batchv1.JobList{}, &corev1.PodList{}, &batchv1.CronJobList{}
	// A Job that a CronJob made is seen although the CronJob has been suspended since.
	if err := r.live.List(ctx, crons, namespace, ofServers(m)); err != nil {
		return nil, fmt.Errorf("listing CronJobs: %w", err)
	}
	if err := r.live.List(ctx, jobs, namespace); err != nil {
		return nil, fmt.Errorf("listing migration Jobs: %w", err)
	}
	for i := range jobs.Items {
		if err := r.lookAt(ctx, m, in, &jobs.Items[i], f.JobName, seen); err != nil {
			return nil, err
		}
	}
	if err := r.live.List(ctx, pods, namespace, ofServers(m)); err != nil {
		return nil, fmt.Errorf("listing the pods that use the database: %w", err)
	}
	for i := range crons.Items {
		lookForChores(&crons.Items[i], jobs.Items, pods.Items, seen)
	}
	return seen, r.lookForServers(ctx, m, pods.Items, seen)
}

// lookAt puts a migration Job, or that of a check, into the place that it has in the cluster, if it has one. name is that of the Job
// that is wanted.
func (r *objects) lookAt(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job, name string, seen *migration.Workloads) error {
	own, left := kinOf(job, m)
	checks, current := job.Name == resources.CheckJobName(m), job.Name == name
	if !own && !left || !checks && !current && migration.PhaseOf(job) != migration.JobRunning {
		return nil
	}
	state, err := r.jobState(ctx, m, in, job)
	if err != nil {
		return err
	}
	state.Left = left
	switch {
	case checks:
		state.For = job.Annotations[resources.CheckForAnnotation]
		if left {
			state.For = "" // one that an earlier MLflow left checks nothing
		}
		seen.Check = &state
	case own && current:
		seen.Job = &state
	default: // how one of an earlier MLflow ended says nothing about this MLflow, which may have other stores
		seen.Others = append(seen.Others, state)
	}
	return nil
}

// kinOf reports whether a Job is one of an MLflow, or was left: this operator made it for an MLflow of this name that is gone, and whose
// children were orphaned, or are not collected yet, which may take the garbage collector minutes. Only those on which no one else may rely
// are left: they may be removed.
func kinOf(job *batchv1.Job, m *mlflowv1.MLflow) (own, left bool) {
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
func (r *objects) jobState(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, job *batchv1.Job) (migration.JobState, error) {
	state := migration.JobState{
		Name: job.Name, UID: job.UID, Phase: migration.PhaseOf(job), Since: job.CreationTimestamp.Time,
		Ours:    job.Labels[names.OperatorLabel] == names.OperatorName,
		Leaving: job.DeletionTimestamp != nil,
		For:     job.Annotations[resources.ForcedByAnnotation],
	}
	for _, c := range job.Spec.Template.Spec.Containers {
		if c.Name == resources.MigrationContainer {
			state.Image = c.Image
		}
	}
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(in.Namespace), client.MatchingLabels{podsOfJob: string(job.UID)}); err != nil {
		return state, fmt.Errorf("list pods for migration Job %s: %w", job.Name, err)
	}
	if state.Phase != migration.JobRunning {
		state.Code, state.Found = migration.FoundBy(pods.Items)
	}
	if state.Phase == migration.JobSucceeded {
		return state, nil
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
	if len(pods.Items) == 0 {
		if state.Cause, err = r.refused(ctx, job); err != nil || state.Cause != "" {
			return state, err
		}
	}
	state.Cause, err = r.causeOf(ctx, m, pods.Items)
	return state, err
}

// refused returns why the pods of a Job could not be created: a Job has no condition for it.
func (r *objects) refused(ctx context.Context, job *batchv1.Job) (string, error) {
	events := &corev1.EventList{}
	err := r.live.List(ctx, events, client.InNamespace(job.Namespace), client.MatchingFields{"involvedObject.uid": string(job.UID)})
	if err != nil {
		return "", fmt.Errorf("list Events of migration Job %s: %w", job.Name, err)
	}
	return conditions.RefusedPods(events.Items, job.CreationTimestamp.Time, func(name string) bool { return name == job.Name }), nil
}

// lookForChores finds the unfinished Jobs of a CronJob beside the server, also of one that is not wanted any more.
func lookForChores(cron *batchv1.CronJob, jobs []batchv1.Job, pods []corev1.Pod, seen *migration.Workloads) {
	seen.Scheduling = seen.Scheduling || cron.Spec.Suspend == nil || !*cron.Spec.Suspend
	for i := range jobs {
		if job := &jobs[i]; metav1.IsControlledBy(job, cron) && migration.PhaseOf(job) == migration.JobRunning {
			seen.Chores = append(seen.Chores, choreOf(job, pods))
		}
	}
}

// choreOf reads an unfinished Job of a CronJob and what its pods do.
func choreOf(job *batchv1.Job, all []corev1.Pod) migration.JobState {
	pods := slices.DeleteFunc(slices.Clone(all), func(pod corev1.Pod) bool { return pod.Labels[podsOfJob] != string(job.UID) })
	since := job.CreationTimestamp.Time
	if job.Status.StartTime != nil {
		since = job.Status.StartTime.Time
	}
	return migration.JobState{
		Name: job.Name, UID: job.UID, Phase: migration.JobRunning, Since: since, Leaving: job.DeletionTimestamp != nil,
		Started: slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !neverStarted(&pod) }),
		Cause:   nameUsers(pods),
	}
}

// lookForServers counts what may use the database: replicas and pods of the servers, and other pods of ours. Pods that
// are on their way out still use it, and so does a server for artifacts that is no longer wanted, if it is ours.
func (r *objects) lookForServers(ctx context.Context, m *mlflowv1.MLflow, pods []corev1.Pod, seen *migration.Workloads) error {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !mayUse(&pod) })
	seen.Settled = true
	var counts []string
	several := false
	for _, s := range []resources.Server{resources.Tracking(m), resources.Artifacts(m)} {
		d, err := r.deployment(ctx, s, r.live)
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
			seen.Serving, seen.Runs = state.Ready && state.Desired > 0, runs(d, m)
		}
		seen.Settled = seen.Settled && (!exists || stopped(d))
		several = exists && !tracking
		own := int32(len(users) - len(slices.DeleteFunc(slices.Clone(users), ofServer)))
		busy := max(own, d.Status.Replicas)
		if busy > 0 {
			counts = append(counts, fmt.Sprintf("%s=%d", s.Name, busy))
		}
		seen.Busy += busy - own
	}
	seen.Busy += int32(len(users))
	seen.Users = nameUsers(users)
	if several {
		seen.Counts = strings.Join(counts, ", ")
	}
	return nil
}

// runs reports that a Deployment of an MLflow is meant to run.
func runs(d *appsv1.Deployment, m *mlflowv1.MLflow) bool {
	return metav1.IsControlledBy(d, m) && d.DeletionTimestamp == nil && common.ReplicasOrOne(d.Spec.Replicas) > 0
}

// stopped reports that a Deployment wants no replica and that its controller knows.
func stopped(d *appsv1.Deployment) bool {
	return common.ReplicasOrOne(d.Spec.Replicas) == 0 && d.Status.ObservedGeneration >= d.Generation
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
	resolved, err := r.references.Resolve(ctx, m.UID, namespace, references(m, resources.Servers(m)...))
	if err != nil || len(resolved.Missing) == 0 {
		return "", err
	}
	return resolved.Missing[0].String() + " in namespace " + namespace, nil
}
