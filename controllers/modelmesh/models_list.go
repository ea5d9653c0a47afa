package modelmesh

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// models returns what runtimes of a namespace are needed for: its Predictors and the InferenceServices that are for ModelMesh. One
// that cannot be understood is passed over: it needs no runtime, and it must not hide the others.
func (s *server) models(ctx context.Context, namespace string) ([]mm.Model, error) {
	var out []mm.Model
	predictors := &v1alpha1.PredictorList{}
	if err := s.cached.List(ctx, predictors, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Predictors: %w", err)
	}
	for i := range predictors.Items {
		out = append(out, mm.FromPredictor(&predictors.Items[i]))
	}
	if s.config.IgnoreInferenceServices || !s.served().Has(capability.InferenceService) {
		return out, nil
	}
	services := &v1beta1.InferenceServiceList{}
	if err := s.cached.List(ctx, services, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing InferenceServices: %w", err)
	}
	for i := range services.Items {
		model, ours, err := mm.FromInferenceService(&services.Items[i])
		if ours && err == nil {
			out = append(out, model)
		}
	}
	return out, nil
}

// needed tells whether a model of the namespace can be served by a runtime with the given labels.
func needed(models []mm.Model, labels []string) bool {
	for _, m := range models {
		if mm.Supports(labels, m.Label()) {
			return true
		}
	}
	return false
}
