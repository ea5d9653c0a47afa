//go:build e2e

package e2e_test

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// OLM v1 installs, upgrades and removes the artifacts of `make release` as docs/olm.md describes, with certificates of cert-manager.
var _ = Describe("OLM v1", Ordered, Label("nightly"), func() {
	var o *olmV1Cluster
	const registry = "modelregistry/" + sample

	BeforeAll(func(ctx SpecContext) { o = newOLMV1(ctx) }, NodeTimeout(specTimeout))

	AfterEach(func(ctx SpecContext) { o.describeFailure(ctx) }, NodeTimeout(time.Minute))

	It("installs the bundle of a release from its catalog, with the permissions of an account", func(ctx SpecContext) {
		o.page.Read(ctx)
		begin := time.Now()
		o.install(ctx)
		o.runs(ctx, "0.2.0")
		o.expectNoRay(ctx)
		AddReportEntry("from the ClusterExtension to the running operator", time.Since(begin).Round(time.Second))
	}, SpecTimeout(specTimeout))

	It("has the webhooks of the operator called, with a certificate of cert-manager", func(ctx SpecContext) {
		o.kubectl(ctx, "create", "namespace", kept)
		o.refusesInvalid(ctx)
		o.expectTrusted(ctx, Default)
		o.kubectl(ctx, "-n", kept, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		o.kubectl(ctx, "-n", kept, "wait", registry, "--for=condition=Available", "--timeout="+podTimeout.String())
	}, SpecTimeout(specTimeout))

	It("upgrades to the next version while a registry runs on", func(ctx SpecContext) {
		pods := func() string {
			return o.kubectl(ctx, "-n", kept, "get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{end}")
		}
		before := pods()
		o.buildVersion(ctx, "0.3.0")
		o.offer(ctx, extension, "0.3.0")
		o.runs(ctx, "0.3.0")
		o.expectNoRay(ctx)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "-n", kept, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", sample, "-o", "jsonpath={.spec}")
		}, podTimeout).Should(ContainSubstring("grpc"), "the conversion adds it")
		o.refuses(ctx, unfinishedRegistry, noDatabase)
		o.repairs(ctx, kept)
		Expect(pods()).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("leaves custom resources and their servers when the operator is uninstalled, and adopts them again", func(ctx SpecContext) {
		before := o.remainingObjects(ctx, kept)
		// OLM is busy when the ClusterExtension is deleted, because it reverts this.
		o.kubectl(ctx, "-n", operatorNamespace, "scale", managerDeployment, "--replicas=1")
		o.uninstall(ctx)
		Expect(o.kubectl(ctx, "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "jsonpath={.items[*].metadata.ownerReferences}")).To(BeEmpty())
		Eventually(ctx, o.created, podTimeout).Should(BeEmpty())
		Eventually(ctx, func(ctx context.Context) string {
			return o.kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "name")
		}, podTimeout).Should(BeEmpty())
		Expect(o.remainingObjects(ctx, kept)).To(Equal(before))

		By("installing it again")
		o.offer(ctx, extension, "0.3.0")
		o.runs(ctx, "0.3.0")
		o.repairs(ctx, kept)
	}, SpecTimeout(specTimeout))
})
