package modelregistry_admission_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

var _ = Describe("A new registry", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "admission") })

	It("gets a proxy on OpenShift, and its defaults [modelregistry-6] [modelregistry-7]", func(ctx SpecContext) {
		registry := createAndCleanUp(ctx, newBetaRegistry(namespace, "{rest: {}, "+externalDatabase+", mysql: {host: '', username: '', database: ''}}"))
		Expect(specField(registry, "kubeRBACProxy")).To(Equal(map[string]any{"port": int64(8443), "routePort": int64(443), "serviceRoute": "enabled"}))
		Expect(specField(registry, "rest")).To(Equal(map[string]any{"port": int64(8080), "serviceRoute": "disabled"}))
		Expect(specField(registry, "mysql")).To(BeNil())
		Expect(specField(registry, "grpc")).To(BeNil(), "defaults add no gRPC server")
	}, NodeTimeout(specTimeout))

	DescribeTable("is accepted with", func(ctx SpecContext, spec string, check func(*unstructured.Unstructured)) {
		check(createAndCleanUp(ctx, newBetaRegistry(namespace, spec)))
	},
		Entry("an oauthProxy, which is moved to kubeRBACProxy [modelregistry-9] [modelregistry-16]", "{rest: {}, "+externalDatabase+", oauthProxy: {port: 9443, domain: example.com, image: old}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "kubeRBACProxy")).To(Equal(map[string]any{"port": int64(9443), "routePort": int64(443), "serviceRoute": "enabled", "domain": "example.com"}))
			Expect(specField(registry, "oauthProxy")).To(BeNil())
		}),
		Entry("an empty proxy [modelregistry-16]", "{rest: {}, "+externalDatabase+", kubeRBACProxy: {}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "kubeRBACProxy", "serviceRoute")).To(Equal("enabled"))
		}),
		Entry("a generated database [modelregistry-4]", "{rest: {}, "+generatedDatabase+"}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "postgres", "generateDeployment")).To(BeTrue())
		}),
		Entry("a default image, which is not stored [modelregistry-11]", "{rest: {image: 'quay.io/opendatahub/model-registry:latest'}, "+externalDatabase+"}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "rest", "image")).To(BeNil())
		}),
		Entry("another tag of the default image, which is stored [D14]", "{rest: {image: 'quay.io/opendatahub/model-registry:v0.3', resources: {requests: {cpu: 1}}}, "+externalDatabase+"}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "rest", "image")).To(Equal("quay.io/opendatahub/model-registry:v0.3"))
			Expect(specField(registry, "rest", "resources")).NotTo(BeNil())
		}),
		Entry("a field of v1alpha1, which is ignored", "{rest: {}, "+externalDatabase+", istio: {gateway: {domain: example.com}}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "istio")).To(BeNil())
		}),
		Entry("a Secret with the connection", "{rest: {}, postgres: {connectionSecretName: app, sslMode: require}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "postgres", "connectionSecretName")).To(Equal("app"))
		}),
		Entry("resources, TLS, version and backups of a generated database, which an update of v1alpha1 preserves", "{rest: {}, postgres: {generateDeployment: true, resources: {requests: {cpu: 1}}, serverTLS: Enabled, "+
			"majorVersion: 16, backup: {schedule: '*/15 3,4 * JAN-MAR 1-5', keep: 3, suspend: true, storage: {size: 1Gi}}}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "postgres", "backup", "schedule")).To(Equal("*/15 3,4 * JAN-MAR 1-5"))
			alphaObject := registry.DeepCopy()
			alphaObject.SetAPIVersion("modelregistry.opendatahub.io/v1alpha1")
			env.Patch(context.Background(), alphaObject, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": "yes"}}})
			env.Get(context.Background(), registry)
			Expect(specField(registry, "postgres", "backup", "keep")).To(Equal(int64(3)))
			Expect(specField(registry, "postgres", "serverTLS")).To(Equal("Enabled"))
		}),
		Entry("retention and storage of a generated database", "{rest: {}, postgres: {generateDeployment: true, retentionPolicy: Delete, storage: {size: 10Gi, storageClassName: fast}}}", func(registry *unstructured.Unstructured) {
			Expect(specField(registry, "postgres", "storage", "size")).To(Equal("10Gi"))
		}),
	)

	DescribeTable("is rejected with", func(ctx SpecContext, spec, text string) {
		err := env.Admin.Create(ctx, newBetaRegistry(namespace, spec))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring(text), Not(ContainSubstring("no such key")))))
	},
		Entry("no database [modelregistry-5]", "{rest: {}}", "spec.postgres: Required value: required one of `postgres` or `mysql` database"),
		Entry("a database without a server", "{rest: {}, postgres: {database: d, username: u}}", "spec.mysql: Required value"),
		Entry("a generated database and a host [modelregistry-4]", "{rest: {}, postgres: {generateDeployment: true, host: h}}", "host"),
		Entry("a database and no user", "{rest: {}, postgres: {host: h, database: d}}", "Username must be set if database is specified"),
		Entry("both proxies", "{rest: {}, "+externalDatabase+", oauthProxy: {}, kubeRBACProxy: {}}", "Cannot use both oauthProxy and kubeRBACProxy"),
		Entry("a TLS key without a certificate", "{rest: {}, "+externalDatabase+", kubeRBACProxy: {tlsKeySecret: {name: a, key: b}}}", "tlsCertificateSecret and tlsKeySecret MUST be set together"),
		Entry("no rest", "{"+externalDatabase+"}", "spec.rest"),
		Entry("a wrong port", "{rest: {port: 0}, "+externalDatabase+"}", "spec.rest.port"),
		Entry("an unknown retention policy", "{rest: {}, postgres: {generateDeployment: true, retentionPolicy: Never}}", "spec.postgres.retentionPolicy"),
		Entry("a quantity that takes minutes to parse", "{rest: {resources: {limits: {cpu: '1e-2000000000'}}}, "+externalDatabase+"}",
			`spec.rest.resources.limits.cpu: quantity "1e-2000000000": write an exponent between -100 and 100`),
		Entry("storage of size 0", "{rest: {}, postgres: {generateDeployment: true, storage: {size: 0}}}", "size must be greater than zero"),
		Entry("a Secret with the connection, and a host", "{rest: {}, postgres: {connectionSecretName: app, host: h}}", "connectionSecretName is used instead of"),
		Entry("a Secret with the connection, and a password", "{rest: {}, postgres: {connectionSecretName: app, passwordSecret: {name: a, key: b}}}", "connectionSecretName is used instead of"),
		Entry("a Secret with the connection, and a generated database", "{rest: {}, postgres: {connectionSecretName: app, generateDeployment: true}}", "connectionSecretName is used instead of"),
		Entry("resources of a database that is not generated", "{rest: {}, postgres: {host: h, resources: {}}}", "are those of a generated database"),
		Entry("TLS of a database that is not generated", "{rest: {}, postgres: {connectionSecretName: app, serverTLS: Enabled}}", "are those of a generated database"),
		Entry("backups of a database that is not generated", "{rest: {}, postgres: {host: h, backup: {schedule: '@daily'}}}", "are those of a generated database"),
		Entry("a version of a database that is not generated", "{rest: {}, postgres: {generateDeployment: false, host: h, majorVersion: 16}}", "are those of a generated database"),
		Entry("an unknown TLS mode", "{rest: {}, postgres: {generateDeployment: true, serverTLS: Maybe}}", "spec.postgres.serverTLS"),
		Entry("an unknown major version", "{rest: {}, postgres: {generateDeployment: true, majorVersion: 160}}", "spec.postgres.majorVersion"),
		Entry("backups without a schedule", "{rest: {}, postgres: {generateDeployment: true, backup: {}}}", "spec.postgres.backup.schedule"),
		Entry("a schedule with four fields", "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '0 3 * *'}}}", "schedule must have five fields"),
		Entry("a schedule with a time zone", "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: 'TZ=UTC 0 3 * * *'}}}", "schedule must have five fields"),
		Entry("zero backups to keep", "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', keep: 0}}}", "spec.postgres.backup.keep"),
		Entry("backup storage of size 0", "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', storage: {size: 0}}}}", "size must be greater than zero"),
		Entry("an invalid host [D31]", "{rest: {}, postgres: {host: 'db/x?y=z'}}", "spec.postgres.host: Invalid value"),
		Entry("an invalid user [D31]", "{rest: {}, postgres: {host: db, username: \"u\\nimage: x\"}}", "spec.postgres.username: Invalid value"),
		Entry("an invalid database name [D31]", "{rest: {}, mysql: {host: db, username: u, database: 'd?tls=false'}}", "spec.mysql.database: Invalid value"),
	)

	It("is rejected without a host of MySQL, when it is created or updated [modelregistry-14]", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, newBetaRegistry(namespace, "{rest: {}, mysql: {}}"))).To(MatchError(ContainSubstring("required one of `postgres` or `mysql` database")))
		registry := createAndCleanUp(ctx, newBetaRegistry(namespace, "{rest: {}, mysql: {host: db, username: u, database: d}}"))
		Expect(updateObject(ctx, registry, func(registry *unstructured.Unstructured) { setSpecField(registry, map[string]any{}, "mysql") })).To(
			MatchError(ContainSubstring("required one of `postgres` or `mysql` database")))
	}, NodeTimeout(specTimeout))

	It("is rejected with the name of another registry in the cluster [modelregistry-13] [D30]", func(ctx SpecContext) {
		first := createAndCleanUp(ctx, newBetaRegistry(namespace, "{rest: {}, "+externalDatabase+"}"))
		otherNamespace := env.Namespace(ctx, "admission")
		second := newBetaRegistry(otherNamespace, "{rest: {}, "+externalDatabase+"}")
		uniqueName := second.GetName()
		second.SetName(first.GetName())
		Expect(env.Admin.Create(ctx, second)).To(MatchError(ContainSubstring("registry named " + first.GetName() + " already exists in namespace " + namespace)))
		second.SetName(uniqueName)
		createAndCleanUp(ctx, second)
	}, NodeTimeout(specTimeout))

	It("is rejected with a name that is invalid for its Service or the host of its Route [D32]", func(ctx SpecContext) {
		for name, text := range map[string]string{
			"a.b": "the Service of the registry has the same name", "1a": "the Service of the registry has the same name",
			strings.Repeat("a", 59): "must be at most 58 characters",
		} {
			registry := newBetaRegistry(namespace, "{rest: {}, "+externalDatabase+"}")
			registry.SetName(name)
			Expect(env.Admin.Create(ctx, registry)).To(MatchError(And(ContainSubstring("metadata.name: Invalid value"), ContainSubstring(text))))
		}
	}, NodeTimeout(specTimeout))

	It("gets one warning for each field without effect [D13] [D20]", func(ctx SpecContext) {
		admin, warnings := env.WithWarnings()
		registry := newBetaRegistry(namespace, "{rest: {serviceRoute: enabled}, grpc: {port: 1}, enable_database_upgrade: true, "+externalDatabase+"}")
		Expect(admin.Create(ctx, registry)).To(Succeed())
		Expect(warnings.Texts).To(ConsistOf(HavePrefix("spec.grpc.port: "), HavePrefix("spec.enable_database_upgrade: "), HavePrefix("spec.rest.serviceRoute: ")))
		warnings.Texts = nil
		registry.SetAnnotations(map[string]string{"touched": "yes"})
		Expect(admin.Update(ctx, registry)).To(Succeed())
		Expect(warnings.Texts).To(BeEmpty())
		deleteWithFinalizers(ctx, registry)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An existing registry", func() {
	It("loses its oauthProxy at an update if it has both proxies [D28], and can keep a name that new registries cannot have [D32]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "admission")
		registry := newBetaRegistry(namespace, "{rest: {}, "+externalDatabase+", oauthProxy: {port: 1}, kubeRBACProxy: {port: 2}}")
		registry.SetName("an.old.name-" + registry.GetName())
		withoutValidation(ctx, func() { createAndCleanUp(ctx, registry) })
		Expect(specField(getInVersion(ctx, registry.GroupVersionKind().GroupVersion(), registry), "oauthProxy")).NotTo(BeNil())
		env.SetAnnotation(ctx, registry, "touched", "yes")
		Expect(specField(registry, "oauthProxy")).To(BeNil())
		Expect(specField(registry, "kubeRBACProxy", "port")).To(Equal(int64(2)))
	}, NodeTimeout(specTimeout))

	It("can be deleted although it violates the rules [D3]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "admission")
		registry := newBetaRegistry(namespace, "{rest: {}}")
		registry.SetFinalizers([]string{"example.com/held"})
		withoutValidation(ctx, func() { createAndCleanUp(ctx, registry) })
		env.Patch(ctx, registry, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/held", "example.com/other"}}, "spec": map[string]any{"mysql": map[string]any{"host": "h", "username": "u", "database": "d"}}})
		Expect(env.Admin.Delete(ctx, registry)).To(Succeed())
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"mysql": nil}, "metadata": map[string]any{"finalizers": []any{"example.com/held"}}})
		env.Patch(ctx, registry, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, registry)
	}, NodeTimeout(specTimeout))
})

