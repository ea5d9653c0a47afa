package resources

import (
	_ "embed"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// backupScript makes a backup of the database that the variables of libpq name in the folder $1, or restores one.
//
//go:embed postgres_backup.sh
var backupScript string

const (
	backupVolume = "backups"
	// BackupDir is where a pod has the backups.
	BackupDir = "/backups"
	// backupDeadline ends a run that hangs, in seconds.
	backupDeadline = 6 * 60 * 60
)

// PostgresBackup makes backups of a database on a schedule.
type PostgresBackup struct {
	// Image has pg_dump of the major version of the server, or a later one.
	Image string
	// Env are the variables of libpq that lead to the database.
	Env []*corev1ac.EnvVarApplyConfiguration
	// Certificate is the Secret with the CA of the server; empty for connections in plain text.
	Certificate string
	// Schedule is a cron expression in UTC.
	Schedule string
	// Keep is how many backups stay.
	Keep    int32
	Suspend bool
	// Claim keeps the backups.
	Claim    string
	Security *corev1ac.PodSecurityContextApplyConfiguration
	// Labels are those of the pods.
	Labels map[string]string
}

// CronJob makes the backups, one at a time. Its pods restore one in place of that while RESTORE names it.
func (b PostgresBackup) CronJob(meta metav1.ObjectMeta) *batchv1ac.CronJobApplyConfiguration {
	container := corev1ac.Container().
		WithName("backup").
		WithImage(b.Image).
		WithCommand("/bin/sh", "-c", backupScript, "backup", BackupDir).
		WithEnv(b.Env...).
		WithEnv(corev1ac.EnvVar().WithName("KEEP").WithValue(strconv.Itoa(int(max(1, b.Keep))))).
		WithResources(PostgresResources()).
		WithSecurityContext(ContainerSecurity().WithReadOnlyRootFilesystem(true)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(backupVolume).WithMountPath(BackupDir))
	volumes := []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName(backupVolume).
		WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(b.Claim))}
	if b.Certificate != "" {
		volumes = append(volumes, AddPostgresVerification(container, VerifyFull, b.Certificate))
	}
	pod := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(b.Security).
		WithContainers(container).
		WithVolumes(volumes...)
	return batchv1ac.CronJob(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(batchv1ac.CronJobSpec().
		WithSchedule(b.Schedule).
		WithTimeZone("Etc/UTC").
		WithSuspend(b.Suspend).
		WithConcurrencyPolicy(batchv1.ForbidConcurrent).
		WithSuccessfulJobsHistoryLimit(1).
		WithFailedJobsHistoryLimit(3).
		WithJobTemplate(batchv1ac.JobTemplateSpec().WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(1).
			WithActiveDeadlineSeconds(backupDeadline).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(b.Labels).WithSpec(pod)))))
}

// Policy lets the pods of backups reach the database and name servers, and no client reach them.
func (b PostgresBackup) Policy(meta metav1.ObjectMeta, database map[string]string, port int32) *policyConfig {
	policy := EgressPolicy(meta, b.Labels, allowEgress(corev1.ProtocolTCP, port).WithTo(PodPeer(database)),
		allowEgress(corev1.ProtocolUDP, dnsPorts...), allowEgress(corev1.ProtocolTCP, dnsPorts...))
	policy.Spec.WithPolicyTypes(networkingv1.PolicyTypeIngress)
	return policy
}

// dnsPorts are those of name servers; that of OpenShift has the second.
var dnsPorts = []int32{53, 5353}

func allowEgress(protocol corev1.Protocol, ports ...int32) *egressRule {
	return networkingv1ac.NetworkPolicyEgressRule().WithPorts(policyPorts(protocol, ports)...)
}
