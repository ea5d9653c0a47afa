package modelregistry_admission_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	operatornames "github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const migratedAnnotation = "storage-migration.opendatahub.io/migrated-v1alpha1-to-v1beta1"

// startManagerWithControllers starts a second manager without leader election, so its controllers run although another client holds the
// Lease. The API server calls the webhooks of the first manager. The registries are paused, so that only the migration changes them.
func startManagerWithControllers(ctx context.Context, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: "manager-without-election", Args: []string{"--components=modelregistry"}, Env: variables,
	})
}

func registryCRD(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConvertedCRD}}
	env.Get(ctx, crd)
	return crd
}

// storageHash returns the hash of the storage version of registries from discovery.
func storageHash() string {
	GinkgoHelper()
	list, err := discovery.NewDiscoveryClientForConfigOrDie(env.Config).ServerResourcesForGroupVersion(v1beta1.GroupVersion.String())
	Expect(err).NotTo(HaveOccurred())
	for _, resource := range list.APIResources {
		if resource.Name == "modelregistries" {
			return resource.StorageVersionHash
		}
	}
	return ""
}

// setStorageVersion sets the storage version of registries, and waits until the API server uses it.
func setStorageVersion(ctx context.Context, version string) {
	GinkgoHelper()
	crd, originalHash, changed := registryCRD(ctx), storageHash(), false
	for i := range crd.Spec.Versions {
		storage := crd.Spec.Versions[i].Name == version
		changed = changed || crd.Spec.Versions[i].Storage != storage
		crd.Spec.Versions[i].Storage = storage
	}
	Expect(env.Admin.Update(ctx, crd)).To(Succeed())
	if changed {
		Eventually(storageHash).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).ShouldNot(Equal(originalHash))
	}
	Eventually(func() []string { return registryCRD(ctx).Status.StoredVersions }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).
		Should(ContainElement(version))
}

// expectStored runs check on the stored form of a registry: until check succeeds, the CRD has the conversion strategy None. Only objects
// stored as v1alpha1 have conversion.Annotation.
func expectStored(ctx context.Context, registry *unstructured.Unstructured, check func(g Gomega, stored *unstructured.Unstructured)) {
	GinkgoHelper()
	crd := getObject(ctx, "apiextensions.k8s.io/v1", "CustomResourceDefinition", webhook.ConvertedCRD)
	conversionField := specField(crd, "conversion")
	env.Patch(ctx, crd.DeepCopy(), map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}})
	Eventually(func(g Gomega) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ModelRegistry"))
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(registry), live)).To(Succeed())
		check(g, live)
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
	env.Patch(ctx, crd.DeepCopy(), map[string]any{"spec": map[string]any{"conversion": conversionField}})
	Eventually(func() any { return specField(getInVersion(ctx, v1alpha1.GroupVersion, registry), "grpc") }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).ShouldNot(BeNil())
}

// createInBothVersions creates one registry that is stored as v1alpha1 and one that is stored as v1beta1.
func createInBothVersions(ctx context.Context) (alphaObject, betaObject *unstructured.Unstructured) {
	GinkgoHelper()
	namespace := env.Namespace(ctx, "storage")
	pause := func(registry *unstructured.Unstructured) *unstructured.Unstructured {
		registry.SetAnnotations(map[string]string{operatornames.PausedAnnotation: "true"})
		return registry
	}
	setStorageVersion(ctx, v1alpha1.GroupVersion.Version)
	alphaObject = pause(newBetaRegistry(namespace, betaSpec))
	Eventually(func() error { return env.Admin.Create(ctx, alphaObject) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
	setStorageVersion(ctx, v1beta1.GroupVersion.Version)
	betaObject = createAndCleanUp(ctx, pause(newBetaRegistry(namespace, betaSpec)))
	Expect(registryCRD(ctx).Status.StoredVersions).To(ConsistOf("v1alpha1", "v1beta1"))
	return alphaObject, betaObject
}

func eventuallyStoredVersions(ctx context.Context) AsyncAssertion {
	GinkgoHelper()
	return Eventually(func() []string { return registryCRD(ctx).Status.StoredVersions }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval)
}

// deleteRegistries deletes registries, waits until the second manager has removed their finalizers, and stops that manager.
func deleteRegistries(ctx context.Context, second *framework.Manager, registries ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, registry := range registries {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, registry))).To(Succeed())
		env.WaitDeleted(ctx, registry)
	}
	second.Stop(ctx)
}

