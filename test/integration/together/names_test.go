package together_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What several components would make under one name, in one namespace and in several.
var _ = Describe("Colliding names", func() {
	for _, name := range []string{"demo", "mlflow", "modelmesh-serving", "model-serving-etcd"} {
		It("end in rest, whatever is called "+name, func(ctx SpecContext) {
			namespace := env.Namespace(ctx, "collide")
			env.Patch(ctx, namespaceObject(namespace), map[string]any{"metadata": map[string]any{"labels": map[string]any{"modelmesh-enabled": "true"}}})
			elsewhere := env.Namespace(ctx, "collide")
			var created []*unstructured.Unstructured
			for _, at := range []string{namespace, elsewhere} {
				for _, c := range components {
					object := c.object(at, name)
					if err := env.Admin.Create(ctx, object); err != nil {
						Expect(err.Error()).To(ContainSubstring(name), "a refusal at admission names what is wrong")
						continue
					}
					created = append(created, object)
				}
			}
			env.Settle(manager.User, quiet, patience)
			env.ExpectAtRest(manager.User, quiet) // nobody writes an object that another one writes back
			for _, object := range created {
				Expect(env.Admin.Delete(ctx, object)).To(Succeed())
			}
			for _, object := range created {
				env.WaitGone(ctx, object)
			}
		}, NodeTimeout(specTimeout))
	}

	It("leave the shared catalog its binding and its server when registries are called as it is", func(ctx SpecContext) {
		catalog := sample("aihub_catalog.yaml")
		catalog.SetNamespace(env.Namespace(ctx, "catalog"))
		Expect(env.Admin.Create(ctx, catalog)).To(Succeed())
		binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}}
		binding.SetName("model-catalog-auth-delegator")
		server := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		server.SetNamespace(catalog.GetNamespace())
		server.SetName("model-catalog")
		Eventually(func() error { return env.Admin.Get(ctx, client.ObjectKeyFromObject(server), server) }).WithContext(ctx).WithTimeout(patience).Should(Succeed())
		env.Get(ctx, binding)
		env.Settle(manager.User, quiet, patience)
		uids := []string{string(binding.GetUID()), string(server.GetUID())}

		for _, registry := range []string{"model", "model-catalog"} {
			for _, at := range []string{catalog.GetNamespace(), env.Namespace(ctx, "tenant")} {
				object := components[0].object(at, registry)
				if err := env.Admin.Create(ctx, object); err != nil {
					Expect(err.Error()).To(ContainSubstring(registry))
					continue
				}
				env.Settle(manager.User, quiet/2, patience)
				Expect(env.Admin.Delete(ctx, object)).To(Succeed())
				env.WaitGone(ctx, object)
			}
		}
		env.Get(ctx, binding)
		env.Get(ctx, server)
		Expect([]string{string(binding.GetUID()), string(server.GetUID())}).To(Equal(uids))
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		Expect(subjects).To(HaveLen(1))
		Expect(subjects[0]).To(HaveKeyWithValue("namespace", catalog.GetNamespace()))
	}, NodeTimeout(specTimeout))
})
