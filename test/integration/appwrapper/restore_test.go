package appwrapper_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// withoutOwnerReferences returns an object as a backup without owner references stores it.
func withoutOwnerReferences(live *unstructured.Unstructured) *unstructured.Unstructured {
	o := live.DeepCopy()
	for _, path := range [][]string{
		{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "ownerReferences"}, {"metadata", "managedFields"}, {"metadata", "creationTimestamp"},
		{"metadata", "generation"}, {"spec", "nodeName"},
	} {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	if o.GetKind() == "Job" { // Velero removes these fields, because the API server sets them
		unstructured.RemoveNestedField(o.Object, "spec", "selector")
		for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
			unstructured.RemoveNestedField(o.Object, "metadata", "labels", label)
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "labels", label)
		}
	}
	return o
}

var _ = Describe("An object restored without owner references", func() {
	It("is adopted, whatever its kind, with one write", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "restore")
		templates := []string{
			`{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, selector: {app: db}, ports: [{port: 80}]}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, serviceName: db, selector: {matchLabels: {app: db}},
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "registry.example.com/db:1"}]}}}}`,
			deployment("web", 2), pod("extra", runningImage), job("steady", neverReadyImage, 1),
			`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: torch}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`,
			`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: set}, spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}]}}`,
			`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {generateName: c-}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: i}]}}}}}`,
			rayJob("ray"),
		}
		first := create(ctx, wrap(ns, "all", templates))
		waitForPhase(ctx, first, awv1beta2.PhaseRunning)
		var backup []*unstructured.Unstructured
		for _, c := range first.Status.ComponentStatus {
			live := object(c.APIVersion, c.Kind, ns, c.Name)
			env.Get(ctx, live)
			backup = append(backup, withoutOwnerReferences(live))
		}
		Expect(env.Admin.Delete(ctx, first)).To(Succeed())
		env.WaitDeleted(ctx, first)

		restored := map[string]types.UID{}
		for _, o := range backup {
			env.WaitDeleted(ctx, o.DeepCopy())
			Expect(env.Admin.Create(ctx, o)).To(Succeed())
			restored[o.GetKind()] = o.GetUID()
		}
		start := env.AuditPosition()
		second := create(ctx, wrap(ns, "all", templates))
		waitForPhase(ctx, second, awv1beta2.PhaseRunning)
		for _, c := range second.Status.ComponentStatus {
			live := object(c.APIVersion, c.Kind, ns, c.Name)
			env.Get(ctx, live)
			Expect(live.GetUID()).To(Equal(restored[c.Kind]), "%s %s", c.Kind, c.Name)
			Expect(live.GetOwnerReferences()).To(ConsistOf(HaveField("UID", second.UID)), c.Kind)
		}
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().Writes().Where(func(e framework.Entry) bool {
			return e.Namespace == ns && e.Resource != "appwrappers" && e.Code < 300 && !e.DryRun
		})
		Expect(writes).To(HaveLen(len(templates)), "%s", writes)
	}, SpecTimeout(specTimeout))

	It("is not adopted if it differs from the template", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "restore")
		first := create(ctx, wrap(ns, "web", []string{deployment("web", 1)}))
		waitForPhase(ctx, first, awv1beta2.PhaseRunning)
		live := object("apps/v1", "Deployment", ns, "web")
		env.Get(ctx, live)
		changed := withoutOwnerReferences(live)
		Expect(unstructured.SetNestedField(changed.Object, int64(3), "spec", "replicas")).To(Succeed())
		Expect(env.Admin.Delete(ctx, first)).To(Succeed())
		env.WaitDeleted(ctx, first, live)
		Expect(env.Admin.Create(ctx, changed)).To(Succeed())
		second := create(ctx, wrap(ns, "web", []string{deployment("web", 1)}, failFast))
		waitForPhase(ctx, second, awv1beta2.PhaseFailed)
		Expect(second.Status.LastFailure.Message).To(ContainSubstring("exists, but is not controlled by appwrapper"))
		uid := changed.GetUID()
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(changed), changed)).To(Succeed())
		Expect(changed.GetUID()).To(Equal(uid))
		Expect(changed.GetDeletionTimestamp()).To(BeNil())
		Expect(changed.GetOwnerReferences()).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
