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

// maxPodSets is the number of pod sets that a Workload may have in every version of Kueue. Newer versions accept more.
const maxPodSets = 8

// podSetLimitFunc returns a function that reads the maximum number of pod sets from the CRD of Workloads, or returns [maxPodSets] if it
// cannot read the CRD. It reads the CRD on every call, because few AppWrappers have more than maxPodSets.
func podSetLimitFunc(apiReader client.Reader) func(context.Context) int {
	return func(ctx context.Context) int {
		// The manager may list all CRDs, but not get this one.
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := apiReader.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: "workloads.kueue.x-k8s.io"}); err != nil {
			log.FromContext(ctx).Info("Cannot read the maximum number of pod sets from the CRD of Workloads", "assumed", maxPodSets, "cause", err.Error())
			return maxPodSets
		}
		var definitions apiextensionsv1.CustomResourceDefinitionList
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &definitions); err != nil || len(definitions.Items) == 0 {
			return maxPodSets
		}
		return maxPodSetsIn(&definitions.Items[0])
	}
}

// maxPodSetsIn returns the lowest maximum of the served versions, since Kueue may use any of them, but at least maxPodSets.
func maxPodSetsIn(definition *apiextensionsv1.CustomResourceDefinition) int {
	lowest := 0
	for _, version := range definition.Spec.Versions {
		if !version.Served || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		podSets := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["podSets"]
		if bound := podSets.MaxItems; bound != nil && (lowest == 0 || int(*bound) < lowest) {
			lowest = int(*bound)
		}
	}
	return max(lowest, maxPodSets)
}
