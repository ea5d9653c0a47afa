package modelregistry

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// withBackups enables all features of a generated database.
func withBackups(s *v1beta1.ModelRegistrySpec) {
	withGeneratedDatabase(s)
	s.Postgres.ServerTLS = server.Enabled
	s.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "15 3 * * *", Storage: storageOf("10Gi", "")}
	s.Postgres.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
}

// databaseRuns sets the status of the database Deployment as if its pod was available.
func (w *testEnv) databaseRuns(name string) {
	w.Helper()
	d := &appsv1.Deployment{}
	if !w.get(d, "ns", name) {
		w.Fatal("no Deployment of a database")
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	w.requireNoError(w.server.Status().Update(w.Context(), d))
}

func (w *testEnv) databaseImage() string {
	w.Helper()
	d := &appsv1.Deployment{}
	w.get(d, "ns", "demo-postgres")
	return d.Spec.Template.Spec.Containers[0].Image
}

func (w *testEnv) expectCondition(m *v1beta1.ModelRegistry, kind, reason, part string) {
	w.Helper()
	c, _ := conditions.Get(m.Status.Conditions, kind)
	if c.Reason != reason || !strings.Contains(c.Message, part) {
		w.Errorf("%s: %q %q, want %q with %q", kind, c.Reason, c.Message, reason, part)
	}
}

// A database keeps its image while the desired one has another major version; other changes of the spec are applied.
func TestImageIsPinnedToMajorVersion(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-17-c10s:latest"
	w.requireWait(w.reconcile(m), "available")
	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-16-c10s:1" // no server has run yet
	w.requireWait(w.reconcile(m), "available")
	if got := w.databaseImage(); got != m.Spec.Postgres.Image {
		t.Fatalf("an image that never ran stays: %s", got)
	}
	w.databaseRuns("demo-postgres")
	w.requireWait(w.reconcile(m), "available")

	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-17-c10s:latest"
	m.Spec.Postgres.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorDiffers, "PostgreSQL 17")
	d := &appsv1.Deployment{}
	w.get(d, "ns", "demo-postgres")
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "quay.io/sclorg/postgresql-16-c10s:1" || c.Resources.Requests.Cpu().String() != "2" {
		t.Errorf("image %s, resources %v", c.Image, c.Resources)
	}
	w.takeWrites()
	if w.requireWait(w.reconcile(m), "available"); len(w.writes) > 0 {
		t.Errorf("at rest it wrote %v", w.writes)
	}

	// The annotation of the claim is enough for a new process without a Deployment.
	w.forget(m.UID)
	w.requireNoError(w.server.Delete(t.Context(), d))
	w.requireWait(w.reconcile(m), "available")
	if got := w.databaseImage(); got != "quay.io/sclorg/postgresql-16-c10s:1" {
		t.Errorf("got image %s after a restart without a Deployment, want the pinned one", got)
	}

	m.Spec.Postgres.Image = "quay.io/sclorg/postgresql-16-c10s:2"
	w.requireWait(w.reconcile(m), "available")
	if got := w.databaseImage(); got != m.Spec.Postgres.Image {
		t.Errorf("a minor version is held back: %s", got)
	}
	w.expectCondition(m, ConditionDatabaseImage, "", "")
}

// An image without a version in its name runs if the spec states the version of the data.
func TestMajorVersionOfSpec(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase) // postgres:1 of the settings
	w.requireWait(w.reconcile(m), "available")
	w.databaseRuns("demo-postgres")
	m.Spec.Postgres.Image = "example.com/mine@sha256:1"
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorUnknown, "spec.postgres.majorVersion")
	if got := w.databaseImage(); got != "postgres:1" {
		t.Errorf("image %s", got)
	}
	m.Spec.Postgres.MajorVersion = new(int32(1))
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionDatabaseImage, "", "")
	if got := w.databaseImage(); got != "example.com/mine@sha256:1" {
		t.Errorf("image %s", got)
	}
	w.settings.Images.Postgres, m.Spec.Postgres.Image, m.Spec.Postgres.MajorVersion = "postgres:2", "", nil
	w.databaseRuns("demo-postgres")
	w.forget(m.UID)
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionDatabaseImage, database.ReasonMajorDiffers, "RELATED_IMAGE_POSTGRESQL_16_IMAGE")
}

