package modelregistry

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// withBackups requests a generated database with TLS, backups and resource requests.
func withBackups(s *v1beta1.ModelRegistrySpec) {
	withGeneratedDatabase(s)
	s.Postgres.ServerTLS = server.Enabled
	s.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "15 3 * * *", Storage: storageOf("10Gi", "")}
	s.Postgres.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
}

// setDatabaseAvailable sets the status of the database Deployment as if its pod was available.
func (env *testEnv) setDatabaseAvailable(name string) {
	env.Helper()
	d := &appsv1.Deployment{}
	if !env.get(d, "ns", name) {
		env.Fatalf("Deployment %s does not exist", name)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	env.requireNoError(env.server.Status().Update(env.Context(), d))
}

func (env *testEnv) databaseImage() string {
	env.Helper()
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo-postgres")
	return d.Spec.Template.Spec.Containers[0].Image
}

func (env *testEnv) expectCondition(m *v1beta1.ModelRegistry, conditionType, reason, part string) {
	env.Helper()
	c, _ := conditions.Get(m.Status.Conditions, conditionType)
	if c.Reason != reason || !strings.Contains(c.Message, part) {
		env.Errorf("got condition %s with reason %q and message %q, want reason %q and %q in the message", conditionType, c.Reason, c.Message, reason, part)
	}
}

// A database keeps its image while the desired one has another major version; other changes of the spec are applied.
func TestImageIsPinnedToMajorVersion(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-17-c10s:latest"
	env.requireWait(env.reconcile(m), "available")
	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-16-c10s:1" // no server has run yet
	env.requireWait(env.reconcile(m), "available")
	if got := env.databaseImage(); got != m.Spec.Postgres.Image {
		t.Fatalf("got image %s, want the one of the spec, because the previous image never ran", got)
	}
	env.setDatabaseAvailable("demo-postgres")
	env.requireWait(env.reconcile(m), "available")

	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-17-c10s:latest"
	m.Spec.Postgres.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorDiffers, "PostgreSQL 17")
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo-postgres")
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "quay.io/sclorg/postgresql-16-c10s:1" || c.Resources.Requests.Cpu().String() != "2" {
		t.Errorf("image %s, resources %v", c.Image, c.Resources)
	}
	env.takeWrites()
	if env.requireWait(env.reconcile(m), "available"); len(env.writes) > 0 {
		t.Errorf("in steady state, wrote %v", env.writes)
	}

	// A new process reads the version from the annotation of the claim if the Deployment does not exist.
	env.forget(m.UID)
	env.requireNoError(env.server.Delete(t.Context(), d))
	env.requireWait(env.reconcile(m), "available")
	if got := env.databaseImage(); got != "quay.io/sclorg/postgresql-16-c10s:1" {
		t.Errorf("got image %s after a restart without a Deployment, want the pinned one", got)
	}

	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-16-c10s:2"
	env.requireWait(env.reconcile(m), "available")
	if got := env.databaseImage(); got != m.Spec.Postgres.Image {
		t.Errorf("got image %s, want the new minor version", got)
	}
	env.expectCondition(m, ConditionDatabaseImage, "", "")
}

