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
	// idlePeriod is how long the manager must send no request to count as idle. The timers of waiting models are shorter.
	idlePeriod         = 10 * time.Second
	namespaceCount     = 5
	modelsPerNamespace = 12
)

// newInferenceService returns an InferenceService in ModelMesh mode.
func newInferenceService(namespace, name, path string) *unstructured.Unstructured {
	GinkgoHelper()
	service := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService,
		metadata: {namespace: %s, name: %s, annotations: {serving.kserve.io/deploymentMode: ModelMesh}},
		spec: {predictor: {model: {modelFormat: {name: onnx}, storage: {key: localMinIO, path: %s}}}}}`, namespace, name, path)
	Expect(yaml.Unmarshal([]byte(text), &service.Object)).To(Succeed())
	return service
}

// getModelState returns a function that returns the active model state and the failure reason of an InferenceService.
func getModelState(ctx context.Context, service *unstructured.Unstructured) func() (string, error) {
	return func() (string, error) {
		live := service.DeepCopy()
		if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(service), live); err != nil {
			return "", err
		}
		active, _, _ := unstructured.NestedString(live.Object, "status", "modelStatus", "states", "activeModelState")
		reason, _, _ := unstructured.NestedString(live.Object, "status", "modelStatus", "lastFailureInfo", "reason")
		return active + " " + reason, nil
	}
}

var _ = Describe("Models in the steady state", Serial, func() {
	It("cause no requests and no calls whether they are loaded or failed [modelmesh-78] [modelmesh-84] [M13] [M21]", func(ctx SpecContext) {
		var namespaces []string
		for i := range namespaceCount {
			namespaces = append(namespaces, fmt.Sprintf("steady-%d", i))
			createServingNamespace(ctx, namespaces[i])
		}
		failed := newInferenceService(namespaces[0], "bad-service", "models/missing")
		loaded := newInferenceService(namespaces[0], "good-service", "models/good")
		Expect(env.Admin.Create(ctx, failed)).To(Succeed())
		Expect(env.Admin.Create(ctx, loaded)).To(Succeed())
		for _, namespace := range namespaces {
			for i := range modelsPerNamespace {
				createPredictors(ctx, namespace, [2]string{fmt.Sprintf("m%d", i), "models/m"})
			}
			createPredictors(ctx, namespace, [2]string{"bad", "models/missing"})
		}
		for _, namespace := range namespaces {
			Eventually(stateOf(ctx, namespace, "bad")).Should(Equal(failedState))
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
		Eventually(getModelState(ctx, failed)).Should(Equal("FailedToLoad ModelLoadFailed"))
		Eventually(getModelState(ctx, loaded)).Should(Equal("Loaded "))
		env.WaitIdle(manager.User, 4*time.Second, time.Minute)
		calls := func() map[string]map[string]int {
			out := map[string]map[string]int{}
			for _, namespace := range namespaces {
				out[namespace] = network.Calls(namespace)
			}
			return out
		}
		before := calls()
		Expect(before[namespaces[1]]["setVModel"]).To(BeNumerically(">=", modelsPerNamespace+1), "the fake counts the calls")
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(calls()).To(Equal(before))
	}, SpecTimeout(specTimeout))
})
