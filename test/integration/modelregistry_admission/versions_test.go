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

const mysql = "mysql: {host: db, username: u, database: d}"

var _ = Describe("A registry of v1alpha1", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "versions") })

	It("with Istio is converted to a proxy in both versions [modelregistry-18] [modelregistry-22] [modelregistry-23]", func(ctx SpecContext) {
		m := createAndCleanUp(ctx, alpha(namespace, "{rest: {}, grpc: {}, "+mysql+", istio: {authProvider: p, gateway: {domain: example.com, rest: {}, grpc: {}}}}"))
		stored := inVersion(ctx, v1beta1.GroupVersion, m)
		Expect(specField(stored, "rest")).To(Equal(map[string]any{"port": int64(8080), "serviceRoute": "disabled"}))
		Expect(specField(stored, "grpc", "port")).To(Equal(int64(9090)))
		Expect(specField(stored, "mysql", "port")).To(Equal(int64(3306)))
		Expect(specField(stored, "oauthProxy")).To(Equal(map[string]any{"port": int64(8443), "routePort": int64(443), "serviceRoute": "enabled", "domain": "example.com"}))
		Expect(specField(stored, "istio")).To(BeNil())
		Expect(inVersion(ctx, v1alpha1.GroupVersion, m).Object).To(Equal(m.Object))
	}, NodeTimeout(specTimeout))

	It("keeps its values [modelregistry-24]", func(ctx SpecContext) {
		m := createAndCleanUp(ctx, alpha(namespace, "{rest: {image: 'example.com/r:1'}, grpc: {port: 9091}, "+mysql+"}"))
		stored := inVersion(ctx, v1beta1.GroupVersion, m)
		Expect(specField(stored, "rest", "image")).To(Equal("example.com/r:1"))
		Expect(specField(stored, "grpc", "port")).To(Equal(int64(9091)))
		Expect(specField(stored, "mysql", "host")).To(Equal("db"))
	}, NodeTimeout(specTimeout))

	It("is validated as one of v1beta1 [modelregistry-17] [modelregistry-22]", func(ctx SpecContext) {
		createAndCleanUp(ctx, alpha(namespace, "{rest: {}, grpc: {}, "+mysql+", istio: {}}"))
		createAndCleanUp(ctx, alpha(namespace, "{rest: {}, grpc: {}, "+mysql+", oauthProxy: {}}"))
		Expect(env.Admin.Create(ctx, alpha(namespace, "{rest: {}, grpc: {}, postgres: {database: d}}"))).To(
			MatchError(ContainSubstring("required one of `postgres` or `mysql` database")))
		Expect(env.Admin.Create(ctx, alpha(namespace, "{rest: {}, grpc: {}, postgres: {host: h}}"))).To(MatchError(ContainSubstring("spec.postgres.database")))
		Expect(env.Admin.Create(ctx, alpha(namespace, "{rest: {}, "+mysql+"}"))).To(MatchError(ContainSubstring("spec.grpc")))
		forged := alpha(namespace, "{rest: {}, grpc: {}, "+mysql+"}")
		forged.SetAnnotations(map[string]string{conversion.Annotation: `{"rest":{"port":0}}`})
		Expect(env.Admin.Create(ctx, forged)).To(MatchError(ContainSubstring("metadata.annotations[" + conversion.Annotation + "]: Invalid value")))
	}, NodeTimeout(specTimeout))

	It("gets a warning about the deprecated version", func(ctx SpecContext) {
		admin, heard := env.WithWarnings()
		Expect(admin.Create(ctx, alpha(namespace, "{rest: {}, grpc: {}, "+mysql+"}"), client.DryRunAll)).To(Succeed())
		Expect(heard.Texts).To(ContainElement(And(ContainSubstring("v1alpha1"), ContainSubstring("Please use v1beta1 instead"))))
	}, NodeTimeout(specTimeout))
})

// rich has all fields that v1alpha1 lacks.
const rich = "{rest: {}, postgres: {generateDeployment: true, image: 'example.com/p:16', retentionPolicy: Delete, storage: {size: 7Gi}}, " +
	"kubeRBACProxy: {port: 9443, domain: example.com, image: 'example.com/proxy:1'}}"

