package modelregistry_admission_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const mySQLDatabase = "mysql: {host: db, username: u, database: d}"

var _ = Describe("A registry of v1alpha1", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "versions") })

	It("with Istio gets a proxy instead in both versions [modelregistry-18] [modelregistry-22] [modelregistry-23]", func(ctx SpecContext) {
		registry := createAndCleanUp(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, "+mySQLDatabase+", istio: {authProvider: p, gateway: {domain: example.com, rest: {}, grpc: {}}}}"))
		stored := getInVersion(ctx, v1beta1.GroupVersion, registry)
		Expect(specField(stored, "rest")).To(Equal(map[string]any{"port": int64(8080), "serviceRoute": "disabled"}))
		Expect(specField(stored, "grpc", "port")).To(Equal(int64(9090)))
		Expect(specField(stored, "mysql", "port")).To(Equal(int64(3306)))
		Expect(specField(stored, "oauthProxy")).To(Equal(map[string]any{"port": int64(8443), "routePort": int64(443), "serviceRoute": "enabled", "domain": "example.com"}))
		Expect(specField(stored, "istio")).To(BeNil())
		Expect(getInVersion(ctx, v1alpha1.GroupVersion, registry).Object).To(Equal(registry.Object))
	}, NodeTimeout(specTimeout))

	It("keeps its values [modelregistry-24]", func(ctx SpecContext) {
		registry := createAndCleanUp(ctx, newAlphaRegistry(namespace, "{rest: {image: 'example.com/r:1'}, grpc: {port: 9091}, "+mySQLDatabase+"}"))
		stored := getInVersion(ctx, v1beta1.GroupVersion, registry)
		Expect(specField(stored, "rest", "image")).To(Equal("example.com/r:1"))
		Expect(specField(stored, "grpc", "port")).To(Equal(int64(9091)))
		Expect(specField(stored, "mysql", "host")).To(Equal("db"))
	}, NodeTimeout(specTimeout))

	It("is validated like a registry of v1beta1 [modelregistry-17] [modelregistry-22]", func(ctx SpecContext) {
		createAndCleanUp(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, "+mySQLDatabase+", istio: {}}"))
		createAndCleanUp(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, "+mySQLDatabase+", oauthProxy: {}}"))
		Expect(env.Admin.Create(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, postgres: {database: d}}"))).To(
			MatchError(ContainSubstring("required one of `postgres` or `mysql` database")))
		Expect(env.Admin.Create(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, postgres: {host: h}}"))).To(MatchError(ContainSubstring("spec.postgres.database")))
		Expect(env.Admin.Create(ctx, newAlphaRegistry(namespace, "{rest: {}, "+mySQLDatabase+"}"))).To(MatchError(ContainSubstring("spec.grpc")))
		forged := newAlphaRegistry(namespace, "{rest: {}, grpc: {}, "+mySQLDatabase+"}")
		forged.SetAnnotations(map[string]string{conversion.Annotation: `{"rest":{"port":0}}`})
		Expect(env.Admin.Create(ctx, forged)).To(MatchError(ContainSubstring("metadata.annotations[" + conversion.Annotation + "]: Invalid value")))
	}, NodeTimeout(specTimeout))

	It("gets a warning about the deprecated version", func(ctx SpecContext) {
		admin, warnings := env.WithWarnings()
		Expect(admin.Create(ctx, newAlphaRegistry(namespace, "{rest: {}, grpc: {}, "+mySQLDatabase+"}"), client.DryRunAll)).To(Succeed())
		Expect(warnings.Texts).To(ContainElement(And(ContainSubstring("v1alpha1"), ContainSubstring("Please use v1beta1 instead"))))
	}, NodeTimeout(specTimeout))
})

// betaSpec has fields that v1alpha1 lacks.
const betaSpec = "{rest: {}, postgres: {generateDeployment: true, image: 'example.com/p:16', retentionPolicy: Delete, storage: {size: 7Gi}}, " +
	"kubeRBACProxy: {port: 9443, domain: example.com, image: 'example.com/proxy:1'}}"