// Admission does not check the annotations of a claim, so an image of another repository or an invalid user in them is not used.
func TestUntrustedAnnotationsOfClaimAreNotUsed(t *testing.T) {
	t.Run("claim of a new registry", func(t *testing.T) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-storage", Annotations: database.Image{Name: "evil/img", Major: 99}.Annotations()}}
		env := newTestEnv(t, nil, claim)
		m := newRegistry("demo", withGeneratedDatabase)
		env.requireWait(env.reconcile(m), "valid spec")
		env.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorDiffers, `image "evil/img" in the annotations of the claim is not from a configured repository`)
		if env.get(&appsv1.Deployment{}, "ns", "demo-postgres") {
			t.Error("a Deployment was created")
		}
		env.takeWrites()
		if env.requireWait(env.reconcile(m), "valid spec"); len(env.writes) > 0 {
			t.Errorf("in steady state, wrote %v", env.writes)
		}
		m.Spec.Postgres.Image, m.Spec.Postgres.MajorVersion = "example.com/mine", new(int32(99))
		env.requireWait(env.reconcile(m), "available")
		if got := env.databaseImage(); got != m.Spec.Postgres.Image {
			t.Errorf("got image %s, want the one of the spec", got)
		}
	})
	t.Run("database is down", func(t *testing.T) {
		env := newTestEnv(t, nil)
		m := newRegistry("demo", withGeneratedDatabase)
		env.requireWait(env.reconcile(m), "available")
		claim := &corev1.PersistentVolumeClaim{}
		env.get(claim, "ns", "demo-postgres-storage")
		maps.Copy(claim.Annotations, database.Image{Name: "evil/img", Major: 99}.Annotations())
		env.requireNoError(env.server.Update(t.Context(), claim))
		env.requireWait(env.reconcile(m), "available")
		if got := env.databaseImage(); got != "postgres:1" {
			t.Errorf("got image %s, want that of the Deployment", got)
		}
	})
	t.Run("user of a lost Secret", func(t *testing.T) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-storage", Annotations: map[string]string{annotationUser: "a b"}}}
		env := newTestEnv(t, nil, claim)
		m := newRegistry("demo", withGeneratedDatabase)
		env.requireWait(env.reconcile(m), "valid spec")
		env.expectCondition(m, ConditionAvailable, "DeploymentUnavailable", `database-user of PersistentVolumeClaim demo-postgres-storage "a b"`)
	})
}

// An image without a version in its name runs if the spec states the version of the data.
func TestMajorVersionOfSpec(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase) // postgres:1 of the settings
	env.requireWait(env.reconcile(m), "available")
	env.setDatabaseAvailable("demo-postgres")
	m.Spec.Postgres.Image = "example.com/mine@sha256:1"
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorUnknown, "spec.postgres.majorVersion")
	if got := env.databaseImage(); got != "postgres:1" {
		t.Errorf("image %s", got)
	}
	m.Spec.Postgres.MajorVersion = new(int32(1))
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionDatabaseImage, "", "")
	if got := env.databaseImage(); got != "example.com/mine@sha256:1" {
		t.Errorf("image %s", got)
	}
	env.settings.Images.Postgres, m.Spec.Postgres.Image, m.Spec.Postgres.MajorVersion = "postgres:2", "", nil
	env.setDatabaseAvailable("demo-postgres")
	env.forget(m.UID)
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorDiffers, "RELATED_IMAGE_POSTGRESQL_16_IMAGE")
}

