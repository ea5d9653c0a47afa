package takeover_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unrelatedObject is an object with the label of the replaced operator, but not created by it.
func unrelatedObject(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetName(name)
	object.SetLabels(map[string]string{"app": "mlflow", "component": "mlflow"})
	if kind != "ConsoleLink" {
		object.SetNamespace(namespace)
	}
	return object
}

var _ = Describe("A remaining object of the legacy operator", func() {
	It("is deleted if it is an unused ServiceAccount of an older name", func(ctx SpecContext) {
		s := createLegacyObjects(ctx, forceApply, "common.yaml", "customised.yaml")
		old := unrelatedObject("v1", "ServiceAccount", "mlflow-sa", map[string]any{"automountServiceAccountToken": false})
		old.SetOwnerReferences(append(old.GetOwnerReferences(), s.reference(old.GetKind())))
		forceApply(ctx, old)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, old))).To(Succeed())
		}, NodeTimeout(specTimeout))
		before := s.running(ctx)
		s.takeOver(ctx, "MLFLOW_URL=https://gateway.apps.lab.example.com")
		env.WaitDeleted(ctx, old)
		Expect(s.running(ctx)).To(Equal(before))
	}, NodeTimeout(specTimeout))

	It("is kept if it only looks similar but was not created for the server", func(ctx SpecContext) {
		s := createLegacyObjects(ctx, forceApply, "common.yaml", "minimal.yaml")
		alike := []*unstructured.Unstructured{
			unrelatedObject("v1", "ServiceAccount", "mlflow-client", map[string]any{}),
			unrelatedObject("v1", "ConfigMap", "mlflow-notes", map[string]any{"data": map[string]any{"a": "b"}}),
			unrelatedObject("monitoring.coreos.com/v1", "ServiceMonitor", "mlflow-of-a-user", map[string]any{"spec": map[string]any{
				"endpoints": []any{map[string]any{"port": "web"}}, "selector": map[string]any{},
			}}),
			unrelatedObject("gateway.networking.k8s.io/v1", "HTTPRoute", "mlflow-of-a-user", map[string]any{"spec": map[string]any{}}),
			unrelatedObject("console.openshift.io/v1", "ConsoleLink", "mlflow-of-a-user", map[string]any{"spec": map[string]any{
				"text": "MLflow", "href": "https://mlflow.example.net", "location": "HelpMenu",
			}}),
		}
		// Another object of the user owns this ServiceAccount; by its labels, the replaced operator would have managed it.
		owned := unrelatedObject("v1", "ServiceAccount", "mlflow-of-another", map[string]any{})
		for _, object := range alike {
			Expect(env.Admin.Create(ctx, object, client.FieldOwner("another-manager"))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(specTimeout))
		}
		owner := s.reference("ServiceAccount")
		owner.APIVersion, owner.Kind, owner.Name, owner.UID = "v1", "ConfigMap", alike[1].GetName(), alike[1].GetUID()
		owned.SetOwnerReferences(append(owned.GetOwnerReferences(), owner))
		Expect(env.Admin.Create(ctx, owned)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, owned))).To(Succeed())
		}, NodeTimeout(specTimeout))

		s.takeOver(ctx)
		for _, object := range append(alike, owned) {
			live := s.live(ctx, object)
			Expect(live.GetUID()).To(Equal(object.GetUID()))
			Expect(live.GetResourceVersion()).To(Equal(object.GetResourceVersion()), "%s %s was written", object.GetKind(), object.GetName())
		}

		By("deleting the server")
		Expect(env.Admin.Delete(ctx, s.server)).To(Succeed())
		env.WaitDeleted(ctx, deployment())
		for _, object := range append(alike, owned) {
			Expect(s.live(ctx, object).GetDeletionTimestamp()).To(BeNil(), "%s %s", object.GetKind(), object.GetName())
		}
	}, NodeTimeout(specTimeout))
})
