package modelmesh

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// In the scope of one namespace the Service belongs to the Deployment of the manager, which is found by the name of its pod: the
// shipped component has to tell it, since no Deployment of ours has the name that the original's had.
func TestOneNamespaceKnowsItsDeployment(t *testing.T) {
	text, err := os.ReadFile("../../config/components/modelmesh-one-namespace/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		Patches []struct {
			Target struct{ Kind string }
			Patch  string
		}
	}
	if err := yaml.Unmarshal(text, &component); err != nil {
		t.Fatal(err)
	}
	var env []corev1.EnvVar
	for _, p := range component.Patches {
		if p.Target.Kind != "Deployment" {
			continue
		}
		var steps []struct {
			Path  string
			Value json.RawMessage
		}
		if err := yaml.Unmarshal([]byte(p.Patch), &steps); err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			var v corev1.EnvVar
			if err := json.Unmarshal(step.Value, &v); err != nil || step.Path != "/spec/template/spec/containers/0/env/-" {
				t.Fatalf("%s: %v", step.Path, err)
			}
			env = append(env, v)
		}
	}
	if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == "NAMESPACE_SCOPE" && v.Value == "true" }) {
		t.Errorf("no scope in %v", env)
	}
	if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool {
		return v.Name == "POD_NAME" && v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.name"
	}) {
		t.Errorf("no name of the pod in %v", env)
	}
}
