package all_components_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// createIfAdmitted creates an object, and reports whether admission accepted it. The error of a denial must contain the name of the object.
func createIfAdmitted(ctx context.Context, object *unstructured.Unstructured) bool {
	GinkgoHelper()
	err := env.Admin.Create(ctx, object)
	if err != nil {
		Expect(err.Error()).To(ContainSubstring(object.GetName()))
	}
	return err == nil
}

func deleteAndWait(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(env.Admin.Delete(ctx, object)).To(Succeed())
	}
	for _, object := range objects {
		env.WaitDeleted(ctx, object)
	}
}

var _ = Describe("Resources with colliding names", func() {
	It("reach the steady state", func(ctx SpecContext) {
		var created []*unstructured.Unstructured
		// Each name is also the name of a child object.
		for _, name := range []string{"demo", "mlflow", "modelmesh-serving", "model-serving-etcd"} {
			namespace := env.Namespace(ctx, "collide")
			env.SetLabel(ctx, framework.NamespaceNamed(namespace), "modelmesh-enabled", "true")
			otherNamespace := env.Namespace(ctx, "collide")
			for _, ns := range []string{namespace, otherNamespace} {
				for _, c := range components {
					if object := c.object(ns, name); createIfAdmitted(ctx, object) {
						created = append(created, object)
					}
				}
			}
		}
		env.WaitIdle(manager.User, idlePeriod, waitTimeout) // two owners of an object would overwrite it forever
		for _, object := range created {
			Expect(env.Admin.Delete(ctx, object)).To(Succeed())
		}
	}, NodeTimeout(specTimeout))

	It("do not replace the ClusterRoleBinding and the Deployment of the catalog", func(ctx SpecContext) {
		catalog := framework.Sample("aihub_catalog.yaml")
		catalog.SetNamespace(env.Namespace(ctx, "catalog"))
		Expect(env.Admin.Create(ctx, catalog)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, []*unstructured.Unstructured{catalog}) }, NodeTimeout(specTimeout))
		binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}}
		binding.SetName("model-catalog-auth-delegator")
		server := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		server.SetNamespace(catalog.GetNamespace())
		server.SetName("model-catalog")
		env.WaitExists(ctx, server)
		env.Get(ctx, binding)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		uids := []string{string(binding.GetUID()), string(server.GetUID())}

		for _, ns := range []string{catalog.GetNamespace(), env.Namespace(ctx, "tenant")} {
			registry := components[0].object(ns, "model")
			Expect(env.Admin.Create(ctx, registry)).To(Succeed())
			Expect(createIfAdmitted(ctx, components[0].object(ns, "model-catalog"))).To(BeFalse(), "the name is reserved")
			env.WaitIdle(manager.User, idlePeriod, waitTimeout)
			deleteAndWait(ctx, []*unstructured.Unstructured{registry})
		}
		env.Get(ctx, binding)
		env.Get(ctx, server)
		Expect([]string{string(binding.GetUID()), string(server.GetUID())}).To(Equal(uids))
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		Expect(subjects).To(HaveLen(1))
		Expect(subjects[0]).To(HaveKeyWithValue("namespace", catalog.GetNamespace()))
	}, NodeTimeout(specTimeout))
})
