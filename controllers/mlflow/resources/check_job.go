package resources

import (
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

const (
	// CheckForAnnotation on the Job of a check says which migration it is for, as a hash.
	CheckForAnnotation = "mlflow.opendatahub.io/check-for"

	// checkDeadline ends a check that hangs or whose pod finds no node, in seconds; another follows. Large images have arrived by then.
	checkDeadline = 1800
)

// CheckJobName is the name of the Job of a check.
func CheckJobName(m *mlflowv1.MLflow) string { return jobName(m, "-migration-check") }

// CheckJob runs the migration program so that it opens the databases and changes nothing, beside the server. Its pod is that of the
// migration, but for two things: it does not mount the volume, which may be attachable to the node of the server only and has no
// login to try, and it asks for little, because there may be no room for a second server. check is what it is for.
func CheckJob(m *mlflowv1.MLflow, in Inputs, check string) *batchv1ac.JobApplyConfiguration {
	job := MigrationJob(m, in, "").WithName(CheckJobName(m)).WithAnnotations(map[string]string{CheckForAnnotation: check})
	pod := migrationPod(m, in, migrationArgs+" check", false)
	pod.Containers[0].WithResources(choreResources())
	job.Spec.WithActiveDeadlineSeconds(checkDeadline).WithTTLSecondsAfterFinished(keepFinished).Template.WithSpec(pod)
	delete(job.Labels, LabelMigrationJob) // it migrates nothing
	delete(job.Spec.Template.Labels, LabelMigrationJob)
	return job
}
