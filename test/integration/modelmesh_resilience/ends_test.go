package modelmesh_resilience_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// listVModels returns the names of the vmodels in the routing layer of a namespace.
func listVModels(ctx context.Context, namespace string) func() ([]string, error) {
	return func() ([]string, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.URL}, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		prefix := "modelmesh-serving/mm_ns/" + namespace + "/mm/modelmesh-serving/vmodels/"
		response, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		var out []string
		for _, entry := range response.Kvs {
			out = append(out, strings.TrimPrefix(string(entry.Key), prefix))
		}
		slices.Sort(out)
		return out, nil
	}
}

// create creates Predictors, each with a name and a path.
func create(ctx context.Context, namespace string, models ...[2]string) {
	GinkgoHelper()
	for _, m := range models {
		Expect(env.Admin.Create(ctx, predictor(namespace, m[0], m[1]))).To(Succeed())
	}
}

// update changes the path of a Predictor.
func update(ctx context.Context, namespace, name, path string) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"storage":{"path":"`+path+`"}}}`))
	Expect(env.Admin.Patch(ctx, predictor(namespace, name, ""), patch)).To(Succeed())
}

func remove(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Expect(env.Admin.Delete(ctx, predictor(namespace, name, ""))).To(Succeed())
}

// The specs are serial, because all share the stopped processes.
var _ = Describe("Every model ends in the right state", Serial, func() {
	It("after the pods of the routing layer were killed while models are loaded, created, changed and deleted [modelmesh-79] [modelmesh-84]", func(ctx SpecContext) {
		const namespace = "layer-dies"
		createServingNamespace(ctx, namespace)
		create(ctx, namespace, [2]string{"stays", "models/a"}, [2]string{"bad", "models/missing"}, [2]string{"changes", "models/c"}, [2]string{"goes", "models/d"})
		for _, name := range []string{"stays", "changes", "goes"} {
			Eventually(state(ctx, namespace, name)).Should(Equal(loaded), name)
		}
		Eventually(state(ctx, namespace, "bad")).Should(Equal(failing))
		release := loads.blockLoads()
		create(ctx, namespace, [2]string{"loading", "models/e"})
		Eventually(state(ctx, namespace, "loading")).Should(ContainSubstring("Loading/"))
		stopNetwork(ctx)
		release()
		create(ctx, namespace, [2]string{"late", "models/f"})
		update(ctx, namespace, "changes", "models/c2")
		remove(ctx, namespace, "goes")
		startNetwork(ctx)
		for _, name := range []string{"stays", "changes", "late"} {
			Eventually(state(ctx, namespace, name)).Should(Equal(loaded), name)
		}
		Eventually(state(ctx, namespace, "bad")).Should(Equal(failing))
		// Depending on when the outage was observed, the lost load is repeated immediately or at the first use.
		Eventually(state(ctx, namespace, "loading")).Should(Or(Equal(loaded), Equal("available=true Standby/ UpToDate")))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"bad", "changes", "late", "loading", "stays"}))
	}, SpecTimeout(specTimeout))

	It("after etcd was killed while models are created, changed and deleted", func(ctx SpecContext) {
		const namespace = "etcd-dies"
		createServingNamespace(ctx, namespace)
		create(ctx, namespace, [2]string{"changes", "models/a"}, [2]string{"goes", "models/b"}, [2]string{"breaks", "models/c"})
		for _, name := range []string{"changes", "goes", "breaks"} {
			Eventually(state(ctx, namespace, name)).Should(Equal(loaded), name)
		}
		Expect(etcd.Kill(ctx)).To(Succeed())
		create(ctx, namespace, [2]string{"late", "models/d"})
		update(ctx, namespace, "changes", "models/a2")
		update(ctx, namespace, "breaks", "models/missing")
		remove(ctx, namespace, "goes")
		Expect(etcd.Restart(ctx)).To(Succeed())
		for _, name := range []string{"changes", "late"} {
			Eventually(state(ctx, namespace, name)).Should(Equal(loaded), name)
		}
		Eventually(state(ctx, namespace, "breaks")).Should(Equal(blocked))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"breaks", "changes", "late"}))
	}, SpecTimeout(specTimeout))

	It("after the manager was killed while a model is created, loaded and replaced; models that were deleted meanwhile are removed", func(ctx SpecContext) {
		const namespace = "manager-dies"
		createServingNamespace(ctx, namespace)
		create(ctx, namespace, [2]string{"model", "models/a"}, [2]string{"goes", "models/b"})
		manager.Kill(ctx)
		manager.Restart(ctx)
		Eventually(state(ctx, namespace, "model")).Should(Equal(loaded))
		Eventually(state(ctx, namespace, "goes")).Should(Equal(loaded))

		release := loads.blockLoads()
		create(ctx, namespace, [2]string{"loading", "models/c"})
		update(ctx, namespace, "model", "models/a2")
		Eventually(state(ctx, namespace, "loading")).Should(ContainSubstring("Loading/"))
		Eventually(state(ctx, namespace, "model")).Should(Equal("available=true Loaded/Loading InProgress"))
		manager.Kill(ctx)
		remove(ctx, namespace, "goes")
		release()
		manager.Restart(ctx)
		Eventually(state(ctx, namespace, "loading")).Should(Equal(loaded))
		Eventually(state(ctx, namespace, "model")).Should(Equal(loaded))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"loading", "model"}))
	}, SpecTimeout(specTimeout))

	It("after all processes were killed", func(ctx SpecContext) {
		const namespace = "all-dies"
		createServingNamespace(ctx, namespace)
		create(ctx, namespace, [2]string{"good", "models/a"}, [2]string{"bad", "models/invalid"})
		Eventually(state(ctx, namespace, "good")).Should(Equal(loaded))
		Eventually(state(ctx, namespace, "bad")).Should(Equal(failing))
		manager.Kill(ctx)
		Expect(etcd.Kill(ctx)).To(Succeed())
		stopNetwork(ctx)
		update(ctx, namespace, "bad", "models/mended")
		create(ctx, namespace, [2]string{"late", "models/c"})
		Expect(etcd.Restart(ctx)).To(Succeed())
		startNetwork(ctx)
		manager.Restart(ctx)
		for _, name := range []string{"good", "bad", "late"} {
			Eventually(state(ctx, namespace, name)).Should(Equal(loaded), name)
		}
		var p v1alpha1.Predictor
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "bad"}, &p)).To(Succeed())
		Expect(p.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))
})
