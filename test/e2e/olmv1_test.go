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

	It("installs the bundle of a release from its catalog, with the permissions of a ServiceAccount", func(ctx SpecContext) {
		o.page.Read(ctx)
		start := time.Now()
		o.install(ctx)
		o.waitVersion(ctx, "0.2.0")
		o.expectNoRay(ctx)
		AddReportEntry("from the ClusterExtension to the running operator", time.Since(start).Round(time.Second))
	}, SpecTimeout(specTimeout))

	It("calls the webhooks of the operator, whose certificate cert-manager issues", func(ctx SpecContext) {
		o.kubectl(ctx, "create", "namespace", userNamespace)
		o.expectInvalidRejected(ctx)
		o.expectTrusted(ctx, Default)
		o.kubectl(ctx, "-n", userNamespace, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		o.kubectl(ctx, "-n", userNamespace, "wait", registry, "--for=condition=Available", "--timeout="+podTimeout.String())
	}, SpecTimeout(specTimeout))

	It("upgrades to the next version while a registry keeps running", func(ctx SpecContext) {
		pods := func() string {
			return o.kubectl(ctx, "-n", userNamespace, "get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{end}")
		}
		before := pods()
		o.buildVersion(ctx, "0.3.0")
		o.applyVersion(ctx, extensionFile, "0.3.0")
		o.waitVersion(ctx, "0.3.0")
		o.expectNoRay(ctx)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "-n", userNamespace, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", sample, "-o", "jsonpath={.spec}")
		}, podTimeout).Should(ContainSubstring("grpc"), "the conversion webhook adds grpc")
		o.expectRejected(ctx, registryWithoutDatabase, noDatabaseMessage)
		o.expectRepair(ctx, userNamespace)
		Expect(pods()).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("keeps custom resources and their servers when the operator is uninstalled, and adopts them again", func(ctx SpecContext) {
		before := o.remainingObjects(ctx, userNamespace)
		// The deletion of the ClusterExtension then occurs while OLM reverts this change.
		o.kubectl(ctx, "-n", operatorNamespace, "scale", managerDeployment, "--replicas=1")
		o.uninstall(ctx)
		Expect(o.kubectl(ctx, "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "jsonpath={.items[*].metadata.ownerReferences}")).To(BeEmpty())
		Eventually(ctx, o.listCreated, podTimeout).Should(BeEmpty())
		Eventually(ctx, func(ctx context.Context) string {
			return o.kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "name")
		}, podTimeout).Should(BeEmpty())
		Expect(o.remainingObjects(ctx, userNamespace)).To(Equal(before))

		By("installing it again")
		o.applyVersion(ctx, extensionFile, "0.3.0")
		o.waitVersion(ctx, "0.3.0")
		o.expectRepair(ctx, userNamespace)
	}, SpecTimeout(specTimeout))
})