var _ = Describe("A client of v1alpha1", func() {
	var m, seen *unstructured.Unstructured
	BeforeEach(func(ctx SpecContext) {
		m = createAndCleanUp(ctx, beta(env.Namespace(ctx, "versions"), rich))
		seen = inVersion(ctx, v1alpha1.GroupVersion, m)
	}, NodeTimeout(specTimeout))

	unchanged := func(ctx SpecContext) {
		GinkgoHelper()
		stored := inVersion(ctx, v1beta1.GroupVersion, m)
		Expect(stored.Object["spec"]).To(Equal(m.Object["spec"]))
		Expect(stored.GetAnnotations()).NotTo(HaveKey(conversion.Annotation))
	}

	It("reads the proxy under its older name, and can send the object back unchanged [D6]", func(ctx SpecContext) {
		Expect(specField(seen, "oauthProxy", "port")).To(Equal(int64(9443)))
		Expect(update(ctx, seen, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"touched": "yes"}) })).To(Succeed())
		unchanged(ctx)
		Expect(inVersion(ctx, v1beta1.GroupVersion, m).GetLabels()).To(HaveKeyWithValue("touched", "yes"))
	}, NodeTimeout(specTimeout))

	It("loses no field by omitting unknown annotations [D6]", func(ctx SpecContext) {
		Expect(update(ctx, seen, func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })).To(Succeed())
		unchanged(ctx)
	}, NodeTimeout(specTimeout))

	It("overrides the annotation with the fields that it sees [D6]", func(ctx SpecContext) {
		Expect(update(ctx, seen, func(o *unstructured.Unstructured) { set(o, int64(7443), "oauthProxy", "port") })).To(Succeed())
		set(m, int64(7443), "kubeRBACProxy", "port")
		unchanged(ctx)
		By("removing the proxy, of which OpenShift gets a new one")
		Expect(update(ctx, seen, func(o *unstructured.Unstructured) { remove(o, "oauthProxy") })).To(Succeed())
		set(m, map[string]any{"port": int64(8443), "routePort": int64(443), "serviceRoute": "enabled"}, "kubeRBACProxy")
		unchanged(ctx)
		By("naming a server instead of the generated database")
		Expect(update(ctx, seen, func(o *unstructured.Unstructured) {
			set(o, map[string]any{"host": "db", "username": "u", "database": "d"}, "postgres")
		})).To(Succeed())
		Expect(specField(inVersion(ctx, v1beta1.GroupVersion, m), "postgres", "generateDeployment")).To(BeNil())
		Expect(specField(inVersion(ctx, v1beta1.GroupVersion, m), "postgres", "host")).To(Equal("db"))
	}, NodeTimeout(specTimeout))

	It("can patch and apply [D6]", func(ctx SpecContext) {
		env.Patch(ctx, seen, map[string]any{"spec": map[string]any{"rest": map[string]any{"port": int64(8081)}}})
		set(m, int64(8081), "rest", "port")
		unchanged(ctx)
		applied := framework.Manifest("{apiVersion: " + v1alpha1.GroupVersion.String() + ", kind: ModelRegistry, spec: {rest: {port: 8082}, grpc: {port: 9090}}}")
		applied.SetName(m.GetName())
		applied.SetNamespace(m.GetNamespace())
		text, err := json.Marshal(applied)
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Admin.Patch(ctx, seen, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("older"), client.ForceOwnership)).To(Succeed())
		Expect(specField(inVersion(ctx, v1beta1.GroupVersion, m), "rest", "port")).To(Equal(int64(8082)))
		Expect(specField(inVersion(ctx, v1beta1.GroupVersion, m), "postgres", "storage", "size")).To(Equal("7Gi"))
	}, NodeTimeout(specTimeout))

	It("lists the same objects as v1beta1", func(ctx SpecContext) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ModelRegistryList"))
		Expect(env.Admin.List(ctx, list, client.InNamespace(m.GetNamespace()))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Object["spec"]).To(Equal(seen.Object["spec"]))
	}, NodeTimeout(specTimeout))
})
