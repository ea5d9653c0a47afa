package openshift

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// usage is what there is in a namespace.
type usage struct{ used, runtimes bool }

// usage tells what there is. What pods need stays as long as there are pods, also when the last model is gone: without its account a
// new pod would be refused.
func (a *common) usage(ctx context.Context, namespace string) (usage, error) {
	var out usage
	var deployments appsv1.DeploymentList
	err := a.cached.List(ctx, &deployments, client.InNamespace(namespace), client.MatchingLabels(names.Labels(modelmesh.ComponentName)), client.UnsafeDisableDeepCopy)
	if err != nil {
		return out, fmt.Errorf("listing the Deployments of runtimes: %w", err)
	}
	for i := range deployments.Items {
		out.runtimes = true
		out.used = out.used || hasPods(&deployments.Items[i])
	}
	if out.used {
		return out, nil
	}
	models, err := a.Models(ctx, namespace)
	out.used = len(models) > 0
	return out, err
}

// hasPods tells whether a Deployment has pods or is to have some.
func hasPods(d *appsv1.Deployment) bool {
	return d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0
}
