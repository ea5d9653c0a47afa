package restore_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// droppedField is a status field that the test removes from the CRDs, as if they were from an earlier release.
const droppedField = "observedGeneration"

// filterOwnKinds returns the resources of the CRDs of this operator.
func filterOwnKinds(resources []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(resources), func(o *unstructured.Unstructured) bool {
		return !slices.Contains([]string{"MLflow", "MLflowConfig", "ModelRegistry", "Catalog", "Predictor", "AppWrapper"}, o.GetKind())
	})
}

// changeCRD changes the schema of the status in all versions of the CRD of an object.
func changeCRD(ctx context.Context, object *unstructured.Unstructured, change func(status map[string]apiextensionsv1.JSONSchemaProps)) {
	GinkgoHelper()
	mapping, err := env.Admin.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	Expect(err).NotTo(HaveOccurred())
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := env.Admin.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, crd); err != nil {
			return err
		}
		for i := range crd.Spec.Versions {
			change(crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"].Properties)
		}
		return env.Admin.Update(ctx, crd)
	})).To(Succeed())
}

var _ = Describe("CRDs of an earlier release", func() {
	It("keep the manager idle, and dropped status fields are set again with the CRDs of this release", func(ctx SpecContext) {
		resources := createAndWaitReady(ctx)
		env.PrunedPeriod.From = time.Now()
		ownResources := filterOwnKinds(resources)
		waitForField := func(object *unstructured.Unstructured, want bool) {
			GinkgoHelper()
			live := framework.Unstructured(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			env.WaitFor(ctx, live, func(g Gomega) {
				_, found, err := unstructured.NestedInt64(live.Object, "status", droppedField)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found).To(Equal(want), "%s: %v", kindAndName(object), live.Object["status"])
			})
		}
		byKind := map[string]*unstructured.Unstructured{}
		for _, object := range ownResources {
			byKind[object.GetKind()] = object
		}
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for kind, object := range byKind {
			changeCRD(ctx, object, func(status map[string]apiextensionsv1.JSONSchemaProps) {
				fields[kind] = status[droppedField]
				delete(status, droppedField)
			})
		}
		restore := func(ctx context.Context) {
			for kind, object := range byKind {
				changeCRD(ctx, object, func(status map[string]apiextensionsv1.JSONSchemaProps) { status[droppedField] = fields[kind] })
			}
		}
		DeferCleanup(restore)
		start, versions := env.AuditPosition(), []string{}
		for _, object := range ownResources {
			waitForField(object, false)
			live := framework.Unstructured(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			env.Patch(ctx, live, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/touched": metav1.Now().String()}}})
			versions = append(versions, live.GetResourceVersion())
		}
		Eventually(func(g Gomega) {
			for _, version := range versions {
				g.Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.ResourceVersion == version })).NotTo(BeEmpty(),
					"no write of the manager returned resourceVersion %s, although the API server dropped a field", version)
			}
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("restoring the CRDs of this release")
		for _, object := range ownResources {
			waitForField(object, false)
		}
		restore(ctx)
		for _, object := range ownResources {
			waitForField(object, true)
		}
		env.PrunedPeriod.To = time.Now()
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.WaitReady(ctx, resources)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
