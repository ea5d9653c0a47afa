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

// workloads returns the CRD of Workloads with these maxima by version; 0 means no maximum, a negative one an unserved version.
func workloads(bounds ...int64) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "workloads.kueue.x-k8s.io"}}
	for _, bound := range bounds {
		podSets := apiextensionsv1.JSONSchemaProps{Type: "array"}
		if bound != 0 {
			podSets.MaxItems = new(max(bound, -bound))
		}
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Served: bound >= 0, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"podSets": podSets}}},
			}},
		})
	}
	return d
}

// always returns a constant maximum.
func always(limit int) func(context.Context) int { return func(context.Context) int { return limit } }

// [UP-F5] The CRD of the installed Kueue defines the maximum number of pod sets.
func TestPodSetsOfKueue(t *testing.T) {
	for name, c := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		want       int
	}{
		"no Kueue": {nil, 8}, "Kueue 0.15": {workloads(8), 8}, "Kueue 0.19": {workloads(18, 18), 18}, "two bounds": {workloads(18, 10), 10},
		"no bound": {workloads(0), 8}, "an older version that is not served": {workloads(18, -8), 18}, "a lower one than any Kueue has": {workloads(1), 8},
		"without a schema": {&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "workloads.kueue.x-k8s.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Served: true}}}}, 8},
	} {
		listed := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if c.definition != nil {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.definition)
				if err != nil {
					return err
				}
				list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{{Object: object}}
			}
			return nil
		}}
		if got := podSetLimitFunc(fake.NewClientBuilder().WithInterceptorFuncs(listed).Build())(t.Context()); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	failing := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}}
	if got := podSetLimitFunc(fake.NewClientBuilder().WithInterceptorFuncs(failing).Build())(t.Context()); got != 8 {
		t.Errorf("%d when it cannot be read", got)
	}
}

func TestPodSetLimitFollowsKueue(t *testing.T) {
	for limit, rejected := range map[int]bool{8: true, 9: false} {
		var components []string
		for range 9 {
			components = append(components, component(pod))
		}
		request := &creation{wrapper: wrapperOf(t, components...), namespace: home, user: alice, mapper: newCluster().mapper,
			podSetLimit: always(limit)}
		if errs := request.validate(t.Context()); (len(errs) > 0) != rejected {
			t.Errorf("nine pod sets with a limit of %d: %v", limit, errs)
		}
	}
}
