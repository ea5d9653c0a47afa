package servers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func object(kind schema.GroupVersionKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// [D26] If a list fails, the grant is kept and the error names the kind.
func TestDeleteSharedGrantErrors(t *testing.T) {
	listErr := errors.New("connection refused")
	for name, failingKind := range map[string]schema.GroupVersionKind{"": {}, "listing HTTPRoute objects": capability.HTTPRoute, "listing ReferenceGrant objects": capability.ReferenceGrant} {
		t.Run(name, func(t *testing.T) {
			shared := object(capability.ReferenceGrant, "ns", SharedGrantName, map[string]any{})
			shared.SetLabels(map[string]string{"app.kubernetes.io/created-by": "model-registry-operator"})
			backend := map[string]any{"name": "demo", "namespace": "ns"}
			route := object(capability.HTTPRoute, "routes", "demo", map[string]any{"rules": []any{map[string]any{"backendRefs": []any{backend}}}})
			own := object(capability.ReferenceGrant, "ns", "own", map[string]any{"from": []any{map[string]any{"kind": "HTTPRoute", "namespace": "routes"}}, "to": []any{map[string]any{"kind": "Service", "name": "demo"}}})
			scheme := runtime.NewScheme()
			for _, kind := range []schema.GroupVersionKind{capability.HTTPRoute, capability.ReferenceGrant} {
				scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
				scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
			}
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(shared, route, own).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if list.GetObjectKind().GroupVersionKind().Kind == failingKind.Kind+"List" {
						return listErr
					}
					return c.List(ctx, list, opts...)
				},
			})
			applier := apply.New(apply.Options{Client: c, Live: c, FieldOwner: "test", Component: "modelregistry"})
			done, err := DeleteSharedGrant(t.Context(), c, applier, "", "ns")
			found := c.Get(t.Context(), client.ObjectKeyFromObject(shared), shared) == nil
			if fails := name != ""; done == fails || found != fails || fails && (!errors.Is(err, listErr) || !strings.Contains(err.Error(), name)) {
				t.Errorf("done %t, grant exists %t, error %v", done, found, err)
			}
		})
	}
}
