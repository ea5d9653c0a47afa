package kubectl_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// node is an object in the JSON output of tree.
type node struct {
	Kind, Namespace, Name, Relation, State, Reason, Message string
	Children                                                []node
}

// kinds returns the kinds and relations of a node and of all its descendants.
func (n node) kinds() []string {
	kinds := []string{n.Kind + " " + n.Relation}
	for _, child := range n.Children {
		kinds = append(kinds, child.kinds()...)
	}
	return kinds
}

var _ = Describe("tree", func() {
	It("shows the objects of an MLflow that a viewer can read, and sends no write", func(ctx SpecContext) {
		start := env.AuditPosition()
		got := odh(ctx, viewer, "tree", "mlflow/mlflow", "-o", "json")
		Expect(got.stderr).To(BeEmpty())
		var result struct {
			OK    bool
			Trees []node
			Notes []string
		}
		Expect(json.Unmarshal([]byte(got.stdout), &result)).To(Succeed())
		Expect(result.OK).To(BeTrue(), "%s", got.stdout)
		Expect(got.code).To(Equal(3), "some objects are not readable")
		Expect(result.Trees).To(HaveLen(1))
		Expect(result.Trees[0].kinds()).To(ContainElements("Deployment owned", "ReplicaSet owned", "Pod owned", "Service owned", "PersistentVolumeClaim kept", "NetworkPolicy owned"))
		Expect(result.Notes).To(ContainElement(ContainSubstring("secrets")), "the role view does not include Secrets")

		requests := env.Since(start).ByUser(viewer.name)
		Expect(requests).NotTo(BeEmpty())
		Expect(requests.Writes()).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("shows the path from an AppWrapper to the failing pod", func(ctx SpecContext) {
		got := odh(ctx, member, "tree", "appwrapper/broken")
		Expect(got.code).To(Equal(1), "%s", got.stderr)
		Expect(got.stdout).To(And(
			ContainSubstring("AppWrapper/broken"), ContainSubstring("\n  Pod/broken "), ContainSubstring("ImagePullBackOff"),
			ContainSubstring(`image "`+badImage+`" of container main cannot be pulled; check its name`),
			ContainSubstring("not allowed to search all namespaces; searched: team")))
		Expect(got.stdout).NotTo(ContainSubstring("\x1b"))
	}, SpecTimeout(specTimeout))

	It("reports resources that do not exist", func(ctx SpecContext) {
		got := odh(ctx, viewer, "tree", "mlflow/other")
		Expect(got).To(Equal(result{code: 2, stderr: "kubectl-odh: mlflows.mlflow.opendatahub.io \"other\" not found\n"}))
	}, SpecTimeout(specTimeout))
})
