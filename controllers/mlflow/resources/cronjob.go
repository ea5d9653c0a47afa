package resources

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// chore is what the jobs beside the server differ in.
type chore struct {
	// name is that of the CronJob, of its container and, with the suffix of the
	// MLflow, the value of its label app.
	name      string
	schedule  mlflowv1.CronSchedule
	account   string
	command   []string
	args      []string
	env       []envVar
	resources *corev1ac.ResourceRequirementsApplyConfiguration
	// volume: one of the parts is the volume of the server.
	volume bool
	parts  []part
}

// ChoreDeadline ends a run that hangs, in seconds. What it has not done is done by the next: runs of garbage collection and
// archival finish one item after the other.
const ChoreDeadline = 2 * 60 * 60

// cronJob runs a chore in pods that are confined, placed and fed as those of
// the server are. One run at a time: a run that takes longer than the schedule
// is not overtaken by the next.
func cronJob(m *mlflowv1.MLflow, in Inputs, c chore) *batchv1ac.CronJobApplyConfiguration {
	name := Suffixed(c.name, m)
	template := corev1ac.PodTemplateSpec().WithLabels(podLabelsOf(name, m)).WithSpec(chorePod(m, in, c))
	return batchv1ac.CronJob(name, in.Namespace).
		WithLabels(Labels(name)).
		WithSpec(batchv1ac.CronJobSpec().
			WithSchedule(string(c.schedule)).
			WithSuspend(false).
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			WithSuccessfulJobsHistoryLimit(3).
			WithFailedJobsHistoryLimit(3).
			WithJobTemplate(batchv1ac.JobTemplateSpec().
				WithSpec(batchv1ac.JobSpec().WithBackoffLimit(1).WithActiveDeadlineSeconds(ChoreDeadline).WithTemplate(template))))
}

func chorePod(m *mlflowv1.MLflow, in Inputs, c chore) *corev1ac.PodSpecApplyConfiguration {
	container := imageContainer(m, in, c.name).
		WithCommand(c.command...).
		WithArgs(c.args...).
		WithResources(c.resources).
		WithSecurityContext(containerSecurity(m))
	container.Env, container.EnvFrom = c.env, userEnvFrom(m)
	pod := corev1ac.PodSpec().
		WithServiceAccountName(c.account).
		WithAutomountServiceAccountToken(true).
		WithRestartPolicy(corev1.RestartPolicyNever)
	assemble(pod, container, c.parts)
	placePod(m, in, pod)
	if c.volume {
		joinServer(m, pod)
	}
	return pod
}

// choreEnv is the environment of a chore: which workspaces there are and where
// the data is, with what the chore itself needs around it, what the user wants,
// and what comes after that. Names occur once, as for the server.
func choreEnv(m *mlflowv1.MLflow, first, own, after []envVar) []envVar {
	spec := translateEnv(m)
	before := append([]envVar{value(envTelemetry, "true")}, first...)
	before = append(before,
		value(envWorkspaces, "true"),
		value(envWorkspaceStore, workspaceStore))
	before = append(before, spec.selector...)
	before = append(before, spec.stores[0])
	return mergeEnv(append(before, own...), spec.user, after)
}