// After the deletion of the claim and the Deployment of the database, any version can run.
func TestDeletedClaimIsRecreatedForAnyVersion(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	env.setDatabaseAvailable("demo-postgres")
	env.requireWait(env.reconcile(m), "available")
	env.requireNoError(env.server.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-storage"}}))
	env.requireNoError(env.server.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres"}}))
	m.Spec.Postgres.Image = "postgres:2"
	env.requireWait(env.reconcile(m), "available")
	if got := env.databaseImage(); got != "postgres:2" {
		t.Errorf("image %s", got)
	}
	env.expectCondition(m, ConditionDatabaseImage, "", "")
}

func TestBackups(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withBackups)
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionBackup, database.ReasonPending, "15 3 * * *")
	job, claim, policy := &batchv1.CronJob{}, &corev1.PersistentVolumeClaim{}, &networkingv1.NetworkPolicy{}
	if !env.get(job, "ns", "demo-postgres-backup") || !env.get(claim, "ns", "demo-postgres-backup") || !env.get(policy, "ns", "demo-postgres-backup") {
		t.Fatal("the CronJob, the claim or the NetworkPolicy of the backups is missing")
	}
	if !metav1.IsControlledBy(job, m) || len(claim.OwnerReferences) > 0 || claim.Spec.Resources.Requests.Storage().String() != "10Gi" {
		t.Errorf("owners %v and %v, size %v", job.OwnerReferences, claim.OwnerReferences, claim.Spec.Resources)
	}
	job.Status.LastScheduleTime = new(metav1.NewTime(now))
	env.requireNoError(env.server.Status().Update(t.Context(), job))
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionBackup, database.ReasonPending, "15 3 * * *")
	env.step(failureDelay)
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionBackup, database.ReasonFailed, "kubectl -n ns logs -l app.kubernetes.io/name=demo-postgres-backup")
	env.takeWrites()
	if env.requireWait(env.reconcile(m), "available"); len(env.writes) > 0 {
		t.Errorf("in steady state, wrote %v", env.writes)
	}

	m.Spec.Postgres.Backup.Storage = storageOf("20Gi", "")
	env.requireWait(env.reconcile(m), "available")
	if env.get(claim, "ns", "demo-postgres-backup"); claim.Spec.Resources.Requests.Storage().String() != "20Gi" {
		t.Errorf("the claim was not expanded: %v", claim.Spec.Resources)
	}
	m.Spec.Postgres.Backup.Storage = storageOf("1Gi", "")
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionStorage, ReasonClaimDiffers, "spec.postgres.backup.storage.size is 1Gi")

	m.Spec.Postgres.Backup = nil
	env.setRunning(m)
	_ = env.reconcile(m)
	if env.get(job, "ns", "demo-postgres-backup") || env.get(policy, "ns", "demo-postgres-backup") || !env.get(claim, "ns", "demo-postgres-backup") {
		t.Error("want the CronJob and the NetworkPolicy deleted with the field, and the claim kept")
	}
	env.expectCondition(m, ConditionBackup, "", "")
}

// A foreign claim or a rejected CronJob is reported in the condition and does not fail the reconcile. Other errors do.
func TestBackupFailuresAreReported(t *testing.T) {
	t.Run("claim without its labels", func(t *testing.T) {
		env := newTestEnv(t, nil)
		m := newRegistry("demo", withBackups)
		env.requireWait(env.reconcile(m), "available")
		claim := &corev1.PersistentVolumeClaim{}
		env.get(claim, "ns", "demo-postgres-backup")
		claim.Labels = nil
		env.requireNoError(env.server.Update(t.Context(), claim))
		env.setRunning(m)
		_ = env.reconcile(m)
		env.expectCondition(m, ConditionBackup, database.ReasonForeign, "no backups are stored on it")
		if env.get(&batchv1.CronJob{}, "ns", "demo-postgres-backup") {
			t.Error("the CronJob still exists and writes to the claim")
		}
	})
	t.Run("foreign claim", func(t *testing.T) {
		env := newTestEnv(t, nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-backup"}})
		m := newRegistry("demo", withBackups)
		env.requireWait(env.reconcile(m), "available")
		env.expectCondition(m, ConditionBackup, database.ReasonForeign, "PersistentVolumeClaim demo-postgres-backup was not created by this operator")
		if env.get(&batchv1.CronJob{}, "ns", "demo-postgres-backup") {
			t.Error("the CronJob exists, although the claim is foreign")
		}
	})
	t.Run("rejected CronJob", func(t *testing.T) {
		env := newTestEnv(t, nil)
		env.fail = func(_, kind string) error {
			if kind == "CronJob" {
				return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "CronJob"}, "demo-postgres-backup", nil)
			}
			return nil
		}
		m := newRegistry("demo", withBackups)
		env.requireWait(env.reconcile(m), "available")
		env.expectCondition(m, ConditionBackup, database.ReasonRefused, "correct spec.postgres.backup")
		if !env.get(&appsv1.Deployment{}, "ns", "demo") {
			t.Error("the Deployment of the server does not exist because of the backups")
		}
		env.fail = nil
		env.requireWait(env.reconcile(m), "available")
		env.expectCondition(m, ConditionBackup, database.ReasonPending, "")
	})
	t.Run("other errors", func(t *testing.T) {
		env := newTestEnv(t, nil)
		env.fail = func(_, kind string) error {
			if kind == "CronJob" {
				return errCall
			}
			return nil
		}
		if err := env.reconcile(newRegistry("demo", withBackups)); !errors.Is(err, errCall) {
			t.Errorf("got error %v", err)
		}
	})
}

