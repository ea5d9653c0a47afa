package modelcatalog

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

// podOf returns a pod of the catalog, created some time after the start.
func podOf(name, uid string, after time.Duration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: sample().Namespace, Name: uid, UID: types.UID(uid), Labels: resources.Selector(name), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0).Add(after)),
	}}
}

// After the pod of the database was replaced, an older server pod is replaced once, to fill the database.
func TestServerRestartsForNewDatabase(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	if b.databaseMark() != "" {
		t.Fatal("the pod template has a restart annotation without a reason")
	}
	server, first := podOf(resources.Name, "server-1", 0), podOf(resources.DatabaseName, "database-1", 0)
	b.create(server)
	b.create(first)
	b.databaseAnswers(1)
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "" {
		t.Errorf("the first database replaces the server: %q", got)
	}
	if err := b.server.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := podOf(resources.DatabaseName, "database-2", time.Hour)
	b.create(second)
	b.databaseAnswers(0)
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "" {
		t.Errorf("got hash %q before the database answers, want none", got)
	}
	b.databaseAnswers(1)
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "database-2" {
		t.Errorf("mark %q", got)
	}
	b.restart() // nothing is remembered
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "database-2" {
		t.Errorf("mark %q", got)
	}
	for _, gone := range []*corev1.Pod{server, second} {
		if err := b.server.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	b.create(podOf(resources.DatabaseName, "database-3", 2*time.Hour))
	b.create(podOf(resources.Name, "server-3", 3*time.Hour))
	b.databaseAnswers(0)
	b.databaseAnswers(1)
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "database-2" {
		t.Errorf("a server that is younger than its database is replaced: %q", got)
	}
}

// A Deployment deleted by another client is recreated with the annotation of the database pod, so that its next replacement is detected.
func TestRecreatedServerRestartsForNewDatabase(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	first := podOf(resources.DatabaseName, "database-1", 0)
	b.create(first)
	b.databaseAnswers(1)
	b.reconcileUntilStable()
	if err := b.server.Delete(t.Context(), must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.create(podOf(resources.Name, "server-1", time.Minute))
	if err := b.server.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	b.create(podOf(resources.DatabaseName, "database-2", time.Hour))
	b.databaseAnswers(0)
	b.databaseAnswers(1)
	b.reconcileUntilStable()
	if got := b.databaseMark(); got != "database-2" {
		t.Errorf("mark %q: the server does not fill the new database", got)
	}
}

func (b *testEnv) databaseAnswers(replicas int32) {
	b.Helper()
	d := must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)})
	b.changeStatus(d, func() { d.Status.AvailableReplicas = replicas })
}

// databaseMark returns the annotation on the pod template of the server.
func (b *testEnv) databaseMark() string {
	b.Helper()
	return must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}).Spec.Template.Annotations[annotationDatabasePod]
}
