package framework

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// AbsentGateway is the name of a Gateway without a controller. Only specs write the status of its HTTPRoutes.
const AbsentGateway = "absent"

// acceptDelay is the age at which HTTPRoutes are accepted. Specs can write their status earlier; managers report a missing Gateway later.
const acceptDelay = 20 * time.Second

// acceptRoutes accepts HTTPRoutes, like the controller of a Gateway, until the end of the suite. It retries on errors, because the CRD may
// be missing temporarily.
func (e *Env) acceptRoutes() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(capability.HTTPRoute)
			if e.Admin.List(ctx, list) != nil {
				return
			}
			for i := range list.Items {
				if patch := e.acceptPatch(&list.Items[i]); patch != nil {
					_ = e.patch(ctx, &list.Items[i], patch, "status")
				}
			}
		}, 5*time.Second)
	}()
	ginkgo.DeferCleanup(func() { stop(); <-done })
}

// acceptPatch returns the patch that accepts a route; nil if the route is new, has a status or names [AbsentGateway].
func (e *Env) acceptPatch(route *unstructured.Unstructured) map[string]any {
	reported, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	refs, _, _ := unstructured.NestedSlice(route.Object, "spec", "parentRefs")
	if len(reported) > 0 || e.now().Sub(route.GetCreationTimestamp().Time) < acceptDelay {
		return nil
	}
	var parents []any
	for _, ref := range refs {
		if fields, _ := ref.(map[string]any); fields["name"] == AbsentGateway {
			return nil
		}
		parents = append(parents, map[string]any{"parentRef": ref, "controllerName": "example.com/gateway", "conditions": []any{map[string]any{
			"type": "Accepted", "status": string(metav1.ConditionTrue), "reason": "Accepted", "message": "",
			"observedGeneration": route.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}})
	}
	return map[string]any{"status": map[string]any{"parents": parents}}
}
