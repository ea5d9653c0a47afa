package modelcatalog_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The data of the catalog", func() {
	digest := "sha256:" + strings.Repeat("0123abcd", 8)

	It("comes from the images that the Catalog selects by digest or tag [modelregistry-121]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		images := func(ctx context.Context) []string {
			d := deployment(ns, "model-catalog")
			if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
				return []string{err.Error()}
			}
			return []string{d.Spec.Template.Spec.InitContainers[0].Image, d.Spec.Template.Spec.InitContainers[1].Image}
		}
		c := env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) { s.CatalogDataImage, s.BenchmarkDataImage = digest, "v2.1" }))
		Expect(images(ctx)).To(Equal([]string{"quay.io/example/catalog-data@" + digest, "quay.io/example/benchmark-data:v2.1"}))
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{"catalogDataImage": nil}})
		Eventually(images).WithContext(ctx).WithTimeout(waitTimeout).Should(Equal([]string{"quay.io/example/catalog-data:v1", "quay.io/example/benchmark-data:v2.1"}))
		env.waitAvailable(ctx, c)
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	DescribeTable("can be selected only by a digest or a tag [modelregistry-122]", func(ctx SpecContext, value string) {
		for _, field := range []string{"catalogDataImage", "benchmarkDataImage"} {
			c := framework.Unstructured(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), registries, aihubv1alpha1.CatalogName)
			c.Object["spec"] = map[string]any{field: value}
			err := onKubernetes.Admin.Create(ctx, c, client.DryRunAll)
			Expect(err).To(MatchError(And(ContainSubstring("spec."+field), ContainSubstring(field+` is "`+value+`"; it must be the digest of an image`))))
		}
	},
		Entry("another repository", "quay.io/other/data:v1"),
		Entry("a truncated digest", "sha256:0123abcd"),
		Entry("a digest in upper case", "SHA256:"+strings.Repeat("ABCD", 16)),
		Entry("a space", "v 1"),
	)
})
