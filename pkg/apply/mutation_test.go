package apply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// mutateImages makes a mutating webhook replace the image of each apply while enabled is true. The managed fields do not change.
func (b *testApplier) mutateImages(enabled *bool) {
	b.Helper()
	inner, ok := b.Client.(client.WithWatch)
	if !ok {
		b.Fatal("the client cannot watch")
	}
	b.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if !*enabled {
				return c.Apply(ctx, config, opts...)
			}
			data, err := json.Marshal(config)
			b.must(err)
			changed := &unstructured.Unstructured{}
			b.must(changed.UnmarshalJSON(data))
			containers, _, _ := unstructured.NestedSlice(changed.Object, "spec", "template", "spec", "containers")
			first, _ := containers[0].(map[string]any)
			first["image"] = "mirror"
			b.must(unstructured.SetNestedSlice(changed.Object, containers, "spec", "template", "spec", "containers"))
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(changed), opts...); err != nil {
				return err
			}
			response, err := changed.MarshalJSON()
			b.must(err)
			return json.Unmarshal(response, config)
		},
	})
}

// raiseGeneration raises the generation of the Deployment, with another image if one is given. The managed fields do not change.
func (b *testApplier) raiseGeneration(image string) {
	b.Helper()
	d := b.deployment()
	managed := d.ManagedFields
	if image != "" {
		d.Spec.Template.Spec.Containers[0].Image = image
	}
	d.Generation++
	b.must(b.server.Update(b.Context(), d, client.FieldOwner("webhook")))
	d.ManagedFields = managed
	b.must(b.server.Update(b.Context(), d, client.FieldOwner("webhook")))
}

func (b *testApplier) deployment() *appsv1.Deployment {
	b.Helper()
	d := &appsv1.Deployment{}
	b.must(b.server.Get(b.Context(), types.NamespacedName{Namespace: "ns", Name: "server"}, d))
	return d
}

// A mutation is detected by the generation and reverted, unless the apply itself is mutated.
func TestApplyStopsAfterMutation(t *testing.T) {
	b, enabled := newTestApplier(t), false
	b.mutateImages(&enabled)
	b.expectApply(oneApply, newDeployment("ours"))
	b.expectApply(noRequests, newDeployment("ours"))
	b.raiseGeneration("mirror")
	b.expectApply(readAndApply, newDeployment("ours"))
	if got := b.deployment().Spec.Template.Spec.Containers[0].Image; got != "ours" {
		t.Errorf("got image %s, want ours", got)
	}
	b.expectApply(noRequests, newDeployment("ours"))

	enabled = true
	b.raiseGeneration("mirror")
	message := ""
	ctx := log.IntoContext(b.Context(), funcr.New(func(_, line string) { message += line }, funcr.Options{}))
	b.must(b.Apply(ctx, b.owner, Desired{newDeployment("ours")})) // the response differs
	if !strings.Contains(message, "such as an admission webhook") || !strings.Contains(message, "server") {
		t.Errorf("got log %q, want one that names the Deployment and a webhook", message)
	}
	b.expectApply(noRequests, newDeployment("ours"))
	b.raiseGeneration("")
	b.expectApply(oneRead, newDeployment("ours")) // another apply would have the same response
	b.expectApply(noRequests, newDeployment("ours"))

	enabled = false
	b.raiseGeneration("something else")
	b.expectApply(readAndApply, newDeployment("ours"))
	b.expectApply(noRequests, newDeployment("ours"))
	if got := b.deployment().Spec.Template.Spec.Containers[0].Image; got != "ours" {
		t.Errorf("got image %s after the webhook was disabled, want ours", got)
	}
}
