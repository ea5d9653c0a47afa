package companion

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// usageReader looks at the models and the runtimes of a namespace.
type usageReader struct {
	cached client.Reader
	served func() capability.Set
	// inferenceServices: those for the mesh count.
	inferenceServices bool
}

// of tells what there is. What pods need stays as long as there are pods, also when the last model is gone: without its account a
// pod that is made anew would be refused.
func (u usageReader) of(ctx context.Context, namespace string) (usage, error) {
	var out usage
	var deployments appsv1.DeploymentList
	err := u.cached.List(ctx, &deployments, client.InNamespace(namespace), client.MatchingLabels(names.Labels(modelmesh.ComponentName)), client.UnsafeDisableDeepCopy)
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
	var predictors v1alpha1.PredictorList
	if err := u.cached.List(ctx, &predictors, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("listing Predictors: %w", err)
	}
	out.used = len(predictors.Items) > 0
	if out.used || !u.inferenceServices || !u.served().Has(capability.InferenceService) {
		return out, nil
	}
	var services v1beta1.InferenceServiceList
	if err := u.cached.List(ctx, &services, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("listing InferenceServices: %w", err)
	}
	for i := range services.Items {
		out.used = out.used || onMesh(&services.Items[i])
	}
	return out, nil
}

// hasPods tells whether a Deployment has pods or is to have some.
func hasPods(d *appsv1.Deployment) bool {
	return d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0
}
