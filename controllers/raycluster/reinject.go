package raycluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// outdated tells whether the pod templates have what is switched off.
func outdated(c raycluster.Cluster, in Inputs) bool {
	has := c.Injected()
	return !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar() || !in.Mode.MTLS && has.MTLS
}

// reinject has admission bring the pod templates of a suspended cluster up to date, which has no pods that could differ from
// them. An empty patch triggers the webhook, which does the work; once for each generation, for the webhook may not be there.
func (r *clusters) reinject(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in Inputs) error {
	known := r.memory.of(cluster)
	if !in.Mode.Active() || !c.Suspended() || !outdated(c, in) || known.asked == cluster.GetGeneration() {
		return nil
	}
	known.asked = cluster.GetGeneration()
	return r.patch(ctx, cluster, "pod templates", func(*metav1.PartialObjectMetadata) {})
}
