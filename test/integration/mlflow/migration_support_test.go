package mlflow_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	supportedVersion = "3.14.0"
	firstJob         = "mlflow-mg-3140-g1"
	checkJob         = "mlflow-migration-check"
	forceKey         = "mlflow.opendatahub.io/force-migrate"

	// The server and the Job have the same image, which decides the behaviour of their pods.
	unpullableImage = cluster.PodBehaviorRegistry + "image-pull:x"
	neverReadyImage = cluster.PodBehaviorRegistry + "not-ready:x"
	exit11Image     = cluster.PodBehaviorRegistry + "exit-11:x"
	exit15Image     = cluster.PodBehaviorRegistry + "exit-15:x"
	exit17Image     = cluster.PodBehaviorRegistry + "exit-17:x"
)

func withImage(name string) func(*mlflowv1.MLflow) {
	return func(m *mlflowv1.MLflow) { m.Spec.Image = &mlflowv1.ImageConfig{Image: name} }
}

func imagePatch(name string) map[string]any {
	return map[string]any{"spec": map[string]any{"image": map[string]any{"image": name}}}
}

// setForceAnnotation sets the annotation for a forced migration; nil removes it.
func setForceAnnotation(ctx context.Context, m *mlflowv1.MLflow, value any) {
	GinkgoHelper()
	env.SetAnnotation(ctx, m, forceKey, value)
}

func withUnreadyPods(m *mlflowv1.MLflow) {
	m.Spec.PodAnnotations = map[string]string{cluster.PodBehaviorAnnotation: "not-ready"}
}

// waitMigrationCondition waits until the condition Migration has a status, a reason and a part of its message.
func waitMigrationCondition(ctx context.Context, m *mlflowv1.MLflow, status metav1.ConditionStatus, reason, part string) {
	GinkgoHelper()
	env.WaitFor(ctx, m, func(g Gomega) {
		c := framework.FindCondition(m.Status.Conditions, "Migration")
		g.Expect(c.Status).To(Equal(status), "%s: %s", c.Reason, c.Message)
		g.Expect(c.Reason).To(Equal(reason), c.Message)
		g.Expect(c.Message).To(ContainSubstring(part))
		g.Expect(c.ObservedGeneration).To(Equal(m.Generation))
	})
}

// jobs returns the migration Jobs that exist.
func jobs(ctx context.Context) []batchv1.Job {
	GinkgoHelper()
	list := &batchv1.JobList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"mlflow.opendatahub.io/migration-job": "true"})).To(Succeed())
	return list.Items
}

// jobPods returns the pods of all migration and check Jobs, including Jobs that were deleted.
func jobPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"component": "mlflow-migration"})).To(Succeed())
	return list.Items
}

// createdJobs returns the names of the migration Jobs that the manager created after a position in the audit log.
func createdJobs(start framework.AuditPosition) []string {
	GinkgoHelper()
	var names []string
	for _, e := range env.Since(start).ByUser(manager.User).ForResource("jobs") {
		if e.Verb == "create" && e.Code == 201 && e.Name != checkJob {
			names = append(names, e.Name)
		}
	}
	return names
}

// waitMigrated waits until an MLflow is available, with its database at the supported version and without a check Job, which a later reconcile
// deletes.
func waitMigrated(ctx context.Context, m *mlflowv1.MLflow) {
	GinkgoHelper()
	waitAvailable(ctx, m)
	Expect(m.Status.Version).To(Equal(supportedVersion))
	waitMigrationCondition(ctx, m, metav1.ConditionTrue, "MigrationSucceeded", "completed successfully")
	env.WaitDeleted(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: checkJob}})
}

// terminateJobPod sets the pod of a running Job to terminated with an exit code.
func terminateJobPod(ctx context.Context, job string, code int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, pod := range jobPods(ctx) {
			if !strings.HasPrefix(pod.Name, job) || pod.Status.Phase != corev1.PodRunning {
				continue
			}
			phase := corev1.PodSucceeded
			if code != 0 {
				phase = corev1.PodFailed
			}
			original := pod.DeepCopy()
			pod.Status.Phase = phase
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}
			g.Expect(env.Admin.Status().Patch(ctx, &pod, client.MergeFrom(original))).To(Succeed())
			return
		}
		g.Expect(jobPods(ctx)).To(BeEmpty(), "no pod of Job %s runs", job)
		g.Expect(job).To(BeEmpty(), "the Job has no pod")
	}).WithContext(ctx).Should(Succeed())
}

func replicas(ctx context.Context) int32 {
	GinkgoHelper()
	d := deployment()
	env.Get(ctx, d)
	return *d.Spec.Replicas
}

func replicaSets(ctx context.Context) []appsv1.ReplicaSet {
	GinkgoHelper()
	list := &appsv1.ReplicaSetList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "mlflow"})).To(Succeed())
	return list.Items
}

func serverPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": "mlflow"})).To(Succeed())
	return list.Items
}
