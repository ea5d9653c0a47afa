package modelregistry_admission_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func newCatalog(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return framework.Manifest("{apiVersion: " + aihubv1alpha1.GroupVersion.String() + ", kind: Catalog, metadata: {name: " + name + ", namespace: " + namespace + "}}")
}

var _ = Describe("A Catalog", func() {
	It("has a fixed name, and can exist once [modelregistry-72] [modelregistry-73] [D23]", func(ctx SpecContext) {
		namespace, otherNamespace := env.Namespace(ctx, "catalog"), env.Namespace(ctx, "catalog")
		Expect(env.Admin.Create(ctx, newCatalog(namespace, "other"))).To(MatchError(ContainSubstring("catalog resource name must be 'catalog'")))
		catalog := createAndCleanUp(ctx, newCatalog(namespace, "catalog"))
		env.SetAnnotation(ctx, catalog, "touched", "yes")
		Expect(env.Admin.Create(ctx, newCatalog(otherNamespace, "catalog"))).To(MatchError(ContainSubstring("which exists in namespace " + namespace)))
		Expect(env.Admin.Delete(ctx, catalog)).To(Succeed())
		env.WaitDeleted(ctx, catalog)
		Expect(env.Admin.Create(ctx, newCatalog(otherNamespace, "catalog"), client.DryRunAll)).To(Succeed())
	}, NodeTimeout(specTimeout))

	It("can have one database, with valid settings", func(ctx SpecContext) {
		for spec, text := range map[string]string{
			"{connection: {secretName: app}}":                                         "",
			"{connection: {secretName: app, sslMode: verify-full, caSecretName: ca}}": "",
			"{serverTLS: Enabled}":                                                    "",
			"{connection: {}}":                                                        "spec.database.connection.secretName: Required value",
			"{connection: {secretName: app, caSecretName: ca}}":                       "caSecretName is used only when the server is verified",
			"{connection: {secretName: app, sslMode: require, caSecretName: ca}}":     "caSecretName is used only when the server is verified",
			"{connection: {secretName: app, sslMode: always}}":                        "spec.database.connection.sslMode",
			"{connection: {secretName: app}, external: {host: h, secretName: s}}":     "set one of them",
			"{connection: {secretName: app}, serverTLS: Enabled}":                     "serverTLS applies only to the database that the operator runs",
			"{external: {host: h, secretName: s}, serverTLS: Disabled}":               "serverTLS applies only to the database that the operator runs",
			"{serverTLS: 'true'}":                                                     "spec.database.serverTLS",
		} {
			catalog := newCatalog("default", "catalog")
			Expect(unstructured.SetNestedMap(catalog.Object, framework.Manifest(spec).Object, "spec", "database")).To(Succeed())
			err := env.Admin.Create(ctx, catalog, client.DryRunAll)
			if text == "" {
				Expect(err).NotTo(HaveOccurred(), spec)
				continue
			}
			Expect(err).To(MatchError(ContainSubstring(text)), spec)
		}
	}, NodeTimeout(specTimeout))

	It("requires a positive size of its database volume", func(ctx SpecContext) {
		for size, valid := range map[string]bool{"10Gi": true, "1": true, "0": false, "'0'": false, "-1Gi": false} {
			catalog := newCatalog("default", "catalog")
			Expect(unstructured.SetNestedMap(catalog.Object, framework.Manifest("{volume: {sizeLimit: "+size+"}}").Object, "spec", "database")).To(Succeed())
			err := env.Admin.Create(ctx, catalog, client.DryRunAll)
			if valid {
				Expect(err).NotTo(HaveOccurred(), size)
				continue
			}
			Expect(err).To(MatchError(ContainSubstring("sizeLimit must be greater than zero")), size)
		}
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An AIHub", func() {
	DescribeTable("is validated [modelregistry-103]", func(ctx SpecContext, name, spec, text string) {
		hub := framework.Manifest("{apiVersion: " + platformv1alpha1.GroupVersion.String() + ", kind: AIHub, metadata: {name: " + name + "}" + spec + "}")
		err := env.Admin.Create(ctx, hub, client.DryRunAll)
		if text == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(text)))
	},
		Entry("a valid spec", "default-aihub", ", spec: {applicationNamespace: a, instancesNamespace: b, gateway: {domain: apps.example.com}}", ""),
		Entry("the legacy name", "default", ", spec: {applicationNamespace: a, instancesNamespace: b}", "Only the name 'default-aihub' is allowed"),
		Entry("no spec", "default-aihub", "", "spec: Required value"),
		Entry("no namespace of instances", "default-aihub", ", spec: {applicationNamespace: a}", "spec.instancesNamespace: Required value"),
		Entry("an empty namespace", "default-aihub", ", spec: {applicationNamespace: '', instancesNamespace: b}", "spec.applicationNamespace"),
		Entry("an empty namespace of instances", "default-aihub", ", spec: {applicationNamespace: a, instancesNamespace: ''}", "spec.instancesNamespace"),
		Entry("a long label in the domain", "default-aihub", ", spec: {applicationNamespace: a, instancesNamespace: b, gateway: {domain: "+strings.Repeat("d", 64)+".com}}", "spec.gateway.domain"),
	)
})

var _ = Describe("Samples", func() {
	DescribeTable("are accepted", func(ctx SpecContext, file string) {
		namespace := env.Namespace(ctx, "samples")
		samples, err := framework.ReadObjects(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).NotTo(BeEmpty())
		for _, sample := range samples {
			if sample.GetKind() != "AIHub" {
				sample.SetNamespace(namespace)
			}
			Expect(env.Admin.Create(ctx, sample, client.DryRunAll)).To(Succeed(), "%v", sample.Object)
			if sample.GroupVersionKind().Group == v1beta1.GroupVersion.Group {
				Expect(specField(sample, "kubeRBACProxy")).NotTo(BeNil(), "a registry on OpenShift gets a proxy")
			}
		}
	},
		Entry("samples of the legacy operator", "testdata/legacy_samples.yaml"),
		Entry("a generated database", "../../../config/samples/modelregistry_generated.yaml"),
		Entry("PostgreSQL", "../../../config/samples/modelregistry_postgres.yaml"),
		Entry("PostgreSQL with TLS", "../../../config/samples/modelregistry_secure_postgres.yaml"),
		Entry("MySQL", "../../../config/samples/modelregistry_mysql.yaml"),
		Entry("MySQL with TLS", "../../../config/samples/modelregistry_secure_mysql.yaml"),
		Entry("a proxy", "../../../config/samples/modelregistry_proxy.yaml"),
		Entry("the catalog", "../../../config/samples/aihub_catalog.yaml"),
		Entry("an AIHub [D27]", "../../../config/samples/platform_aihub.yaml"),
	)
})
