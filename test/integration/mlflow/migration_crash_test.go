package mlflow_test

import (
	"context"
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

// crashTimeout is for some twenty runs of a whole migration, each with a start of the manager.
const crashTimeout = 15 * time.Minute

// picture is what a migration leaves behind, without what differs from life to life of an object.
func picture(ctx context.Context, m *mlflowv1.MLflow) map[string]any {
	GinkgoHelper()
	env.Get(ctx, m)
	status := m.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	status.Migration.JobUID = ""
	seen := map[string]any{"status": *status, "annotations": m.Annotations}
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
		seen[kind.Kind+"/"+object.GetName()] = essence(object)
	}
	return seen
}

// essence is the part of an object that does not depend on when it was made.
func essence(object client.Object) map[string]any {
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

// completed says that nothing of a migration is left to be done.
func completed(ctx context.Context, m *mlflowv1.MLflow) func(Gomega) {
	return func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		g.Expect(m.Annotations).NotTo(HaveKey(forceKey))
		g.Expect(conditionOf(m, "Available").Status).To(Equal(metav1.ConditionTrue))
		g.Expect(conditionOf(m, "Migration").Status).To(Equal(metav1.ConditionTrue))
		g.Expect(m.Status.Version).To(Equal(supported))
		g.Expect(m.Status.Migration).To(HaveField("Outcome", mlflowv1.MigrationCompleted))
	}
}

var _ = Describe("A manager that is killed after any write of a migration", Serial, func() {
	It("leads to the same end: a new server, forced or not", func(ctx SpecContext) {
		c := env.Interpose(ctx, manager, specTimeout)
		for _, forced := range []bool{false, true} {
			var m *mlflowv1.MLflow
			var mark framework.Mark
			var want map[string]any
			begin := func() {
				mark = env.Mark()
				m = server(withJobs)
				if forced {
					m.Annotations = map[string]string{forceKey: "yes"}
				}
				create(ctx, m)
			}
			crashes := c.CrashAfterEvery(ctx, begin, func(g Gomega) { completed(ctx, m)(g) }, func(write int) {
				Expect(made(mark)).To(Equal([]string{firstJob}), "write %d", write)
				got := picture(ctx, m)
				if want == nil {
					want = got
				}
				Expect(got).To(BeComparableTo(want), "write %d", write)
				remove(ctx, m)
			})
			Expect(crashes).To(BeNumerically(">=", 18), "one for each object and more")
			GinkgoWriter.Printf("forced %t: the manager was killed after each of %d writes\n", forced, crashes)
		}
	}, NodeTimeout(crashTimeout))

	It("leads to the same end: a running server that is migrated because somebody says so", func(ctx SpecContext) {
		m := ready(ctx, server(withJobs))
		c := env.Interpose(ctx, manager, specTimeout)
		var mark framework.Mark
		var want map[string]any
		begin := func() {
			mark = env.Mark()
			force(ctx, m, "again")
		}
		crashes := c.CrashAfterEvery(ctx, begin, completed(ctx, m), func(write int) {
			Expect(made(mark)).To(Equal([]string{firstJob}), "write %d: asked for once, done once", write)
			got := picture(ctx, m)
			if want == nil {
				want = got
			}
			Expect(got).To(BeComparableTo(want), "write %d", write)
		})
		Expect(crashes).To(BeNumerically(">=", 8))
		GinkgoWriter.Printf("the manager was killed after each of %d writes\n", crashes)
	}, NodeTimeout(crashTimeout))
})