// withoutValidation calls a function while no webhook and no CEL rule of the CRD validates registries, to store objects that earlier
// releases accepted.
func withoutValidation(ctx SpecContext, call func()) {
	GinkgoHelper()
	crd := getObject(ctx, "apiextensions.k8s.io/v1", "CustomResourceDefinition", webhook.ConvertedCRD)
	mutating := getObject(ctx, "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", webhook.MutatingConfiguration)
	validating := getObject(ctx, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhook.ValidatingConfiguration)
	for _, configuration := range []*unstructured.Unstructured{mutating, validating} {
		env.Patch(ctx, configuration.DeepCopy(), map[string]any{"webhooks": []any{}})
	}
	unvalidated := crd.DeepCopy()
	removeField(unvalidated.Object["spec"], "x-kubernetes-validations")
	env.Patch(ctx, crd.DeepCopy(), map[string]any{"spec": map[string]any{"versions": specField(unvalidated, "versions")}})
	Eventually(dryRunCreate(ctx, "{rest: {}, oauthProxy: {}, kubeRBACProxy: {}}")).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
	call()
	env.Patch(ctx, crd.DeepCopy(), map[string]any{"spec": map[string]any{"versions": specField(crd, "versions")}})
	for _, configuration := range []*unstructured.Unstructured{mutating, validating} {
		env.Patch(ctx, configuration.DeepCopy(), map[string]any{"webhooks": configuration.Object["webhooks"]})
	}
	Eventually(dryRunCreate(ctx, "{rest: {}}")).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).
		Should(MatchError(ContainSubstring("vmodelregistry.opendatahub.io")))
	Eventually(dryRunCreate(ctx, "{rest: {}, "+externalDatabase+", oauthProxy: {}, kubeRBACProxy: {}}")).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).
		Should(MatchError(ContainSubstring("Cannot use both")))
	Eventually(func() any {
		probe := newBetaRegistry("default", "{rest: {}, "+externalDatabase+"}")
		Expect(env.Admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		return specField(probe, "kubeRBACProxy")
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).ShouldNot(BeNil())
}

// dryRunCreate returns a function that creates a registry with a dry run.
func dryRunCreate(ctx SpecContext, spec string) func() error {
	return func() error { return env.Admin.Create(ctx, newBetaRegistry("default", spec), client.DryRunAll) }
}

func getObject(ctx context.Context, apiVersion, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	out := framework.Manifest("{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: " + name + "}}")
	env.Get(ctx, out)
	return out
}

// removeField removes a field at all levels of a value.
func removeField(value any, field string) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, field)
		for _, child := range v {
			removeField(child, field)
		}
	case []any:
		for _, child := range v {
			removeField(child, field)
		}
	}
}

