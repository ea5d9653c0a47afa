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

// mutateImages simulates a mutating webhook that replaces the image of each apply while enabled is true. The managed fields do not change.
func (a *testApplier) mutateImages(enabled *bool) {
	a.Helper()
	inner, ok := a.Client.(client.WithWatch)
	if !ok {
		a.Fatal("the client cannot watch")
	}
	a.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if !*enabled {
				return c.Apply(ctx, config, opts...)
			}
			data, err := json.Marshal(config)
			a.must(err)
			changed := &unstructured.Unstructured{}
			a.must(changed.UnmarshalJSON(data))
			containers, _, _ := unstructured.NestedSlice(changed.Object, "spec", "template", "spec", "containers")
			first, _ := containers[0].(map[string]any)
			first["image"] = "mirror"
			a.must(unstructured.SetNestedSlice(changed.Object, containers, "spec", "template", "spec", "containers"))
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(changed), opts...); err != nil {
				return err
			}
			response, err := changed.MarshalJSON()
			a.must(err)
			return json.Unmarshal(response, config)
		},
	})
}

// raiseGeneration raises the generation of the Deployment, with another image if one is given. The managed fields do not change.
func (a *testApplier) raiseGeneration(image string) {
	a.Helper()
	d := a.deployment()
	managed := d.ManagedFields
	if image != "" {
		d.Spec.Template.Spec.Containers[0].Image = image
	}
	d.Generation++
	a.must(a.server.Update(a.Context(), d, client.FieldOwner("webhook")))
	d.ManagedFields = managed
	a.must(a.server.Update(a.Context(), d, client.FieldOwner("webhook")))
}

func (a *testApplier) deployment() *appsv1.Deployment {
	a.Helper()
	d := &appsv1.Deployment{}
	a.must(a.server.Get(a.Context(), types.NamespacedName{Namespace: "ns", Name: "server"}, d))
	return d
}

// A mutation is detected by the generation and reverted, unless the apply itself is mutated.
func TestApplyStopsAfterMutation(t *testing.T) {
	a, enabled := newTestApplier(t), false
	a.mutateImages(&enabled)
	a.expectApply(oneApply, newDeployment("ours"))
	a.expectApply(noRequests, newDeployment("ours"))
	a.raiseGeneration("mirror")
	a.expectApply(readAndApply, newDeployment("ours"))
	if got := a.deployment().Spec.Template.Spec.Containers[0].Image; got != "ours" {
		t.Errorf("got image %s, want ours", got)
	}
	a.expectApply(noRequests, newDeployment("ours"))

	enabled = true
	a.raiseGeneration("mirror")
	message := ""
	ctx := log.IntoContext(a.Context(), funcr.New(func(_, line string) { message += line }, funcr.Options{}))
	a.must(a.Apply(ctx, a.owner, Desired{newDeployment("ours")})) // the response differs
	if !strings.Contains(message, "such as an admission webhook") || !strings.Contains(message, "server") {
		t.Errorf("got log %q, want one that names the Deployment and a webhook", message)
	}
	a.expectApply(noRequests, newDeployment("ours"))
	a.raiseGeneration("")
	a.expectApply(oneRead, newDeployment("ours")) // another apply would have the same response
	a.expectApply(noRequests, newDeployment("ours"))

	enabled = false
	a.raiseGeneration("something else")
	a.expectApply(readAndApply, newDeployment("ours"))
	a.expectApply(noRequests, newDeployment("ours"))
	if got := a.deployment().Spec.Template.Spec.Containers[0].Image; got != "ours" {
		t.Errorf("got image %s after the webhook was disabled, want ours", got)
	}
}
