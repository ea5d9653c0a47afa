package resources

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// Names and limits of migration Jobs. Clients rely on the names.
const (
	MigrationContainer = "db-migrate"

	LabelMigrationJob      = "mlflow.opendatahub.io/migration-job"
	LabelMigrationInstance = "mlflow.opendatahub.io/migration-instance"
	// ForcedByAnnotation on a Job is the hash of the force annotation for which the Job was created.
	ForcedByAnnotation = "mlflow.opendatahub.io/forced-by"

	envMigrationProgram = "MIGRATION_PYTHON_SCRIPT"
	migrationArgs       = `exec python3.12 -c "$` + envMigrationProgram + `"`
	envSupportedVersion = "SUPPORTED_MLFLOW_VERSION"

	// maxJobNameLength is the limit of a label value: pods of a Job have its name as a label.
	maxJobNameLength      = 63
	jobBackoffLimit       = 3
	finishedJobTTLSeconds = 86400

	// CheckForAnnotation on a check Job is the hash of the migration for which the Job was created.
	CheckForAnnotation = "mlflow.opendatahub.io/check-for"
	// checkDeadlineSeconds ends a check that hangs or whose pod is unschedulable; it is long enough to pull large images.
	checkDeadlineSeconds = 1800
)

// MigrationJobName returns the name of the migration Job for a version and a generation.
func MigrationJobName(m *mlflowv1.MLflow, in Inputs) string {
	return jobName(m, fmt.Sprintf("-mg-%s-g%d", versionKey(in.Version), m.Generation))
}

func jobName(m *mlflowv1.MLflow, suffix string) string {
	base := NameOf(m)
	if room := maxJobNameLength - len(suffix); len(base) > room {
		base = strings.TrimRight(base[:room], "-.")
	}
	return base + suffix
}

var nonAlphanumeric = regexp.MustCompile(`[^a-z0-9]+`)

// versionKey returns a version as part of an object name.
func versionKey(version string) string {
	key := nonAlphanumeric.ReplaceAllString(strings.ToLower(version), "")
	return cmp.Or(strings.TrimPrefix(key, "v"), "unknown")
}

// MigrationJob returns a Job of the migration program with the pod settings of the server. force is the hash of the force annotation, or empty.
func MigrationJob(m *mlflowv1.MLflow, in Inputs, force string) *batchv1ac.JobApplyConfiguration {
	labels := migrationLabels(m)
	ttl := int32(finishedJobTTLSeconds)
	if spec := m.Spec.Migration; spec != nil && spec.TTLSecondsAfterFinished != nil {
		ttl = *spec.TTLSecondsAfterFinished
	}
	job := batchv1ac.Job(MigrationJobName(m, in), in.Namespace).
		WithLabels(labels).
		WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(jobBackoffLimit).
			WithTTLSecondsAfterFinished(ttl).
			WithPodFailurePolicy(terminalExitPolicy()).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(migrationPod(m, in, migrationArgs, serverUsesVolume(m)))))
	// There is no default deadline: migrating a large table takes hours, and MySQL cannot roll back an interrupted schema change.
	if spec := m.Spec.Migration; spec != nil {
		job.Spec.ActiveDeadlineSeconds = spec.ActiveDeadlineSeconds
	}
	if force != "" {
		job.WithAnnotations(map[string]string{ForcedByAnnotation: force})
	}
	return job
}

// migrationLabels returns the operator's labels and spec.podLabels, except the label that the Service of the server selects.
// NetworkPolicies of a database may select labelInstance, which all pods of an MLflow have.
func migrationLabels(m *mlflowv1.MLflow) map[string]string {
	all := map[string]string{}
	maps.Copy(all, m.Spec.PodLabels)
	delete(all, LabelApp)
	all[labelInstance] = NameOf(m)
	all[LabelComponent] = migrationName
	all[LabelMigrationJob] = "true"
	all[LabelMigrationInstance] = m.Name
	return all
}

// terminalExitPolicy fails the Job without retries for terminal exit codes.
func terminalExitPolicy() *batchv1ac.PodFailurePolicyApplyConfiguration {
	var codes []int32
	for _, exit := range migrationExits {
		if exit.terminal {
			codes = append(codes, exit.code)
		}
	}
	return batchv1ac.PodFailurePolicy().WithRules(batchv1ac.PodFailurePolicyRule().
		WithAction(batchv1.PodFailurePolicyActionFailJob).
		WithOnExitCodes(batchv1ac.PodFailurePolicyOnExitCodesRequirement().
			WithContainerName(MigrationContainer).
			WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).
			WithValues(codes...)))
}

// CheckJobName returns the name of the check Job.
func CheckJobName(m *mlflowv1.MLflow) string { return jobName(m, "-migration-check") }

// CheckJob returns a Job of the migration program that reads database servers while the server runs. It does not mount the volume, which
// may be attachable only to the node of the server. It requests few resources, because a larger pod may not be schedulable.
func CheckJob(m *mlflowv1.MLflow, in Inputs, checkHash string) *batchv1ac.JobApplyConfiguration {
	job := MigrationJob(m, in, "").WithName(CheckJobName(m)).WithAnnotations(map[string]string{CheckForAnnotation: checkHash})
	pod := migrationPod(m, in, migrationArgs+" check", false)
	pod.Containers[0].WithResources(smallResources())
	job.Spec.WithActiveDeadlineSeconds(checkDeadlineSeconds).Template.WithSpec(pod)
	job.Spec.TTLSecondsAfterFinished = nil // the result must not expire while the migration is requested
	delete(job.Labels, LabelMigrationJob)  // a check migrates nothing
	delete(job.Spec.Template.Labels, LabelMigrationJob)
	return job
}

// migrationPod returns a pod with the certificates of the tracking server, optionally its volume, and without ports, probes and resource claims.
func migrationPod(m *mlflowv1.MLflow, in Inputs, args string, mountsVolume bool) *corev1ac.PodSpecApplyConfiguration {
	caBundle := withCABundle(m, in, caSources(m, in), false)
	containerResources := Tracking(m).requirements(m)
	containerResources.Claims = nil
	container := imageContainer(m, in, MigrationContainer).
		WithCommand("/bin/sh", "-ec").
		WithArgs(args).
		WithResources(containerResources)
	container.Env = migrationEnv(m, in, caBundle.env)
	metrics := withMetrics()
	metrics.args = nil // arguments of the server
	return newPod(m, in, serviceAccountName(m), container,
		withScratch(m), withVolume(m, mountsVolume), withTLS(in, Tracking(m)), caBundle, metrics, withArchival(m)).
		WithRestartPolicy(corev1.RestartPolicyNever)
}

// migrationEnv returns the environment of the tracking server with the program and the version, and with an empty read replica.
func migrationEnv(m *mlflowv1.MLflow, in Inputs, caEnv []envVar) []envVar {
	env := serverEnv(m, in, Tracking(m), caEnv)
	replaced := []string{envReadReplica, envMigrationProgram, envSupportedVersion}
	env = slices.DeleteFunc(env, func(v envVar) bool { return slices.Contains(replaced, *v.Name) })
	return append(env,
		value(envReadReplica, ""),
		value(envMigrationProgram, migrationProgram),
		value(envSupportedVersion, in.Version))
}

// migrationProgram migrates the databases to the schema of the MLflow in its image. It reads the store variables of the server and
// SUPPORTED_MLFLOW_VERSION, and exits with 0 or a code of migrationExits.
//
//go:embed migrate.py
var migrationProgram string
