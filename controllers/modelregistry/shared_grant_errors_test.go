package modelregistry

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// A grant of which it is not certain that no one needs it stays, and the error says what could not be read.
func TestSharedGrantStaysInDoubt(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		broken func(o any) bool
		want   string
	}{
		"registries": {func(o any) bool { _, ok := o.(*v1beta1.ModelRegistryList); return ok }, "listing model registries"},
		"grants": {func(o any) bool {
			head, ok := o.(*metav1.PartialObjectMetadata)
			return ok && head.Kind == capability.ReferenceGrant.Kind
		}, "reading metadata of ReferenceGrant ns/" + resources.SharedGrantName},
		"the catalog's HTTPRoute": {func(o any) bool {
			route, ok := o.(client.Object)
			return ok && route.GetObjectKind().GroupVersionKind() == capability.HTTPRoute
		}, "reading HTTPRoute routes/model-catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			m := stored("demo", registrytest.Proxied)
			own := labelled(sharedGrant(), "ns", resources.GrantName(m), nil)
			own.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind(v1beta1.Kind))})
			w := newBench(t, everything, sharedGrant(), own, m.DeepCopy())
			w.settings.Gateway.Domain = "gateway.example.com"
			failing := interceptor.NewClient(w.server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if test.broken(o) {
						return boom
					}
					return c.Get(ctx, key, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if test.broken(list) {
						return boom
					}
					return c.List(ctx, list, opts...)
				},
			})
			w.cached, w.live = failing, failing
			at := place{capability.ReferenceGrant.GroupKind(), types.NamespacedName{Namespace: "ns", Name: resources.SharedGrantName}}
			head := metadataOf(capability.ReferenceGrant)
			head.Namespace, head.Name = "ns", resources.SharedGrantName
			found := map[place]*metav1.PartialObjectMetadata{at: head}
			err := w.removeSharedGrant(t.Context(), m, found, w.effective(m).inputs(w.served()))
			if !errors.Is(err, boom) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("ended with %v", err)
			}
			if found[at] == nil || !w.get(wholeObject(capability.ReferenceGrant), "ns", resources.SharedGrantName) {
				t.Error("it is gone or forgotten")
			}
		})
	}
}