// After the deletion of the claim with its data any version can run.
func TestDeletedClaimIsRecreatedForAnyVersion(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	w.requireWait(w.reconcile(m), "available")
	w.databaseRuns("demo-postgres")
	w.requireWait(w.reconcile(m), "available")
	w.requireNoError(w.server.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-storage"}}))
	w.requireNoError(w.server.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres"}}))
	m.Spec.Postgres.Image = "postgres:2"
	w.requireWait(w.reconcile(m), "available")
	if got := w.databaseImage(); got != "postgres:2" {
		t.Errorf("image %s", got)
	}
	w.expectCondition(m, ConditionDatabaseImage, "", "")
}

func TestBackups(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withBackups)
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionBackup, database.ReasonPending, "15 3 * * *")
	job, claim, policy := &batchv1.CronJob{}, &corev1.PersistentVolumeClaim{}, &networkingv1.NetworkPolicy{}
	if !w.get(job, "ns", "demo-postgres-backup") || !w.get(claim, "ns", "demo-postgres-backup") || !w.get(policy, "ns", "demo-postgres-backup") {
		t.Fatal("the CronJob, the claim or the NetworkPolicy of the backups is missing")
	}
	if !metav1.IsControlledBy(job, m) || len(claim.OwnerReferences) > 0 || claim.Spec.Resources.Requests.Storage().String() != "10Gi" {
		t.Errorf("owners %v and %v, size %v", job.OwnerReferences, claim.OwnerReferences, claim.Spec.Resources)
	}
	job.Status.LastScheduleTime = new(metav1.NewTime(now))
	w.requireNoError(w.server.Status().Update(t.Context(), job))
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionBackup, database.ReasonFailed, "kubectl -n ns logs -l app.kubernetes.io/name=demo-postgres-backup")
	w.takeWrites()
	if w.requireWait(w.reconcile(m), "available"); len(w.writes) > 0 {
		t.Errorf("at rest it wrote %v", w.writes)
	}

	m.Spec.Postgres.Backup.Storage = storageOf("20Gi", "")
	w.requireWait(w.reconcile(m), "available")
	if w.get(claim, "ns", "demo-postgres-backup"); claim.Spec.Resources.Requests.Storage().String() != "20Gi" {
		t.Errorf("the claim was not expanded: %v", claim.Spec.Resources)
	}
	m.Spec.Postgres.Backup.Storage = storageOf("1Gi", "")
	w.requireWait(w.reconcile(m), "available")
	w.expectCondition(m, ConditionStorage, ReasonClaimDiffers, "spec.postgres.backup.storage.size is 1Gi")

	m.Spec.Postgres.Backup = nil
	w.setRunning(m)
	_ = w.reconcile(m)
	if w.get(job, "ns", "demo-postgres-backup") || w.get(policy, "ns", "demo-postgres-backup") || !w.get(claim, "ns", "demo-postgres-backup") {
		t.Error("want the CronJob and the NetworkPolicy deleted with the field, and the claim kept")
	}
	w.expectCondition(m, ConditionBackup, "", "")
}

// A foreign claim or a rejected CronJob does not affect the availability of the registry.
func TestBackupFailuresAreReported(t *testing.T) {
	t.Run("foreign claim", func(t *testing.T) {
		w := newTestEnv(t, nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-backup"}})
		m := newRegistry("demo", withBackups)
		w.requireWait(w.reconcile(m), "available")
		w.expectCondition(m, ConditionBackup, database.ReasonForeign, "PersistentVolumeClaim demo-postgres-backup was not created by this operator")
		if w.get(&batchv1.CronJob{}, "ns", "demo-postgres-backup") {
			t.Error("the CronJob exists, although the claim is foreign")
		}
	})
	t.Run("refused", func(t *testing.T) {
		w := newTestEnv(t, nil)
		w.fail = func(_, kind string) error {
			if kind == "CronJob" {
				return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "CronJob"}, "demo-postgres-backup", nil)
			}
			return nil
		}
		m := newRegistry("demo", withBackups)
		w.requireWait(w.reconcile(m), "available")
		w.expectCondition(m, ConditionBackup, database.ReasonRefused, "correct spec.postgres.backup")
		if !w.get(&appsv1.Deployment{}, "ns", "demo") {
			t.Error("the server was held back because of the backups")
		}
		w.fail = nil
		w.requireWait(w.reconcile(m), "available")
		w.expectCondition(m, ConditionBackup, database.ReasonPending, "")
	})
	t.Run("unreachable", func(t *testing.T) {
		w := newTestEnv(t, nil)
		w.fail = func(_, kind string) error {
			if kind == "CronJob" {
				return errCall
			}
			return nil
		}
		if err := w.reconcile(newRegistry("demo", withBackups)); !errors.Is(err, errCall) {
			t.Errorf("ended with %v", err)
		}
	})
}

// The certificate of the database is issued, its clients verify it, and a renewed one rolls the pods.
func TestDatabaseTLS(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withBackups)
	w.requireWait(w.reconcile(m), "available")
	secret := &corev1.Secret{}
	if !w.get(secret, "ns", "demo-postgres-tls") || len(secret.Data["ca.crt"]) == 0 || !metav1.IsControlledBy(secret, m) {
		t.Fatalf("Secret %v", secret)
	}
	rollout := func(name string) string {
		d := &appsv1.Deployment{}
		w.get(d, "ns", name)
		return d.Spec.Template.Annotations["platform.opendatahub.io/references-rollout"]
	}
	d := &appsv1.Deployment{}
	w.get(d, "ns", "demo")
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--embedmd-database-ssl-root-cert=/etc/postgres_ssl_rootcert/ca.crt") {
		t.Errorf("arguments %s", args)
	}
	if address := w.addressOf(m); !strings.HasSuffix(address, "?sslmode=verify-full") {
		t.Errorf("address %s", address)
	}
	w.requireWait(w.reconcile(m), "available")
	w.takeWrites()
	if w.requireWait(w.reconcile(m), "available"); len(w.writes) > 0 {
		t.Errorf("at rest it wrote %v", w.writes)
	}
	first := string(secret.Data["tls.crt"])
	secret.Data["tls.key"] = []byte("damaged")
	w.requireNoError(w.server.Update(t.Context(), secret))
	w.requireWait(w.reconcile(m), "available")
	w.requireWait(w.reconcile(m), "available")
	if w.get(secret, "ns", "demo-postgres-tls"); string(secret.Data["tls.crt"]) == first {
		t.Fatal("the certificate was not reissued")
	}
	if rollout("demo") == "" || rollout("demo-postgres") == "" {
		t.Errorf("another certificate replaces no pods: server %q, database %q", rollout("demo"), rollout("demo-postgres"))
	}
	w.requireWait(w.reconcile(newRegistry("other", withGeneratedDatabase)), "available")
	if w.get(&corev1.Secret{}, "ns", "other-postgres-tls") {
		t.Error("a certificate was issued, although no registry needs one")
	}
}
