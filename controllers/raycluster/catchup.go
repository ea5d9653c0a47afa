package raycluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// inForce is the mode as the pods are made: what is switched off stays in force while the pod templates need it.
func (in Inputs) inForce(c ray.Cluster) ray.Mode {
	mode, has := in.Mode, c.Injected()
	if !mode.Active() {
		return mode
	}
	mode.Auth = in.guard(c)
	if !mode.MTLS && has.MTLS {
		mode.MTLS, mode.Issuer = true, ray.IssuerOperator
		if has.PodIssued {
			mode.Issuer = ray.IssuerPod
		}
	}
	return mode
}

// outdated tells whether the pod templates have what is switched off. What is missing in them is not asked for: that would
// change pods that run.
func outdated(c ray.Cluster, in Inputs) bool {
	has := c.Injected()
	return !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar() || !in.Mode.MTLS && has.MTLS
}

// catchUp has admission take from the pod templates what is switched off. It sends a patch that says nothing: the webhook
// does the work, as with the next change of a user. Once for each generation, for the webhook may not be there.
func (r *clusters) catchUp(ctx context.Context, cluster *unstructured.Unstructured, c ray.Cluster, in Inputs) error {
	known := r.memory.of(cluster)
	if !in.Mode.Active() || !outdated(c, in) || known.asked == cluster.GetGeneration() {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cluster.GetResourceVersion()}})
	if err != nil {
		return fmt.Errorf("encoding an empty patch: %w", err)
	}
	known.asked = cluster.GetGeneration()
	return r.patch(ctx, cluster, "pod templates", patch)
}
