package modelcatalog

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

// podOf returns a pod of the Deployment of the server or the database. creationOffset is the time between a fixed instant and its creation.
func podOf(deployment, nameAndUID string, creationOffset time.Duration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: newCatalog().Namespace, Name: nameAndUID, UID: types.UID(nameAndUID), Labels: resources.Selector(deployment), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0).Add(creationOffset)),
	}}
}

// After the pod of the database was replaced, an older server pod is replaced once, because the server fills the database when it starts.
func TestServerRestartsForNewDatabase(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	if env.databasePodAnnotation() != "" {
		t.Fatal("the pod template has a restart annotation without a reason")
	}
	server, first := podOf(resources.Name, "server-1", 0), podOf(resources.DatabaseName, "database-1", 0)
	env.create(server)
	env.create(first)
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
	if got := env.databasePodAnnotation(); got != "" {
		t.Errorf("got annotation %q for the first database pod, want none", got)
	}
	if err := env.server.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := podOf(resources.DatabaseName, "database-2", time.Hour)
	env.create(second)
	env.setDatabaseReplicas(0)
	env.reconcileUntilStable()
	if got := env.databasePodAnnotation(); got != "" {
		t.Errorf("got annotation %q before the database is available, want none", got)
	}
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
	if got := env.databasePodAnnotation(); got != "database-2" {
		t.Errorf("got annotation %q, want database-2", got)
	}
	env.restart()
	env.reconcileUntilStable()
	if got := env.databasePodAnnotation(); got != "database-2" {
		t.Errorf("got annotation %q, want database-2", got)
	}
	for _, pod := range []*corev1.Pod{server, second} {
		if err := env.server.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	env.create(podOf(resources.DatabaseName, "database-3", 2*time.Hour))
	env.create(podOf(resources.Name, "server-3", 3*time.Hour))
	env.setDatabaseReplicas(0)
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
	if got := env.databasePodAnnotation(); got != "database-2" {
		t.Errorf("got annotation %q for a server pod that is younger than the database pod, want database-2", got)
	}
}

// The number of listed pods is limited. Many failed pods of the server do not hide the pod of the database.
func TestServerRestartsForNewDatabaseDespiteManyPods(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	for i := range 25 {
		pod := podOf(resources.Name, fmt.Sprintf("a-server-%d", i), 0)
		pod.Status.Phase = corev1.PodFailed
		env.create(pod)
	}
	first := podOf(resources.DatabaseName, "database-1", 0)
	env.create(first)
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
	env.replaceDatabasePod(first, podOf(resources.DatabaseName, "database-2", time.Hour))
	if got := env.databasePodAnnotation(); got != "database-2" {
		t.Errorf("got annotation %q, want database-2", got)
	}
}

// A deleted Deployment is recreated with the UID of the database pod in an annotation, so that the next replacement of that pod is
// detected.
func TestRecreatedServerRestartsForNewDatabase(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	first := podOf(resources.DatabaseName, "database-1", 0)
	env.create(first)
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
	if err := env.server.Delete(t.Context(), mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	env.create(podOf(resources.Name, "server-1", time.Minute))
	env.replaceDatabasePod(first, podOf(resources.DatabaseName, "database-2", time.Hour))
	if got := env.databasePodAnnotation(); got != "database-2" {
		t.Errorf("got annotation %q, want database-2: the server pod was not replaced", got)
	}
}

// replaceDatabasePod replaces the pod of the database, which is unavailable in between, and reconciles.
func (env *testEnv) replaceDatabasePod(old, replacement *corev1.Pod) {
	env.Helper()
	if err := env.server.Delete(env.Context(), old); err != nil {
		env.Fatal(err)
	}
	env.create(replacement)
	env.setDatabaseReplicas(0)
	env.setDatabaseReplicas(1)
	env.reconcileUntilStable()
}

func (env *testEnv) setDatabaseReplicas(available int32) {
	env.Helper()
	d := mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)})
	env.changeStatus(d, func() { d.Status.AvailableReplicas = available })
}

// databasePodAnnotation returns the annotation with the UID of the database pod from the pod template of the server.
func (env *testEnv) databasePodAnnotation() string {
	env.Helper()
	return mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}).Spec.Template.Annotations[annotationDatabasePod]
}
