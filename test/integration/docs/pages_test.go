package docs_test

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A documentation page", func() {
	pages, err := filepath.Glob("../../../docs/components/*.md")
	if err != nil || len(pages) < 7 {
		panic("there must be a page for each component")
	}
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		It("for "+name+" has commands that work", func(ctx SpecContext) {
			r := openPage("docs/components/" + name + ".md")
			r.Read(ctx)
			Expect(r.Saved).NotTo(BeEmpty(), "a page must contain a sample")
			Expect(len(r.Typed)).To(BeNumerically(">=", 4), "a page must contain the commands that apply and inspect the sample")
		}, NodeTimeout(pageTimeout))
	}

	DescribeTable("for upgrades has commands that work", func(ctx SpecContext, page string) {
		r := openPage(page)
		r.Read(ctx)
		Expect(len(r.Typed)).To(BeNumerically(">=", 3))
	},
		Entry("from another operator", NodeTimeout(pageTimeout), "docs/migrate/README.md"),
		Entry("from another version", NodeTimeout(pageTimeout), "docs/upgrade/README.md"),
	)
})

// These specs use their own cluster, in which only this operator is installed.
var _ = Describe("With only this operator installed, the first steps", Ordered, func() {
	var bareEnv *framework.Env

	BeforeAll(func(ctx SpecContext) {
		bareEnv = framework.Start(ctx, "docs-bare", cluster.Bare, framework.WithOperator("config/default"))
		startOperator(ctx, bareEnv)
		waitForWebhooks(ctx, bareEnv, "mlflow")
	}, NodeTimeout(framework.StartTimeout))

	DescribeTable("work", func(ctx SpecContext, page string, commands int) {
		r := openPage(page)
		r.Kubeconfig = bareEnv.KubeconfigPath
		r.Read(ctx)
		Expect(len(r.Typed)).To(BeNumerically(">=", commands))
	},
		Entry("of README.md", NodeTimeout(pageTimeout), "README.md", 3),
		Entry("of docs/getting-started.md", NodeTimeout(pageTimeout), "docs/getting-started.md", 12),
	)
})

// openPage returns a Reader of a page. The end of the spec undoes the changes of the Reader.
func openPage(page string) *docs.Reader {
	GinkgoHelper()
	r := &docs.Reader{Page: page, Root: root, Folder: GinkgoT().TempDir(), Kubectl: kubectl, Kubeconfig: env.KubeconfigPath}
	DeferCleanup(func(ctx SpecContext) { r.Undo(ctx) }, NodeTimeout(pageTimeout))
	return r
}
