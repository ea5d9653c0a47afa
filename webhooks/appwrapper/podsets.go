package appwrapper

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// maxPodSets is how many pod sets every Kueue takes in one Workload; newer ones take more.
const maxPodSets = 8

// podSetsOf returns a function that reads from the definition of Workloads how many pod sets one may have: [maxPodSets] where there is none,
// or it does not tell. Few AppWrappers have that many, so it is read for each.
func maxPodSetsFunc(live client.Reader) func(context.Context) int {
	return func(ctx context.Context) int {
		// Listed, because the manager may list definitions and not get them.
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := live.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: "workloads.kueue.x-k8s.io"}); err != nil {
			log.FromContext(ctx).Info("Cannot read how many pod sets Kueue takes", "assumed", maxPodSets, "cause", err.Error())
			return maxPodSets
		}
		var definitions apiextensionsv1.CustomResourceDefinitionList
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &definitions); err != nil || len(definitions.Items) == 0 {
			return maxPodSets
		}
		return maxPodSetsIn(&definitions.Items[0])
	}
}

// podSetsIn returns the lowest bound of the versions that are served, since any of them may be asked for.
func maxPodSetsIn(definition *apiextensionsv1.CustomResourceDefinition) int {
	most := 0
	for _, version := range definition.Spec.Versions {
		if !version.Served || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		podSets := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["podSets"]
		if bound := podSets.MaxItems; bound != nil && (most == 0 || int(*bound) < most) {
			most = int(*bound)
		}
	}
	return max(most, maxPodSets)
}