// The certificate of the database is issued, clients verify it, and its renewal causes a rollout.
func TestDatabaseTLS(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withBackups)
	env.requireWait(env.reconcile(m), "available")
	secret := &corev1.Secret{}
	if !env.get(secret, "ns", "demo-postgres-tls") || len(secret.Data["ca.crt"]) == 0 || !metav1.IsControlledBy(secret, m) {
		t.Fatalf("Secret %v", secret)
	}
	rollout := func(name string) string {
		d := &appsv1.Deployment{}
		env.get(d, "ns", name)
		return d.Spec.Template.Annotations["platform.opendatahub.io/references-rollout"]
	}
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--embedmd-database-ssl-root-cert=/etc/postgres_ssl_rootcert/ca.crt") {
		t.Errorf("arguments %s", args)
	}
	if address := env.addressOf(m); !strings.HasSuffix(address, "?sslmode=verify-full") {
		t.Errorf("address %s", address)
	}
	env.requireWait(env.reconcile(m), "available")
	env.takeWrites()
	if env.requireWait(env.reconcile(m), "available"); len(env.writes) > 0 {
		t.Errorf("in steady state, wrote %v", env.writes)
	}
	first := string(secret.Data["tls.crt"])
	secret.Data["tls.key"] = []byte("damaged")
	env.requireNoError(env.server.Update(t.Context(), secret))
	env.requireWait(env.reconcile(m), "available")
	env.requireWait(env.reconcile(m), "available")
	if env.get(secret, "ns", "demo-postgres-tls"); string(secret.Data["tls.crt"]) == first {
		t.Fatal("the certificate was not reissued")
	}
	if rollout("demo") == "" || rollout("demo-postgres") == "" {
		t.Errorf("the renewed certificate caused no rollout: server %q, database %q", rollout("demo"), rollout("demo-postgres"))
	}
	env.requireWait(env.reconcile(newRegistry("other", withGeneratedDatabase)), "available")
	if env.get(&corev1.Secret{}, "ns", "other-postgres-tls") {
		t.Error("a certificate was issued for a registry whose database does not use TLS")
	}
}

// A CronJob removes a successful Job from its active ones before it records the success.
func TestSuccessfulBackupIsNeverReportedAsFailed(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withBackups)
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	job := &batchv1.CronJob{}
	env.get(job, "ns", "demo-postgres-backup")
	hours := func(n int) *metav1.Time { return new(metav1.NewTime(now.Add(time.Duration(n) * time.Hour))) }
	for i, status := range []batchv1.CronJobStatus{
		{LastScheduleTime: hours(1), LastSuccessfulTime: hours(2)},
		{LastScheduleTime: hours(3), LastSuccessfulTime: hours(2), Active: []corev1.ObjectReference{{Name: "job"}}},
		{LastScheduleTime: hours(3), LastSuccessfulTime: hours(2)},
		{LastScheduleTime: hours(3), LastSuccessfulTime: hours(4)},
	} {
		job.Status = status
		env.requireNoError(env.server.Status().Update(t.Context(), job))
		err := env.reconcile(m)
		env.expectCondition(m, ConditionBackup, database.ReasonSucceeded, "")
		if wait, isWait := reconciler.AsWait(err); i == 2 && (!isWait || wait.Retry != failureDelay) {
			t.Errorf("got error %v, want a reconcile after %s", err, failureDelay)
		}
	}
}
