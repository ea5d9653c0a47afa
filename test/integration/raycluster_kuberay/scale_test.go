package raycluster_kuberay_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

type entry = framework.Entry

// clusterCount is the number of RayClusters. The benchmark in test/bench creates more.
const clusterCount = 40

// waitAllReady waits until KubeRay reports the given number of clusters in a namespace as ready.
func waitAllReady(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		ready := 0
		for _, cluster := range listObjects(ctx, g, raycluster.GVK, namespace) {
			if state, _, _ := unstructured.NestedString(cluster.Object, "status", "state"); state == "ready" {
				ready++
			}
		}
		g.Expect(ready).To(Equal(count))
	})
}

var _ = Describe("Many RayClusters", func() {
	It("cause a bounded number of writes, and no request for status updates by KubeRay [R21]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "scale")
		start := env.AuditPosition()
		DeferCleanup(func(ctx SpecContext) {
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(raycluster.GVK)
			Expect(env.Admin.DeleteAllOf(ctx, all, client.InNamespace(namespace))).To(Succeed())
			eventually(ctx, func(g Gomega) { g.Expect(listObjects(ctx, g, raycluster.GVK, namespace)).To(BeEmpty()) })
		}, NodeTimeout(specTimeout))
		for i := range clusterCount {
			cluster := newRayCluster(namespace, fmt.Sprintf("c%d", i))
			unstructured.RemoveNestedField(cluster.Object, "spec", "workerGroupSpecs")
			Expect(env.Admin.Create(ctx, cluster)).To(Succeed())
		}
		waitAllReady(ctx, namespace, clusterCount)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)

		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		writes, reads := len(requests.WithoutEvents().Writes()), len(requests.Reads())
		AddReportEntry("requests", fmt.Sprintf("%d clusters: %d writes, %d reads", clusterCount, writes, reads))
		Expect(writes).To(BeNumerically("<=", clusterCount*8), "child objects, the certificate with the address of the head, and a patch of its pod")
		Expect(requests.WithoutEvents().Unchanged()).To(BeEmpty())
		for _, e := range requests.ForResource("pods") {
			Expect(e.Verb).To(Equal("patch"), "%s", e)
		}
		for _, e := range env.Since(0).ByUser(manager.User).ForResource("pods") {
			isListing := e.Verb == "list" || e.Verb == "watch"
			Expect(isListing && !strings.Contains(e.URI, "labelSelector=")).To(BeFalse(), "all pods are listed: %s", e.URI)
		}

		By("updating every status as KubeRay does")
		start = env.AuditPosition()
		for i := range clusterCount {
			cluster := reference(newRayCluster(namespace, fmt.Sprintf("c%d", i)))
			env.Patch(ctx, cluster, map[string]any{"status": map[string]any{"lastUpdateTime": "2026-01-01T00:00:00Z", "reason": "touched"}}, "status")
		}
		eventually(ctx, func(g Gomega) {
			statuses := env.Since(start).Where(func(e entry) bool { return e.Resource == "rayclusters" && e.Subresource == "status" })
			g.Expect(len(statuses)).To(BeNumerically(">=", clusterCount))
		})
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(framework.UnexpectedWhenIdle(env.Since(start), manager.User)).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
