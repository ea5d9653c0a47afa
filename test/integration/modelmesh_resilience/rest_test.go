package modelmesh_resilience_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

const (
	// quiet is how long a spec checks that nothing is sent; the timers of waiting models are shorter.
	quiet = 10 * time.Second
	// namespaces and models are the counts of the spec in the steady state; the bench has 1,000 models.
	namespaces = 5
	models     = 12
)

// service returns an InferenceService in ModelMesh mode.
func service(namespace, name, path string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService,
		metadata: {namespace: %s, name: %s, annotations: {serving.kserve.io/deploymentMode: ModelMesh}},
		spec: {predictor: {model: {modelFormat: {name: onnx}, storage: {key: localMinIO, path: %s}}}}}`, namespace, name, path)
	Expect(yaml.Unmarshal([]byte(text), &u.Object)).To(Succeed())
	return u
}

// transition returns the active model state and the failure reason of an InferenceService.
func transition(ctx context.Context, u *unstructured.Unstructured) func() (string, error) {
	return func() (string, error) {
		live := u.DeepCopy()
		if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return "", err
		}
		active, _, _ := unstructured.NestedString(live.Object, "status", "modelStatus", "states", "activeModelState")
		reason, _, _ := unstructured.NestedString(live.Object, "status", "modelStatus", "lastFailureInfo", "reason")
		return active + " " + reason, nil
	}
}

var _ = Describe("Models in the steady state", Serial, func() {
	It("cause no request and no call, loaded or failed, and a failed load is reported once [modelmesh-78] [modelmesh-84] [M13] [M21]", func(ctx SpecContext) {
		var names []string
		for i := range namespaces {
			names = append(names, fmt.Sprintf("rest-%d", i))
			createServingNamespace(ctx, names[i])
		}
		bad := service(names[0], "bad-service", "models/missing")
		good := service(names[0], "good-service", "models/good")
		Expect(env.Admin.Create(ctx, bad)).To(Succeed())
		Expect(env.Admin.Create(ctx, good)).To(Succeed())
		for _, namespace := range names {
			for i := range models {
				createPredictors(ctx, namespace, [2]string{fmt.Sprintf("m%d", i), "models/m"})
			}
			createPredictors(ctx, namespace, [2]string{"bad", "models/missing"})
		}
		for _, namespace := range names {
			Eventually(getState(ctx, namespace, "bad")).Should(Equal(failedState))
			Eventually(func(g Gomega) {
				var list v1alpha1.PredictorList
				g.Expect(env.Admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
				for i := range list.Items {
					if list.Items[i].Name != "bad" {
						g.Expect(describe(&list.Items[i])).To(Equal(loadedState), list.Items[i].Name)
					}
				}
			}).Should(Succeed())
		}
		Eventually(transition(ctx, bad)).Should(Equal("FailedToLoad ModelLoadFailed"))
		Eventually(transition(ctx, good)).Should(Equal("Loaded "))
		env.WaitIdle(manager.User, 4*time.Second, time.Minute)
		calls := func() map[string]map[string]int {
			out := map[string]map[string]int{}
			for _, namespace := range names {
				out[namespace] = network.Calls(namespace)
			}
			return out
		}
		before := calls()
		Expect(before[names[1]]["setVModel"]).To(BeNumerically(">=", models+1), "the calls are counted")
		env.ExpectIdle(manager.User, quiet)
		Expect(calls()).To(Equal(before))
	}, SpecTimeout(specTimeout))
})
