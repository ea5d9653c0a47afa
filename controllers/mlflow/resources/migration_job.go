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

// Names of the Job of a migration that others look for.
const (
	MigrationContainer = "db-migrate"

	LabelMigrationJob      = "mlflow.opendatahub.io/migration-job"
	LabelMigrationInstance = "mlflow.opendatahub.io/migration-instance"
	// ForcedByAnnotation on a Job says which value of the force annotation it was made for, as a hash. It is written with
	// the Job itself, so that no crash can part the two.
	ForcedByAnnotation = "mlflow.opendatahub.io/forced-by"

	envMigrationProgram = "MIGRATION_PYTHON_SCRIPT"
	migrationArgs       = `exec python3.12 -c "$` + envMigrationProgram + `"`
	envSupportedVersion = "SUPPORTED_MLFLOW_VERSION"

	// maxJobName is the longest name of a Job: its pods bear it as a label.
	maxJobNameLength = 63
	// attempts is how often a pod is tried again within one Job.
	jobBackoffLimit = 3
	// keepFinished is for how long a finished Job is kept, in seconds.
	finishedJobTTLSeconds = 86400

	// CheckForAnnotation on the Job of a check says which migration it is for, as a hash.
	CheckForAnnotation = "mlflow.opendatahub.io/check-for"
	// checkDeadline ends a check that hangs or whose pod finds no node, in seconds; another follows. Large images have arrived by then.
	checkDeadlineSeconds = 1800
)

// MigrationJobName distinguishes what would be migrated: version and generation.
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

// versionKey is a version as part of a name.
func versionKey(version string) string {
	key := nonAlphanumeric.ReplaceAllString(strings.ToLower(version), "")
	return cmp.Or(strings.TrimPrefix(key, "v"), "unknown")
}

// MigrationJob runs the migration program in a pod that is confined, placed and fed as those of the server are. force
// is the hash of the annotation that asked for it, or empty.
func MigrationJob(m *mlflowv1.MLflow, in Inputs, force string) *batchv1ac.JobApplyConfiguration {
	labels := migrationLabels(m)
	ttl := int32(finishedJobTTLSeconds)
	if wanted := m.Spec.Migration; wanted != nil && wanted.TTLSecondsAfterFinished != nil {
		ttl = *wanted.TTLSecondsAfterFinished
	}
	job := batchv1ac.Job(MigrationJobName(m, in), in.Namespace).
		WithLabels(labels).
		WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(jobBackoffLimit).
			WithTTLSecondsAfterFinished(ttl).
			WithPodFailurePolicy(terminalExitPolicy()).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(migrationPod(m, in, migrationArgs, serverUsesVolume(m)))))
	// Without a word of the user there is no deadline: a change of a large table takes hours, and MySQL cannot take it back
	// when it is cut short.
	if wanted := m.Spec.Migration; wanted != nil {
		job.Spec.ActiveDeadlineSeconds = wanted.ActiveDeadlineSeconds
	}
	if force != "" {
		job.WithAnnotations(map[string]string{ForcedByAnnotation: force})
	}
	return job
}

// migrationLabels are those of the user, but for the one that would bring the pods under the Service of the server, and ours.
// The instance is that of all pods of an MLflow, by which policies before a database may admit them.
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

// terminalExits end the Job at once where another attempt would end the same way.
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

// CheckJobName is the name of the Job of a check.
func CheckJobName(m *mlflowv1.MLflow) string { return jobName(m, "-migration-check") }

// CheckJob runs the migration program so that it opens the databases and changes nothing, beside the server. Its pod is that of the
// migration, but for two things: it does not mount the volume, which may be attachable to the node of the server only and has no
// login to try, and it asks for little, because there may be no room for a second server. check is what it is for.
func CheckJob(m *mlflowv1.MLflow, in Inputs, check string) *batchv1ac.JobApplyConfiguration {
	job := MigrationJob(m, in, "").WithName(CheckJobName(m)).WithAnnotations(map[string]string{CheckForAnnotation: check})
	pod := migrationPod(m, in, migrationArgs+" check", false)
	pod.Containers[0].WithResources(smallResources())
	job.Spec.WithActiveDeadlineSeconds(checkDeadlineSeconds).WithTTLSecondsAfterFinished(finishedJobTTLSeconds).Template.WithSpec(pod)
	delete(job.Labels, LabelMigrationJob) // it migrates nothing
	delete(job.Spec.Template.Labels, LabelMigrationJob)
	return job
}

// migrationPod has the certificates of the server, and its volume where wanted, without what only a server needs.
func migrationPod(m *mlflowv1.MLflow, in Inputs, args string, volume bool) *corev1ac.PodSpecApplyConfiguration {
	authorities := withCABundle(m, in, caSources(m, in), false)
	needed := Tracking(m).requirements(m)
	needed.Claims = nil
	container := imageContainer(m, in, MigrationContainer).
		WithCommand("/bin/sh", "-ec").
		WithArgs(args).
		WithResources(needed)
	container.Env = migrationEnv(m, in, authorities.env)
	metrics := withMetrics()
	metrics.args = nil // of the server
	return newPod(m, in, serviceAccountName(m), container,
		withScratch(m), withVolume(m, volume), withTLS(in, Tracking(m)), authorities, metrics, withArchival(m)).
		WithRestartPolicy(corev1.RestartPolicyNever)
}

// migrationEnv is that of the server with the program and the version, and without the read replica, which is no place
// to migrate.
func migrationEnv(m *mlflowv1.MLflow, in Inputs, certificates []envVar) []envVar {
	env := serverEnv(m, in, Tracking(m), certificates)
	ours := []string{envReadReplica, envMigrationProgram, envSupportedVersion}
	env = slices.DeleteFunc(env, func(v envVar) bool { return slices.Contains(ours, *v.Name) })
	return append(env,
		value(envReadReplica, ""),
		value(envMigrationProgram, migrationProgram),
		value(envSupportedVersion, in.Version))
}

// migrationProgram brings the databases to the schema of the MLflow in the image that it runs in. It reads the store
// variables of the server and SUPPORTED_MLFLOW_VERSION, and ends with 0 or with a code of migrationExits.
//
//go:embed migrate.py
var migrationProgram string