var _ = Describe("Stored registries", func() {
	It("are migrated to the storage version, status.storedVersions is trimmed, and a restart writes nothing [modelregistry-69] [modelregistry-70] [D29]", func(ctx SpecContext) {
		alphaObject, betaObject := createInBothVersions(ctx)
		expectStored(ctx, alphaObject, func(g Gomega, stored *unstructured.Unstructured) {
			g.Expect(stored.GetAnnotations()).To(HaveKey(conversion.Annotation), "the registry is not stored as v1alpha1")
		})
		second := startManagerWithControllers(ctx)
		eventuallyStoredVersions(ctx).Should(Equal([]string{"v1beta1"}))
		for _, registry := range []*unstructured.Unstructured{alphaObject, betaObject} {
			migrated := getInVersion(ctx, v1beta1.GroupVersion, registry)
			for _, object := range []*unstructured.Unstructured{migrated, registry} {
				unstructured.RemoveNestedField(object.Object, "spec", "replicas") // the schema sets its default
			}
			Expect(migrated.Object["spec"]).To(Equal(registry.Object["spec"]))
			Expect(migrated.GetAnnotations()).To(HaveKey(migratedAnnotation))
		}
		expectStored(ctx, alphaObject, func(g Gomega, stored *unstructured.Unstructured) {
			g.Expect(stored.GetAnnotations()).NotTo(HaveKey(conversion.Annotation))
			g.Expect(specField(stored, "kubeRBACProxy", "port")).To(Equal(int64(9443)))
		})
		env.WaitIdle(second.User, pollInterval*20, waitTimeout) // until the status reports the pause
		start := env.AuditPosition()
		second.Restart(ctx)
		env.WaitIdle(second.User, pollInterval*20, waitTimeout)
		requests := env.Since(start).ByUser(second.User)
		Expect(requests.ForResource("customresourcedefinitions").Writes()).To(BeEmpty())
		Expect(requests.ForResource("modelregistries").Writes()).To(BeEmpty())
		deleteRegistries(ctx, second, alphaObject, betaObject)
	}, NodeTimeout(specTimeout))

	It("are migrated even if the current validation rejects them [D29]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "storage")
		setStorageVersion(ctx, v1alpha1.GroupVersion.Version)
		invalid := newBetaRegistry(namespace, "{rest: {}}")
		invalid.SetAnnotations(map[string]string{operatornames.PausedAnnotation: "true"})
		withoutValidation(ctx, func() { createAndCleanUp(ctx, invalid) })
		setStorageVersion(ctx, v1beta1.GroupVersion.Version)
		start := env.AuditPosition()
		second := startManagerWithControllers(ctx)
		eventuallyStoredVersions(ctx).Should(Equal([]string{"v1beta1"}))
		patches := env.Since(start).ByUser(second.User).ForResource("modelregistries").Where(func(e framework.Entry) bool { return e.Name == invalid.GetName() && e.Verb == "patch" })
		Expect(patches).To(ContainElement(And(HaveField("Subresource", ""), HaveField("Code", 422))))
		Expect(patches).To(ContainElement(And(HaveField("Subresource", "status"), HaveField("Code", 200))))
		Expect(getInVersion(ctx, v1beta1.GroupVersion, invalid).GetAnnotations()).NotTo(HaveKey(migratedAnnotation))
		deleteRegistries(ctx, second, invalid)
	}, NodeTimeout(specTimeout))

	It("are not migrated if the versions in the settings are equal", func(ctx SpecContext) {
		alphaObject, betaObject := createInBothVersions(ctx)
		start := env.AuditPosition()
		second := startManagerWithControllers(ctx, "STORAGE_MIGRATION_SOURCE_VERSION=v1beta1", "STORAGE_MIGRATION_TARGET_VERSION=v1beta1")
		env.WaitIdle(second.User, pollInterval*20, waitTimeout)
		Expect(env.Since(start).ByUser(second.User).ForResource("customresourcedefinitions").Where(func(e framework.Entry) bool { return e.Subresource != "" })).To(BeEmpty())
		Expect(registryCRD(ctx).Status.StoredVersions).To(ContainElement("v1alpha1"))
		second.Stop(ctx)
		migrator := startManagerWithControllers(ctx)
		eventuallyStoredVersions(ctx).Should(Equal([]string{"v1beta1"}))
		deleteRegistries(ctx, migrator, alphaObject, betaObject)
	}, NodeTimeout(specTimeout))
})
