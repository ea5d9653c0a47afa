package modelmesh

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// In a single-namespace installation the operator's Deployment owns the Service of the runtime pods. The operator derives the name of
// the Deployment from POD_NAME, which the manifests must set.
func TestSingleNamespaceInstallationSetsPodName(t *testing.T) {
	manager := &appsv1.Deployment{}
	readManifest(t, "../../config/manager/deployment.yaml", manager)
	env := slices.Clone(manager.Spec.Template.Spec.Containers[0].Env)
	var component struct {
		Patches []struct {
			Target struct{ Kind string }
			Patch  string
		}
	}
	readManifest(t, "../../config/components/modelmesh-one-namespace/kustomization.yaml", &component)
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
				t.Fatalf("patch of %s, error %v: want a variable appended", step.Path, err)
			}
			env = append(env, v)
		}
	}
	if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == "NAMESPACE_SCOPE" && v.Value == "true" }) {
		t.Errorf("NAMESPACE_SCOPE is not true in %v", env)
	}
	if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool {
		return v.Name == "POD_NAME" && v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.name"
	}) {
		t.Errorf("POD_NAME is not set from metadata.name in %v", env)
	}
}

func readManifest(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
