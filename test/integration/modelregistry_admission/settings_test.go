package modelregistry_admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// leaderElection makes the manager run only its webhooks, because the suite holds the Lease.
const leaderElection = "--leader-elect=true"

var _ = Describe("With REGISTRIES_NAMESPACE", Ordered, func() {
	var registriesNamespace, otherNamespace string
	var existing *unstructured.Unstructured
	BeforeAll(func(ctx SpecContext) {
		registriesNamespace, otherNamespace = env.Namespace(ctx, "registries"), env.Namespace(ctx, "other")
		existing = newBetaRegistry(otherNamespace, "{rest: {}, "+externalDatabase+"}")
		existing.SetFinalizers([]string{"example.com/held"})
		createAndCleanUp(ctx, existing)
		replaceManager(ctx, []string{"--components=" + components, leaderElection}, "REGISTRIES_NAMESPACE="+registriesNamespace)
		waitForWebhooks(ctx)
	}, NodeTimeout(specTimeout))

	It("registries can be created only in that namespace [modelregistry-1] [modelregistry-2] [modelregistry-15] [modelregistry-17]", func(ctx SpecContext) {
		createAndCleanUp(ctx, newBetaRegistry(registriesNamespace, "{rest: {}, "+externalDatabase+"}"))
		for _, registry := range []*unstructured.Unstructured{newBetaRegistry(otherNamespace, "{rest: {}, "+externalDatabase+"}"), newAlphaRegistry(otherNamespace, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}}")} {
			Expect(env.Admin.Create(ctx, registry)).To(MatchError(And(
				ContainSubstring("metadata.namespace: Invalid value: \""+otherNamespace+"\": namespace must be "+registriesNamespace), ContainSubstring("REGISTRIES_NAMESPACE"))))
		}
	}, NodeTimeout(specTimeout))

	It("an existing registry in another namespace can be changed and deleted [D3]", func(ctx SpecContext) {
		Expect(updateObject(ctx, existing, func(registry *unstructured.Unstructured) { setSpecField(registry, int64(8081), "rest", "port") })).To(Succeed())
		Expect(env.Admin.Delete(ctx, existing)).To(Succeed())
		env.Patch(ctx, existing, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, existing)
	}, NodeTimeout(specTimeout))

	It("a Catalog can be created only in that namespace [modelregistry-74]", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, newCatalog(otherNamespace, "catalog"))).To(MatchError(ContainSubstring("namespace must be " + registriesNamespace)))
		createAndCleanUp(ctx, newCatalog(registriesNamespace, "catalog"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("While the component is disabled", func() {
	It("an object that the schema accepts is accepted with a warning, and versions are converted", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "disabled")
		replaceManager(ctx, []string{"--components=*,-modelregistry,-modelcatalog", leaderElection}, "MLFLOW_IMAGE=example.com/mlflow:1")
		admin, warnings := env.WithWarnings()
		registry := newBetaRegistry(namespace, "{rest: {}}")
		Eventually(func() error { return admin.Create(ctx, registry) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
		Expect(warnings.Texts).To(ContainElement(ContainSubstring("the component modelregistry is disabled")))
		Eventually(func() error {
			return admin.Create(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}, istio: {}}"))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
		Expect(specField(getInVersion(ctx, v1alpha1.GroupVersion, registry), "grpc")).NotTo(BeNil())

		By("rejecting spec.postgres without a host: the defaulting webhook removes it only while the component is enabled")
		for _, postgres := range []string{"{}", "{database: d, username: u}", "{host: ''}", "{hostAddress: ''}", "{generateDeployment: false, host: '', hostAddress: ''}"} {
			Expect(admin.Create(ctx, newBetaRegistry(namespace, "{rest: {}, postgres: "+postgres+"}"))).To(MatchError(And(
				ContainSubstring("GenerateDeployment must be set to true if host/hostAddress are not provided"), Not(ContainSubstring("no such key")))))
		}
		for _, postgres := range []string{"{host: h}", "{hostAddress: 10.0.0.1}", "{generateDeployment: true}", "{generateDeployment: true, host: ''}", "{host: h, database: ''}"} {
			Expect(admin.Create(ctx, newBetaRegistry(namespace, "{rest: {}, postgres: "+postgres+"}"))).To(Succeed())
		}
		Expect(admin.Create(ctx, newBetaRegistry(namespace, "{rest: {}, postgres: {generateDeployment: true, hostAddress: 10.0.0.1}}"))).To(
			MatchError(ContainSubstring("host and hostAddress must not be set when generateDeployment is true")))
		Expect(admin.DeleteAllOf(ctx, &v1beta1.ModelRegistry{}, client.InNamespace(namespace))).To(Succeed())
	}, NodeTimeout(specTimeout))
})
