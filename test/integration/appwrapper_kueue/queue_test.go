package appwrapper_kueue_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var _ = Describe("AppWrappers in a queue", func() {
	It("share a quota of two, and a third waits until one is deleted [appwrapper-41]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		first := createWrapper(ctx, wrap(namespace, "first", pod("first", "1")))
		second := createWrapper(ctx, wrap(namespace, "second", deployment("second", 1, "1")))
		waitReady(ctx, first)
		waitReady(ctx, second)
		third := createWrapper(ctx, wrap(namespace, "third", pod("third", "1")))
		expectSuspended(ctx, third)
		deleteWrapper(ctx, first)
		waitReady(ctx, third)
	}, SpecTimeout(specTimeout))

	It("are preempted by a higher priority without leftovers, and resume afterwards", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		low := wrap(namespace, "low", deployment("low", 2, "1"))
		low.Labels["kueue.x-k8s.io/priority-class"] = "low"
		waitReady(ctx, createWrapper(ctx, low))
		high := wrap(namespace, "high", deployment("high", 2, "1"))
		high.Labels["kueue.x-k8s.io/priority-class"] = "high"
		createWrapper(ctx, high)
		waitForPhase(ctx, low, v1beta2.PhaseSuspended)
		Expect(podsOf(ctx, Default, low)).To(BeEmpty())
		waitReady(ctx, high)
		deleteWrapper(ctx, high)
		waitReady(ctx, low)
	}, SpecTimeout(specTimeout))

	It("are evicted when the queue is drained, and resumed when the stop policy is removed", func(ctx SpecContext) {
		namespace := createQueue(ctx, "3")
		aw := createWrapper(ctx, wrap(namespace, "drained", pod("alone", "1"), deployment("two", 2, "1"), service("three")))
		waitReady(ctx, aw)
		env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": "HoldAndDrain"}})
		expectSuspended(ctx, aw)
		env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": "None"}})
		waitReady(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("are assigned the default queue if they name none, before Kueue validates them [appwrapper-26]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		aw := wrap(namespace, "plain", pod("plain", "1"))
		delete(aw.Labels, v1beta2.LabelQueue)
		createWrapper(ctx, aw)
		Expect(aw.Spec.Suspend).To(BeTrue(), "the webhook of Kueue suspends queued AppWrappers on create")
		Expect(aw.Labels).To(HaveKeyWithValue(v1beta2.LabelQueue, defaultQueue))
		waitReady(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("have one Workload with all their pod sets, and no Workload for their children [appwrapper-36] [appwrapper-42]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "7")
		aw := createWrapper(ctx, wrap(namespace, "aw", pyTorchJob("torch"), service("none"), job("job", 2, "1", "testcluster.invalid/image-pull:1")))
		waitForPhase(ctx, aw, v1beta2.PhaseRunning)
		var counts []string
		for _, workload := range workloads(ctx, namespace) {
			sets, _, err := unstructured.NestedSlice(workload.Object, "spec", "podSets")
			Expect(err).NotTo(HaveOccurred())
			for _, set := range sets {
				fields := set.(map[string]any)
				counts = append(counts, fields["name"].(string)+"="+string(rune('0'+fields["count"].(int64))))
			}
		}
		Expect(counts).To(ConsistOf("aw-0=1", "aw-1=4", "aw-2=2"))
	}, SpecTimeout(specTimeout))

	It("get a Workload when they are queued, and none if they have finished or name no queue [appwrapper-37]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		unmanaged := wrap(namespace, "unmanaged", pod("unmanaged", "1"))
		finished := wrap(namespace, "finished", job("finished", 1, "1", "example.com/a:1"))
		excludeFromDefaulting(ctx, namespace)
		for _, aw := range []*v1beta2.AppWrapper{unmanaged, finished} {
			aw.Labels = map[string]string{v1beta2.LabelUser: "admin"} // set by the webhook in a cluster
			createWrapper(ctx, aw)
			Expect(aw.Spec.Suspend).To(BeFalse())
		}
		waitReady(ctx, unmanaged)
		waitForPhase(ctx, finished, v1beta2.PhaseSucceeded)
		env.Patch(ctx, finished, map[string]any{"spec": map[string]any{"suspend": true}}) // Kueue accepts a change of the queue only while suspended
		env.Patch(ctx, finished, map[string]any{"metadata": map[string]any{"labels": map[string]any{v1beta2.LabelQueue: "queue"}}})
		queued := wrap(namespace, "queued", pod("queued", "1"))
		queued.Labels[v1beta2.LabelUser] = "admin"
		waitReady(ctx, createWrapper(ctx, queued))
		Consistently(func(g Gomega) {
			var owners []string
			for _, workload := range workloads(ctx, namespace) {
				for _, owner := range workload.GetOwnerReferences() {
					owners = append(owners, owner.Name)
				}
			}
			g.Expect(owners).To(ConsistOf("queued"))
		}).WithContext(ctx).WithTimeout(stableDuration).WithPolling(poll).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("wait as a whole while the quota is too small, and have each Job counted once [appwrapper-42]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		large := createWrapper(ctx, wrap(namespace, "large", pod("small", "1"), job("two", 2, "1", "testcluster.invalid/image-pull:1")))
		expectSuspended(ctx, large) // although its first component fits the quota
		fitting := createWrapper(ctx, wrap(namespace, "fitting", job("fitting", 2, "1", "testcluster.invalid/image-pull:1")))
		waitForPhase(ctx, fitting, v1beta2.PhaseRunning) // it fits the quota only if the Job is not counted again
		Eventually(func(g Gomega) { g.Expect(podsOf(ctx, g, fitting)).To(HaveLen(2)) }).
			WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
	}, SpecTimeout(specTimeout))
})
