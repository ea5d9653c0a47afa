package models

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Registration holds the attributes of a model in its registration with the mesh.
type Registration struct {
	// VModel is the ID for inference requests. Owner is the source of the model.
	VModel string `json:"vModelId"`
	Owner  string `json:"owner"`
	// Model is the ID of the concrete model. It contains a hash of the spec.
	Model string `json:"targetModelId"`
	// Type selects the runtimes, Path is the path in the storage, Key the JSON document for puller and runtime.
	Type string `json:"type"`
	Path string `json:"path"`
	Key  string `json:"key"`
}

// NewRegistration returns the registration of a Predictor or an InferenceService, or nil and the reason why ModelMesh does not serve it.
func NewRegistration(object *unstructured.Unstructured) (*Registration, string, error) {
	m, reason, err := parseModel(object)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	if problem := m.ValidationMessage(); problem != "" {
		return nil, "", fmt.Errorf("%s %s: %s", object.GetKind(), m.Name, problem)
	}
	return &Registration{VModel: m.Name, Owner: m.Source, Model: m.ID(), Type: m.Label(), Path: m.Path(), Key: m.Key()}, "", nil
}

// parseModel returns the model of a resource, or the reason why ModelMesh does not serve it.
func parseModel(object *unstructured.Unstructured) (m modelmesh.Model, reason string, err error) {
	if object.GetKind() != capability.InferenceService.Kind {
		p, err := resources.Decode[v1alpha1.Predictor](object)
		if err != nil {
			return m, "", err
		}
		return modelmesh.FromPredictor(p), "", nil
	}
	s, err := resources.Decode[v1beta1.InferenceService](object)
	if err != nil {
		return m, "", err
	}
	m, isModelMesh, err := modelmesh.FromInferenceService(s)
	if !isModelMesh {
		reason = fmt.Sprintf("KServe serves it: annotation %s is not %s", v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh)
	}
	return m, reason, err
}