var _ = Describe("The configurations of webhooks", func() {
	It("use v1 and have a timeout [S9]", func(ctx SpecContext) {
		mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.MutatingConfiguration}}
		env.Get(ctx, mutating)
		Expect(mutating.Webhooks).To(HaveLen(1))
		Expect(mutating.Webhooks[0].Name).To(Equal("mmodelregistry.opendatahub.io"))
		Expect(mutating.Webhooks[0].AdmissionReviewVersions).To(Equal([]string{"v1"}))
		Expect(*mutating.Webhooks[0].TimeoutSeconds).To(BeEquivalentTo(10))
		Expect(*mutating.Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Fail))
		for name, timeout := range map[string]int32{webhook.ValidatingConfiguration: 10, webhook.CatalogValidatingConfiguration: 5} {
			validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
			env.Get(ctx, validating)
			Expect(validating.Webhooks).To(HaveLen(1))
			Expect(validating.Webhooks[0].AdmissionReviewVersions).To(Equal([]string{"v1"}))
			Expect(*validating.Webhooks[0].TimeoutSeconds).To(Equal(timeout))
			Expect(*validating.Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Fail))
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConvertedCRD}}
		env.Get(ctx, crd)
		Expect(crd.Spec.Conversion.Webhook.ConversionReviewVersions).To(Equal([]string{"v1"}))
		Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).NotTo(BeEmpty())
	}, NodeTimeout(specTimeout))
})
