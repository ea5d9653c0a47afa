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

// crowd is the number of clusters; test/bench creates more.
const crowd = 40

// allReady waits until KubeRay reports all clusters of a namespace as ready.
func allReady(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		ready := 0
		for _, cluster := range list(ctx, g, raycluster.GVK, namespace) {
			if state, _, _ := unstructured.NestedString(cluster.Object, "status", "state"); state == "ready" {
				ready++
			}
		}
		g.Expect(ready).To(Equal(count))
	})
}

var _ = Describe("Many RayClusters", func() {
	It("cause a bounded number of requests, none in the steady state and none for status updates by KubeRay [R21]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "crowd")
		start := env.AuditPosition()
		DeferCleanup(func(ctx SpecContext) {
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(raycluster.GVK)
			Expect(env.Admin.DeleteAllOf(ctx, all, client.InNamespace(namespace))).To(Succeed())
			eventually(ctx, func(g Gomega) { g.Expect(list(ctx, g, raycluster.GVK, namespace)).To(BeEmpty()) })
		}, NodeTimeout(specTimeout))
		for i := range crowd {
			cluster := rayCluster(namespace, fmt.Sprintf("c%d", i))
			unstructured.RemoveNestedField(cluster.Object, "spec", "workerGroupSpecs")
			Expect(env.Admin.Create(ctx, cluster)).To(Succeed())
		}
		allReady(ctx, namespace, crowd)
		env.WaitIdle(manager.User, rest, waitTimeout)

		mine := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		writes, reads := len(mine.WithoutEvents().Writes()), len(mine.Reads())
		AddReportEntry("requests", fmt.Sprintf("%d clusters: %d writes, %d reads", crowd, writes, reads))
		Expect(writes).To(BeNumerically("<=", crowd*8), "objects, the address of the head and a word to its pod")
		Expect(mine.WithoutEvents().Unchanged()).To(BeEmpty())
		for _, e := range mine.Of("pods") {
			Expect(e.Verb).To(Equal("patch"), "%s", e)
		}
		for _, e := range env.Since(0).ByUser(manager.User).Of("pods") {
			listing := e.Verb == "list" || e.Verb == "watch"
			Expect(listing && !strings.Contains(e.URI, "labelSelector=")).To(BeFalse(), "all pods are listed: %s", e.URI)
		}

		By("letting KubeRay write every status again")
		start = env.AuditPosition()
		for i := range crowd {
			cluster := reference(rayCluster(namespace, fmt.Sprintf("c%d", i)))
			env.Patch(ctx, cluster, map[string]any{"status": map[string]any{"lastUpdateTime": "2026-01-01T00:00:00Z", "reason": "touched"}}, "status")
		}
		eventually(ctx, func(g Gomega) {
			statuses := env.Since(start).Where(func(e entry) bool { return e.Resource == "rayclusters" && e.Subresource == "status" })
			g.Expect(len(statuses)).To(BeNumerically(">=", crowd))
		})
		env.ExpectIdle(manager.User, rest)
		Expect(framework.UnexpectedWhenIdle(env.Since(start), manager.User)).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
