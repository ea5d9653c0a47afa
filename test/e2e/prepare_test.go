//go:build e2e

package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// prepareImages builds the slow images in the second parallel process while the first one compiles. Otherwise, on a new machine, linkers and
// package managers would run in sequence, each on one core. If specs are filtered, each builds its own images.
func prepareImages(ctx context.Context) {
	GinkgoHelper()
	suite, _ := GinkgoConfiguration()
	if GinkgoParallelProcess() != 2 || suite.LabelFilter != "" || len(suite.FocusStrings) > 0 {
		return
	}
	Expect(cluster.RequireNode(ctx, GinkgoWriter)).To(Succeed())
	content, err := cluster.ImageContent()
	Expect(err).NotTo(HaveOccurred())
	prepared := images.Store{Content: content, Names: GinkgoT().TempDir()}
	Expect(images.Base(ctx, prepared)).To(Succeed())
	Expect(images.Postgres(ctx, prepared)).To(Succeed())
	Expect(images.MLflow(ctx, prepared, checkout, images.MLflowImage)).To(Succeed())
	Expect(images.Ray(ctx, prepared)).To(Succeed())
	Expect(images.Envoy(ctx, prepared)).To(Succeed())
	Expect(images.MLServer(ctx, prepared)).To(Succeed())
	Expect(images.Browser(ctx, prepared)).To(Succeed())
	Expect(images.EarlierMLflow(ctx, prepared, checkout)).To(Succeed())
}
