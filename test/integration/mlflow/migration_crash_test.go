package mlflow_test

import (
	"context"
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// crashTimeout bounds three complete migrations, each with a start of the manager.
const crashTimeout = 5 * time.Minute

// snapshot returns the status, annotations and child objects of an MLflow after a migration, without the fields that differ between runs.
func snapshot(ctx context.Context, m *mlflowv1.MLflow) map[string]any {
	GinkgoHelper()
	env.Get(ctx, m)
	status := m.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	status.Migration.JobUID = ""
	fields := map[string]any{"status": *status, "annotations": m.Annotations}
	objects := append(children(), claim())
	for _, job := range jobs(ctx) {
		objects = append(objects, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}})
	}
	for _, object := range append(objects, cronJob("mlflow-gc"), cronJob("mlflow-trace-archival")) {
		env.Get(ctx, object)
		kind, err := apiutil.GVKForObject(object, env.Scheme)
		if err != nil {
			kind = object.GetObjectKind().GroupVersionKind()
		}
		fields[kind.Kind+"/"+object.GetName()] = stableFields(object)
	}
	return fields
}

// stableFields returns the fields of an object that are the same in each run.
func stableFields(object client.Object) map[string]any {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	for _, path := range [][]string{
		{"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"spec", "selector", "matchLabels", batchv1.ControllerUidLabel},
		{"spec", "template", "metadata", "labels", batchv1.ControllerUidLabel}, {"spec", "template", "metadata", "labels", "controller-uid"},
	} {
		unstructured.RemoveNestedField(content, path...)
	}
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, "deployment.kubernetes.io/revision")
	content["metadata"] = map[string]any{"labels": object.GetLabels(), "annotations": annotations, "owners": len(object.GetOwnerReferences())}
	return content
}

// migrationCompleted returns a check that the migration is complete.
func migrationCompleted(ctx context.Context, m *mlflowv1.MLflow) func(Gomega) {
	return func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		g.Expect(m.Annotations).NotTo(HaveKey(forceKey))
		g.Expect(framework.FindCondition(m.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue))
		g.Expect(framework.FindCondition(m.Status.Conditions, "Migration").Status).To(Equal(metav1.ConditionTrue))
		g.Expect(m.Status.Version).To(Equal(supportedVersion))
		g.Expect(m.Status.Migration).To(HaveField("Outcome", mlflowv1.MigrationCompleted))
	}
}

// The tests of controllers/mlflow crash after every write with a fake API server. Here the manager is killed after a write of a guard, the
// creation of the Job, and a write of the MLflow; the first and the last depend on the random seed.
var _ = Describe("A manager that is killed during a forced migration", Serial, func() {
	It("reaches the same final state", func(ctx SpecContext) {
		crasher := env.StartCrasher(ctx, manager, specTimeout)
		var m *mlflowv1.MLflow
		var start framework.AuditPosition
		var want map[string]any
		begin := func() {
			start = env.AuditPosition()
			m = newMLflow(withJobs)
			m.Annotations = map[string]string{forceKey: "yes"}
			create(ctx, m)
		}
		seed := int(GinkgoRandomSeed())
		for _, point := range []struct {
			path  string
			write int
		}{{"/networkpolicies", 1 + seed%2}, {"/jobs", 1}, {"/mlflows/", 1 + seed%3}} {
			By(fmt.Sprintf("after write %d of %s", point.write, point.path))
			crasher.CountOnly(point.path)
			crashed := crasher.CrashAfter(ctx, point.write, begin, func(g Gomega) { migrationCompleted(ctx, m)(g) })
			Expect(crashed).To(BeTrue(), "the migration has fewer than %d writes of %s", point.write, point.path)
			Expect(createdJobs(start)).To(Equal([]string{firstJob}))
			final := snapshot(ctx, m)
			if want == nil {
				want = final
			}
			Expect(final).To(BeComparableTo(want))
			deleteAndWait(ctx, m)
		}
	}, NodeTimeout(crashTimeout))
})
