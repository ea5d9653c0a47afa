package appwrapper_kueue_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("Kueue", func() {
	It("evicts an AppWrapper whose pods do not become ready, and admits the next one", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		stuck := createWrapper(ctx, wrap(namespace, "stuck", job("stuck", 1, "1", "testcluster.invalid/image-pull:1")))
		waitForPhase(ctx, stuck, v1beta2.PhaseRunning)
		next := createWrapper(ctx, wrap(namespace, "next", pod("next", "1")))
		expectSuspended(ctx, next)
		waitReady(ctx, next)
		waitForPhase(ctx, stuck, v1beta2.PhaseSuspended)
		Expect(podsOf(ctx, Default, stuck)).To(BeEmpty())
		Expect(stuck.Status.Retries).To(BeZero(), "an eviction is not a retry")
		Expect(workloads(ctx, namespace)).To(ContainElement(HaveField("Object", HaveKeyWithValue("status", HaveKeyWithValue("conditions",
			ContainElement(And(HaveKeyWithValue("type", "Evicted"), HaveKeyWithValue("reason", "PodsReadyTimeout"))))))))
		deleteWrapper(ctx, next)
		waitForPhase(ctx, stuck, v1beta2.PhaseRunning)
	}, SpecTimeout(specTimeout))

	It("schedules the pods of an AppWrapper by topology", func(ctx SpecContext) {
		for _, object := range []*unstructured.Unstructured{
			framework.Manifest("{apiVersion: %s, kind: Topology, metadata: {name: hosts}, spec: {levels: [{nodeLabel: %s}]}}", kueueAPIVersion, corev1.LabelHostname),
			framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: placed}, spec: {topologyName: hosts, nodeLabels: {%s: linux}}}", kueueAPIVersion, corev1.LabelOSStable),
		} {
			eventuallyCreate(ctx, object)
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(specTimeout))
		}
		namespace := createQueue(ctx, "0")
		env.Patch(ctx, clusterQueue(namespace), framework.Manifest(`{spec: {resourceGroups: [
			{coveredResources: [cpu], flavors: [{name: placed, resources: [{name: cpu, nominalQuota: "2"}]}]}]}}`).Object)
		template := strings.Replace(deployment("web", 2, "1"), "{labels: {app: web}}", fmt.Sprintf(
			"{labels: {app: web}, annotations: {kueue.x-k8s.io/podset-required-topology: %s}}", corev1.LabelHostname), 1)
		aw := createWrapper(ctx, wrap(namespace, "placed", template))
		waitReady(ctx, aw)
		queued := workloads(ctx, namespace)
		Expect(queued).To(HaveLen(1))
		podSets, _, err := unstructured.NestedSlice(queued[0].Object, "spec", "podSets")
		Expect(err).NotTo(HaveOccurred())
		Expect(podSets).To(ConsistOf(HaveKeyWithValue("topologyRequest", HaveKeyWithValue("required", corev1.LabelHostname))))
		assignments, _, err := unstructured.NestedSlice(queued[0].Object, "status", "admission", "podSetAssignments")
		Expect(err).NotTo(HaveOccurred())
		Expect(assignments).To(ConsistOf(HaveKey("topologyAssignment")))
		pods := podsOf(ctx, Default, aw)
		Expect(pods).To(HaveLen(2))
		for _, pod := range pods {
			Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue(corev1.LabelHostname, pods[0].Spec.NodeName), "all pods must be on one node")
			Expect(pod.Spec.SchedulingGates).To(BeEmpty())
		}
	}, SpecTimeout(specTimeout))
})
