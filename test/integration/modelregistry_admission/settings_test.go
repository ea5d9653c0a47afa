package modelregistry_admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// leaderElection makes the manager wait for the Lease, which the suite holds, so that only its webhooks are active.
const leaderElection = "--leader-elect=true"

var _ = Describe("With REGISTRIES_NAMESPACE", Ordered, func() {
	var home, otherNamespace string
	var foreign *unstructured.Unstructured
	BeforeAll(func(ctx SpecContext) {
		home, otherNamespace = env.Namespace(ctx, "home"), env.Namespace(ctx, "elsewhere")
		foreign = beta(otherNamespace, "{rest: {}, "+external+"}")
		foreign.SetFinalizers([]string{"example.com/held"})
		createAndCleanUp(ctx, foreign)
		replaceManager(ctx, []string{"--components=" + components, leaderElection}, "REGISTRIES_NAMESPACE="+home)
		waitForWebhooks(ctx)
	}, NodeTimeout(specTimeout))

	It("registries can be created only in that namespace [modelregistry-1] [modelregistry-2] [modelregistry-15] [modelregistry-17]", func(ctx SpecContext) {
		createAndCleanUp(ctx, beta(home, "{rest: {}, "+external+"}"))
		for _, m := range []*unstructured.Unstructured{beta(otherNamespace, "{rest: {}, "+external+"}"), alpha(otherNamespace, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}}")} {
			Expect(env.Admin.Create(ctx, m)).To(MatchError(And(
				ContainSubstring("metadata.namespace: Invalid value: \""+otherNamespace+"\": namespace must be "+home), ContainSubstring("REGISTRIES_NAMESPACE"))))
		}
	}, NodeTimeout(specTimeout))

	It("an existing registry in another namespace can be changed and deleted [D3]", func(ctx SpecContext) {
		Expect(update(ctx, foreign, func(m *unstructured.Unstructured) { set(m, int64(8081), "rest", "port") })).To(Succeed())
		Expect(env.Admin.Delete(ctx, foreign)).To(Succeed())
		env.Patch(ctx, foreign, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, foreign)
	}, NodeTimeout(specTimeout))

	It("a Catalog can be created only in that namespace [modelregistry-74]", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, catalog(otherNamespace, "catalog"))).To(MatchError(ContainSubstring("namespace must be " + home)))
		createAndCleanUp(ctx, catalog(home, "catalog"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("While the component is disabled", func() {
	It("every valid object is accepted with a warning, and versions are converted", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "off")
		replaceManager(ctx, []string{"--components=*,-modelregistry,-modelcatalog", leaderElection}, "MLFLOW_IMAGE=example.com/mlflow:1")
		admin, warnings := env.WithWarnings()
		m := beta(namespace, "{rest: {}}")
		Eventually(func() error { return admin.Create(ctx, m) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		Expect(warnings.Texts).To(ContainElement(ContainSubstring("the component modelregistry is disabled")))
		Eventually(func() error {
			return admin.Create(ctx, alpha(namespace, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}, istio: {}}"))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		Expect(specField(inVersion(ctx, v1alpha1.GroupVersion, m), "grpc")).NotTo(BeNil())

		By("reporting the missing host of a database, which no defaulter removes while the component is disabled")
		for _, postgres := range []string{"{}", "{database: d, username: u}", "{host: ''}", "{hostAddress: ''}", "{generateDeployment: false, host: '', hostAddress: ''}"} {
			Expect(admin.Create(ctx, beta(namespace, "{rest: {}, postgres: "+postgres+"}"))).To(MatchError(And(
				ContainSubstring("GenerateDeployment must be set to true if host/hostAddress are not provided"), Not(ContainSubstring("no such key")))))
		}
		for _, postgres := range []string{"{host: h}", "{hostAddress: 10.0.0.1}", "{generateDeployment: true}", "{generateDeployment: true, host: ''}", "{host: h, database: ''}"} {
			Expect(admin.Create(ctx, beta(namespace, "{rest: {}, postgres: "+postgres+"}"))).To(Succeed())
		}
		Expect(admin.Create(ctx, beta(namespace, "{rest: {}, postgres: {generateDeployment: true, hostAddress: 10.0.0.1}}"))).To(
			MatchError(ContainSubstring("host and hostAddress must not be set when generateDeployment is true")))
		Expect(admin.DeleteAllOf(ctx, &v1beta1.ModelRegistry{}, inNamespace(namespace))).To(Succeed())
	}, NodeTimeout(specTimeout))
})
