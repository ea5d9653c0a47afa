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

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// backupScript backs up the database of the libpq variables to directory $1, or restores a backup.
//
//go:embed postgres_backup.sh
var backupScript string

const (
	backupVolume = "backups"
	// BackupDir is the mount path of the backups.
	BackupDir = "/backups"
	// backupDeadlineSeconds is the deadline of a Job.
	backupDeadlineSeconds = 6 * 60 * 60
)

// PostgresBackup is a schedule for backups of a database.
type PostgresBackup struct {
	// Image contains pg_dump of the major version of the server or a later one.
	Image string
	// Env has the libpq variables of the database.
	Env []*corev1ac.EnvVarApplyConfiguration
	// Certificate is the Secret with the CA of the server; empty without TLS.
	Certificate string
	// Schedule is a cron expression in UTC.
	Schedule string
	// Keep is the number of retained backups.
	Keep    int32
	Suspend bool
	// Claim is the claim of the backups.
	Claim    string
	Security *corev1ac.PodSecurityContextApplyConfiguration
	// Labels are the labels of the pods.
	Labels map[string]string
	// Pods are the settings of the server's pods for pulling images and scheduling.
	Pods *server.Pods
}

// CronJob returns the CronJob of the backups. A pod with the variable RESTORE restores the named backup instead.
func (b PostgresBackup) CronJob(meta metav1.ObjectMeta) *batchv1ac.CronJobApplyConfiguration {
	container := corev1ac.Container().
		WithName("backup").
		WithImage(b.Image).
		WithCommand("/bin/sh", "-c", backupScript, "backup", BackupDir).
		WithEnv(b.Env...).
		WithEnv(corev1ac.EnvVar().WithName("KEEP").WithValue(strconv.Itoa(int(max(1, b.Keep))))).
		WithResources(PostgresResources()).
		WithSecurityContext(ContainerSecurity().WithReadOnlyRootFilesystem(true)).
		WithVolumeMounts(Mount(backupVolume, BackupDir))
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
	SetScheduling(pod, b.Pods)
	return batchv1ac.CronJob(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(batchv1ac.CronJobSpec().
		WithSchedule(b.Schedule).
		WithTimeZone("Etc/UTC").
		WithSuspend(b.Suspend).
		WithConcurrencyPolicy(batchv1.ForbidConcurrent).
		WithSuccessfulJobsHistoryLimit(1).
		WithFailedJobsHistoryLimit(3).
		WithJobTemplate(batchv1ac.JobTemplateSpec().WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(1).
			WithActiveDeadlineSeconds(backupDeadlineSeconds).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(b.Labels).WithSpec(pod)))))
}

// Policy allows egress of backup pods to the database and to the DNS ports of all peers, and denies ingress.
func (b PostgresBackup) Policy(meta metav1.ObjectMeta, database map[string]string, port int32) *policyConfig {
	policy := EgressPolicy(meta, b.Labels, AllowEgress(corev1.ProtocolTCP, port).WithTo(PodPeer(database)),
		AllowEgress(corev1.ProtocolUDP, dnsPorts...), AllowEgress(corev1.ProtocolTCP, dnsPorts...))
	policy.Spec.WithPolicyTypes(networkingv1.PolicyTypeIngress)
	return policy
}

// dnsPorts are the ports of DNS pods; OpenShift uses the second one.
var dnsPorts = []int32{53, 5353}

// AllowEgress returns a rule that allows egress to ports of all peers. WithTo restricts the peers.
func AllowEgress(protocol corev1.Protocol, ports ...int32) *egressRule {
	return networkingv1ac.NetworkPolicyEgressRule().WithPorts(policyPorts(protocol, ports)...)
}
