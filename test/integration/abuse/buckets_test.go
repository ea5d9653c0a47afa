package abuse_test

import (
	"encoding/base64"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// policy returns the manifests of the ValidatingAdmissionPolicy in docs/security.md.
func policy() []string {
	GinkgoHelper()
	page, err := os.ReadFile("../../../docs/security.md")
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(page)) {
		if strings.Contains(block.Text, "name: mlflow-buckets") {
			return strings.Split(block.Text, "---\n")
		}
	}
	Fail("docs/security.md contains no policy mlflow-buckets")
	return nil
}

var _ = Describe("An editor of Secrets, under the admission policy of docs/security.md", func() {
	It("can use only buckets that an administrator lists in an annotation of the namespace [A-14]", func(ctx SpecContext) {
		for _, text := range policy() {
			o := object("", text)
			Expect(env.Admin.Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, o)).To(Succeed()) })
		}
		namespace := env.Namespace(ctx, "buckets")
		bind(ctx, namespace, developer, "edit")
		secret := func(name, bucket string, options ...client.CreateOption) error {
			return as(developer).Create(ctx, &corev1.Secret{ObjectMeta: meta(namespace, name), StringData: map[string]string{"AWS_S3_BUCKET": bucket}}, options...)
		}
		Eventually(secret).WithContext(ctx).WithTimeout(waitTimeout).WithArguments("mlflow-artifact-connection", "everybodys", client.DryRunAll).
			Should(MatchError(ContainSubstring("an administrator must list AWS_S3_BUCKET")))
		Expect(env.Admin.Patch(ctx, framework.NamespaceNamed(namespace),
			merge(`{"metadata": {"annotations": {"example.com/mlflow-buckets": "`+
				base64.StdEncoding.EncodeToString([]byte("ours"))+","+base64.StdEncoding.EncodeToString([]byte("archive-of-ours"))+`"}}}`))).To(Succeed())
		Eventually(secret).WithContext(ctx).WithTimeout(waitTimeout).WithArguments("mlflow-artifact-connection", "ours").Should(Succeed())
		Expect(secret("mlflow-archive-secret", "everybodys")).To(MatchError(ContainSubstring("an administrator must list")))
		Expect(secret("mlflow-archive-secret", "archive-of-ours")).To(Succeed())
		Expect(secret("another", "everybodys")).To(Succeed())
		Expect(as(developer).Patch(ctx, &corev1.Secret{ObjectMeta: meta(namespace, "mlflow-artifact-connection")},
			merge(`{"stringData": {"AWS_S3_BUCKET": "everybodys"}}`))).To(MatchError(ContainSubstring("an administrator must list")))
	}, NodeTimeout(specTimeout))
})
