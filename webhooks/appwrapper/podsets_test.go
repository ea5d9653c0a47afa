package appwrapper

import (
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// workloadCRD returns the CRD of Workloads with a maximum for each version. 0 means no maximum, a negative number an unserved version.
func workloadCRD(maxima ...int64) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "workloads.kueue.x-k8s.io"}}
	for _, maximum := range maxima {
		podSets := apiextensionsv1.JSONSchemaProps{Type: "array"}
		if maximum != 0 {
			podSets.MaxItems = new(max(maximum, -maximum))
		}
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Served: maximum >= 0, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"podSets": podSets}}},
			}},
		})
	}
	return definition
}

// fixedLimit returns a constant maximum.
func fixedLimit(limit int) func(context.Context) int {
	return func(context.Context) int { return limit }
}

// [UP-F5] The CRD of Workloads defines the maximum number of pod sets, if it is above maxPodSets.
func TestPodSetLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		want       int
	}{
		"no Kueue": {nil, 8}, "Kueue 0.15": {workloadCRD(8), 8}, "Kueue 0.19": {workloadCRD(18, 18), 18}, "two maxima": {workloadCRD(18, 10), 10},
		"no maximum": {workloadCRD(0), 8}, "unserved version with a lower maximum": {workloadCRD(18, -8), 18}, "maximum below maxPodSets": {workloadCRD(1), 8},
		"no schema": {&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "workloads.kueue.x-k8s.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Served: true}}}}, 8},
	} {
		listCRD := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if tc.definition != nil {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.definition)
				if err != nil {
					return err
				}
				list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{{Object: object}}
			}
			return nil
		}}
		if got := podSetLimitFunc(fake.NewClientBuilder().WithInterceptorFuncs(listCRD).Build())(t.Context()); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	failList := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("unavailable")
	}}
	if got := podSetLimitFunc(fake.NewClientBuilder().WithInterceptorFuncs(failList).Build())(t.Context()); got != 8 {
		t.Errorf("unreadable CRD: got %d, want 8", got)
	}
}

func TestCreateEnforcesPodSetLimit(t *testing.T) {
	for limit, rejected := range map[int]bool{8: true, 9: false} {
		var components []string
		for range 9 {
			components = append(components, component(pod))
		}
		validator := &creationValidator{wrapper: newAppWrapper(t, components...), namespace: testNamespace, user: alice, mapper: newCluster().mapper,
			podSetLimit: fixedLimit(limit)}
		if errs := validator.validate(t.Context()); (len(errs) > 0) != rejected {
			t.Errorf("nine pod sets, limit %d: got errors %v, want rejected %t", limit, errs, rejected)
		}
	}
}
