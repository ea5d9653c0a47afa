package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// packageName is the name of the operator in catalogs.
	packageName = "odh-platform-operator"
	// folder is the path of the bundle below the root.
	folder = "bundle"
)

// render encodes a bundle; the keys are paths below the root.
func render(out output) (map[string]string, error) {
	documents := map[string]any{
		"manifests/" + packageName + ".clusterserviceversion.yaml": out.csv.Object,
	}
	for _, object := range out.objects {
		path := "manifests/" + fileName(object)
		if _, found := documents[path]; found {
			return nil, fmt.Errorf("two objects have the file name %s", path)
		}
		documents[path] = object.Object
	}
	files := map[string]string{}
	for path, document := range documents {
		content, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", path, err)
		}
		files[folder+"/"+path] = string(content)
	}
	return files, nil
}

// fileName returns the file name of an object in a bundle, by the convention of OLM.
func fileName(object *unstructured.Unstructured) string {
	if object.GetKind() == "CustomResourceDefinition" {
		plural, group, _ := strings.Cut(object.GetName(), ".")
		return group + "_" + plural + ".yaml"
	}
	kind := object.GroupVersionKind()
	parts := []string{object.GetName(), kind.Group, kind.Version, strings.ToLower(kind.Kind)}
	if kind.Group == "" {
		parts = []string{object.GetName(), kind.Version, strings.ToLower(kind.Kind)}
	}
	return strings.Join(parts, "_") + ".yaml"
}

// write replaces the manifests of the bundle. Annotations, Dockerfile and scorecard configuration are maintained manually.
func write(root string, files map[string]string) error {
	if err := os.RemoveAll(filepath.Join(root, folder, "manifests")); err != nil {
		return fmt.Errorf("removing the previous manifests: %w", err)
	}
	for path, content := range files {
		path = filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("creating a folder of the bundle: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	return nil
}
