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

// Registration is what the mesh of a namespace gets to know of a model.
type Registration struct {
	// VModel is the id under which clients address the model, Owner the source that has the name.
	VModel string `json:"vModelId"`
	Owner  string `json:"owner"`
	// Model is the id of the concrete model; another spec has another one.
	Model string `json:"targetModelId"`
	// Type decides which runtimes may load it, Path is where it lies in its storage, Key the document for puller and runtime.
	Type string `json:"type"`
	Path string `json:"path"`
	Key  string `json:"key"`
}

// Register returns how a Predictor or an InferenceService would be registered with the mesh; nil and the reason where it would not.
func Register(object *unstructured.Unstructured) (*Registration, string, error) {
	m, reason, err := modelOf(object)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	if problem := m.ValidationMessage(); problem != "" {
		return nil, "", fmt.Errorf("%s %s: %s", object.GetKind(), m.Name, problem)
	}
	key, err := m.Key()
	if err != nil {
		return nil, "", err
	}
	return &Registration{VModel: m.Name, Owner: m.Source, Model: m.ID(), Type: m.Label(), Path: m.Path(), Key: key}, "", nil
}

// modelOf reads the model out of a resource; reason says why there is none in it.
func modelOf(object *unstructured.Unstructured) (m modelmesh.Model, reason string, err error) {
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
	m, ours, err := modelmesh.FromInferenceService(s)
	if !ours {
		reason = fmt.Sprintf("KServe serves it: annotation %s is not %s", v1beta1.AnnotationDeploymentMode, v1beta1.DeploymentModeModelMesh)
	}
	return m, reason, err
}
