package main

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// The releases in config/component_metadata.yaml, which platforms display, are those that the operator supports.
func TestComponentMetadataNamesSupportedReleases(t *testing.T) {
	text, err := os.ReadFile("../../config/component_metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Releases []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
			RepoURL string `json:"repoUrl"`
		} `json:"releases"`
	}
	if err := yaml.UnmarshalStrict(text, &metadata); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"MLflow": "v" + mlflowVersion, "Kubeflow Model Registry": modelRegistryVersion,
		"Open Data Hub Model Registry Operator": modelRegistryVersion, "ModelMesh Serving": "v0.12.0", "CodeFlare operator": "v1.16.0",
	}
	for _, release := range metadata.Releases {
		if want[release.Name] != release.Version || release.RepoURL == "" {
			t.Errorf("release %+v, want version %q and a repository", release, want[release.Name])
		}
		delete(want, release.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing releases: %v", want)
	}
}
