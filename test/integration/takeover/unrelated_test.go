package takeover_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newLabelledObject returns an object with the labels that the legacy operator set.
func newLabelledObject(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetName(name)
	object.SetLabels(map[string]string{"app": "mlflow", "component": "mlflow"})
	if kind != "ConsoleLink" {
		object.SetNamespace(namespace)
	}
	return object
}

var _ = Describe("An object with the labels of the legacy operator", func() {
	It("is deleted if it is an unused ServiceAccount of the server with an earlier name", func(ctx SpecContext) {
		legacy := createLegacyObjects(ctx, forceApply, "common.yaml", "customised.yaml")
		unused := newLabelledObject("v1", "ServiceAccount", "mlflow-sa", map[string]any{"automountServiceAccountToken": false})
		unused.SetOwnerReferences(append(unused.GetOwnerReferences(), legacy.ownerReference(unused.GetKind())))
		forceApply(ctx, unused)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, unused))).To(Succeed())
		}, NodeTimeout(specTimeout))
		before := legacy.state(ctx)
		legacy.takeOver(ctx, "MLFLOW_URL=https://gateway.apps.lab.example.com")
		env.WaitDeleted(ctx, unused)
		Expect(legacy.state(ctx)).To(Equal(before))
	}, NodeTimeout(specTimeout))

	It("is kept if it was not created for the server", func(ctx SpecContext) {
		legacy := createLegacyObjects(ctx, forceApply, "common.yaml", "minimal.yaml")
		unrelated := []*unstructured.Unstructured{
			newLabelledObject("v1", "ServiceAccount", "mlflow-client", map[string]any{}),
			newLabelledObject("v1", "ConfigMap", "mlflow-notes", map[string]any{"data": map[string]any{"a": "b"}}),
			newLabelledObject("monitoring.coreos.com/v1", "ServiceMonitor", "mlflow-of-a-user", map[string]any{"spec": map[string]any{
				"endpoints": []any{map[string]any{"port": "web"}}, "selector": map[string]any{},
			}}),
			newLabelledObject("gateway.networking.k8s.io/v1", "HTTPRoute", "mlflow-of-a-user", map[string]any{"spec": map[string]any{}}),
			newLabelledObject("console.openshift.io/v1", "ConsoleLink", "mlflow-of-a-user", map[string]any{"spec": map[string]any{
				"text": "MLflow", "href": "https://mlflow.example.net", "location": "HelpMenu",
			}}),
		}
		// ConfigMap mlflow-notes, not the MLflow, owns this ServiceAccount.
		owned := newLabelledObject("v1", "ServiceAccount", "mlflow-of-another", map[string]any{})
		for _, object := range unrelated {
			Expect(env.Admin.Create(ctx, object, client.FieldOwner("another-manager"))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(specTimeout))
		}
		owner := legacy.ownerReference("ServiceAccount")
		owner.APIVersion, owner.Kind, owner.Name, owner.UID = "v1", "ConfigMap", unrelated[1].GetName(), unrelated[1].GetUID()
		owned.SetOwnerReferences(append(owned.GetOwnerReferences(), owner))
		Expect(env.Admin.Create(ctx, owned)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, owned))).To(Succeed())
		}, NodeTimeout(specTimeout))

		legacy.takeOver(ctx)
		for _, object := range append(unrelated, owned) {
			live := legacy.live(ctx, object)
			Expect(live.GetUID()).To(Equal(object.GetUID()))
			Expect(live.GetResourceVersion()).To(Equal(object.GetResourceVersion()), "%s %s was written", object.GetKind(), object.GetName())
		}

		By("deleting the server")
		Expect(env.Admin.Delete(ctx, legacy.server)).To(Succeed())
		env.WaitDeleted(ctx, mlflowDeployment())
		for _, object := range append(unrelated, owned) {
			Expect(legacy.live(ctx, object).GetDeletionTimestamp()).To(BeNil(), "%s %s", object.GetKind(), object.GetName())
		}
	}, NodeTimeout(specTimeout))
})
