package kubectl_test

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// childrenTimeout bounds the time until the manager has created all children.
const childrenTimeout = 90 * time.Second

var _ = Describe("render", func() {
	DescribeTable("shows the objects that the running manager created", func(ctx SpecContext, document string) {
		file := filepath.Join(GinkgoT().TempDir(), "resource.yaml")
		Expect(os.WriteFile(file, []byte(document), 0o600)).To(Succeed())
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(document))
		Expect(err).NotTo(HaveOccurred())
		Expect(u.UnmarshalJSON(raw)).To(Succeed())
		Eventually(ctx, func() error { return env.Admin.Create(ctx, u) }).WithTimeout(childrenTimeout).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(env.Admin.Delete(ctx, u)).To(Succeed())
			env.WaitDeleted(ctx, u)
		})
		kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega, ctx SpecContext) {
			rendered := odh(ctx, administrator(), "render", "-f", file, "--cluster")
			g.Expect(rendered.code).To(BeZero(), rendered.stderr)
			objects := filepath.Join(GinkgoT().TempDir(), "objects.yaml")
			g.Expect(os.WriteFile(objects, []byte(rendered.stdout), 0o600)).To(Succeed())
			g.Expect(runProgram(ctx, administrator(), kubectl, "diff", "-f", objects)).To(Equal(result{}))
		}).WithTimeout(childrenTimeout).WithPolling(time.Second).Should(Succeed())
	},
		Entry("for a RayCluster", `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: parity, namespace: team}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: head, image: quay.io/example/ray:v1}]}}
`, SpecTimeout(specTimeout)),
		Entry("for a ModelRegistry", `
apiVersion: modelregistry.opendatahub.io/v1beta1
kind: ModelRegistry
metadata: {name: parity, namespace: team}
spec:
  rest: {}
  grpc: {}
  postgres: {generateDeployment: true}
`, SpecTimeout(specTimeout)),
	)
})
