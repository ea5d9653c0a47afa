package peers

import (
	"context"
	"io"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// StartKubeRay runs the operator of KubeRay with its shipped role, without webhooks.
func StartKubeRay(ctx context.Context, instance *cluster.Instance, progress io.Writer) (*cluster.Process, error) {
	return start(ctx, instance, peer{name: cluster.KubeRayOperator, args: kubeRayArgs}, progress)
}

func kubeRayArgs(l *launch) ([]string, error) {
	return []string{
		"--metrics-addr=" + l.metrics, "--health-probe-bind-address=" + l.health, "--enable-leader-election=false",
		"--feature-gates=RayClusterStatusConditions=true,RayCronJob=true",
	}, nil
}