var _ = Describe("A client of v1alpha1", func() {
	var registry, alphaObject *unstructured.Unstructured
	BeforeEach(func(ctx SpecContext) {
		registry = createAndCleanUp(ctx, newBetaRegistry(env.Namespace(ctx, "versions"), betaSpec))
		alphaObject = getInVersion(ctx, v1alpha1.GroupVersion, registry)
	}, NodeTimeout(specTimeout))

	// expectStoredSpec checks that the stored spec equals the spec of registry, without the annotation of the conversion.
	expectStoredSpec := func(ctx SpecContext) {
		GinkgoHelper()
		stored := getInVersion(ctx, v1beta1.GroupVersion, registry)
		Expect(stored.Object["spec"]).To(Equal(registry.Object["spec"]))
		Expect(stored.GetAnnotations()).NotTo(HaveKey(conversion.Annotation))
	}

	It("reads kubeRBACProxy as oauthProxy, and can update the object without losing fields [D6]", func(ctx SpecContext) {
		Expect(specField(alphaObject, "oauthProxy", "port")).To(Equal(int64(9443)))
		Expect(updateObject(ctx, alphaObject, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"touched": "yes"}) })).To(Succeed())
		expectStoredSpec(ctx)
		Expect(getInVersion(ctx, v1beta1.GroupVersion, registry).GetLabels()).To(HaveKeyWithValue("touched", "yes"))
	}, NodeTimeout(specTimeout))

	It("loses no field when it removes all annotations [D6]", func(ctx SpecContext) {
		Expect(updateObject(ctx, alphaObject, func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })).To(Succeed())
		expectStoredSpec(ctx)
	}, NodeTimeout(specTimeout))

	It("overrides the annotation with the fields of v1alpha1 [D6]", func(ctx SpecContext) {
		Expect(updateObject(ctx, alphaObject, func(o *unstructured.Unstructured) { setSpecField(o, int64(7443), "oauthProxy", "port") })).To(Succeed())
		setSpecField(registry, int64(7443), "kubeRBACProxy", "port")
		expectStoredSpec(ctx)
		By("removing the proxy, which is replaced by the default of OpenShift")
		Expect(updateObject(ctx, alphaObject, func(o *unstructured.Unstructured) { removeSpecField(o, "oauthProxy") })).To(Succeed())
		setSpecField(registry, map[string]any{"port": int64(8443), "routePort": int64(443), "serviceRoute": "enabled"}, "kubeRBACProxy")
		expectStoredSpec(ctx)
		By("setting a host instead of the generated database")
		Expect(updateObject(ctx, alphaObject, func(o *unstructured.Unstructured) {
			setSpecField(o, map[string]any{"host": "db", "username": "u", "database": "d"}, "postgres")
		})).To(Succeed())
		Expect(specField(getInVersion(ctx, v1beta1.GroupVersion, registry), "postgres", "generateDeployment")).To(BeNil())
		Expect(specField(getInVersion(ctx, v1beta1.GroupVersion, registry), "postgres", "host")).To(Equal("db"))
	}, NodeTimeout(specTimeout))

	It("can patch and apply [D6]", func(ctx SpecContext) {
		env.Patch(ctx, alphaObject, map[string]any{"spec": map[string]any{"rest": map[string]any{"port": int64(8081)}}})
		setSpecField(registry, int64(8081), "rest", "port")
		expectStoredSpec(ctx)
		applied := framework.Manifest("{apiVersion: " + v1alpha1.GroupVersion.String() + ", kind: ModelRegistry, spec: {rest: {port: 8082}, grpc: {port: 9090}}}")
		applied.SetName(registry.GetName())
		applied.SetNamespace(registry.GetNamespace())
		text, err := json.Marshal(applied)
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Admin.Patch(ctx, alphaObject, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("older"), client.ForceOwnership)).To(Succeed())
		Expect(specField(getInVersion(ctx, v1beta1.GroupVersion, registry), "rest", "port")).To(Equal(int64(8082)))
		Expect(specField(getInVersion(ctx, v1beta1.GroupVersion, registry), "postgres", "storage", "size")).To(Equal("7Gi"))
	}, NodeTimeout(specTimeout))

	It("lists objects that were created as v1beta1", func(ctx SpecContext) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ModelRegistryList"))
		Expect(env.Admin.List(ctx, list, client.InNamespace(registry.GetNamespace()))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Object["spec"]).To(Equal(alphaObject.Object["spec"]))
	}, NodeTimeout(specTimeout))
})
