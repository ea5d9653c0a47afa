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

// listVModels returns a function that returns the names of the vmodels of a namespace in etcd.
func listVModels(ctx context.Context, namespace string) func() ([]string, error) {
	return func() ([]string, error) {
		etcdClient, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.URL}, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		defer etcdClient.Close()
		prefix := "modelmesh-serving/mm_ns/" + namespace + "/mm/modelmesh-serving/vmodels/"
		response, err := etcdClient.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
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

// createPredictors creates Predictors from pairs of a name and a path.
func createPredictors(ctx context.Context, namespace string, models ...[2]string) {
	GinkgoHelper()
	for _, m := range models {
		Expect(env.Admin.Create(ctx, predictor(namespace, m[0], m[1]))).To(Succeed())
	}
}

// setPath changes the path of a Predictor.
func setPath(ctx context.Context, namespace, name, path string) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"storage":{"path":"`+path+`"}}}`))
	Expect(env.Admin.Patch(ctx, predictor(namespace, name, ""), patch)).To(Succeed())
}

func deletePredictor(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Expect(env.Admin.Delete(ctx, predictor(namespace, name, ""))).To(Succeed())
}

// The specs are serial, because they stop processes that all specs share.
var _ = Describe("Models reach the expected state", Serial, func() {
	It("after the pods of the routing layer were killed while models are loaded, created, changed and deleted [modelmesh-79] [modelmesh-84]", func(ctx SpecContext) {
		const namespace = "layer-killed"
		createServingNamespace(ctx, namespace)
		createPredictors(ctx, namespace, [2]string{"unchanged", "models/a"}, [2]string{"bad", "models/missing"}, [2]string{"changed", "models/c"}, [2]string{"deleted", "models/d"})
		for _, name := range []string{"unchanged", "changed", "deleted"} {
			Eventually(stateOf(ctx, namespace, name)).Should(Equal(loadedState), name)
		}
		Eventually(stateOf(ctx, namespace, "bad")).Should(Equal(failedState))
		release := loads.blockLoads()
		createPredictors(ctx, namespace, [2]string{"loading", "models/e"})
		Eventually(stateOf(ctx, namespace, "loading")).Should(ContainSubstring("Loading/"))
		stopRoutingLayers(ctx)
		release()
		createPredictors(ctx, namespace, [2]string{"late", "models/f"})
		setPath(ctx, namespace, "changed", "models/c2")
		deletePredictor(ctx, namespace, "deleted")
		startRoutingLayers(ctx)
		for _, name := range []string{"unchanged", "changed", "late"} {
			Eventually(stateOf(ctx, namespace, name)).Should(Equal(loadedState), name)
		}
		Eventually(stateOf(ctx, namespace, "bad")).Should(Equal(failedState))
		// The interrupted load is repeated immediately or at the first request, depending on when the manager observes the outage.
		Eventually(stateOf(ctx, namespace, "loading")).Should(Or(Equal(loadedState), Equal("available=true Standby/ UpToDate")))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"bad", "changed", "late", "loading", "unchanged"}))
	}, SpecTimeout(specTimeout))

	It("after etcd was killed while models are created, changed and deleted", func(ctx SpecContext) {
		const namespace = "etcd-killed"
		createServingNamespace(ctx, namespace)
		createPredictors(ctx, namespace, [2]string{"changed", "models/a"}, [2]string{"deleted", "models/b"}, [2]string{"broken", "models/c"})
		for _, name := range []string{"changed", "deleted", "broken"} {
			Eventually(stateOf(ctx, namespace, name)).Should(Equal(loadedState), name)
		}
		Expect(etcd.Kill(ctx)).To(Succeed())
		createPredictors(ctx, namespace, [2]string{"late", "models/d"})
		setPath(ctx, namespace, "changed", "models/a2")
		setPath(ctx, namespace, "broken", "models/missing")
		deletePredictor(ctx, namespace, "deleted")
		Expect(etcd.Restart(ctx)).To(Succeed())
		for _, name := range []string{"changed", "late"} {
			Eventually(stateOf(ctx, namespace, name)).Should(Equal(loadedState), name)
		}
		Eventually(stateOf(ctx, namespace, "broken")).Should(Equal(blockedState))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"broken", "changed", "late"}))
	}, SpecTimeout(specTimeout))

	It("after the manager was killed while a model is created, loaded and replaced; models that were deleted in the meantime are removed", func(ctx SpecContext) {
		const namespace = "manager-killed"
		createServingNamespace(ctx, namespace)
		createPredictors(ctx, namespace, [2]string{"model", "models/a"}, [2]string{"deleted", "models/b"})
		manager.Kill(ctx)
		manager.Restart(ctx)
		Eventually(stateOf(ctx, namespace, "model")).Should(Equal(loadedState))
		Eventually(stateOf(ctx, namespace, "deleted")).Should(Equal(loadedState))

		release := loads.blockLoads()
		createPredictors(ctx, namespace, [2]string{"loading", "models/c"})
		setPath(ctx, namespace, "model", "models/a2")
		Eventually(stateOf(ctx, namespace, "loading")).Should(ContainSubstring("Loading/"))
		Eventually(stateOf(ctx, namespace, "model")).Should(Equal("available=true Loaded/Loading InProgress"))
		manager.Kill(ctx)
		deletePredictor(ctx, namespace, "deleted")
		release()
		manager.Restart(ctx)
		Eventually(stateOf(ctx, namespace, "loading")).Should(Equal(loadedState))
		Eventually(stateOf(ctx, namespace, "model")).Should(Equal(loadedState))
		Eventually(listVModels(ctx, namespace)).Should(Equal([]string{"loading", "model"}))
	}, SpecTimeout(specTimeout))

	It("after all processes were killed", func(ctx SpecContext) {
		const namespace = "all-killed"
		createServingNamespace(ctx, namespace)
		createPredictors(ctx, namespace, [2]string{"good", "models/a"}, [2]string{"bad", "models/invalid"})
		Eventually(stateOf(ctx, namespace, "good")).Should(Equal(loadedState))
		Eventually(stateOf(ctx, namespace, "bad")).Should(Equal(failedState))
		manager.Kill(ctx)
		Expect(etcd.Kill(ctx)).To(Succeed())
		stopRoutingLayers(ctx)
		setPath(ctx, namespace, "bad", "models/fixed")
		createPredictors(ctx, namespace, [2]string{"late", "models/c"})
		Expect(etcd.Restart(ctx)).To(Succeed())
		startRoutingLayers(ctx)
		manager.Restart(ctx)
		for _, name := range []string{"good", "bad", "late"} {
			Eventually(stateOf(ctx, namespace, name)).Should(Equal(loadedState), name)
		}
		var p v1alpha1.Predictor
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "bad"}, &p)).To(Succeed())
		Expect(p.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))
})
