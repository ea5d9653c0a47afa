// Package kustomization builds kustomizations in the process, as `kubectl kustomize` does, for the generators.
package kustomization

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Manifest renders the kustomization in a folder as one YAML stream, in the order of creation.
func Manifest(folder string) ([]byte, error) {
	resources, err := build(folder, krusty.ReorderOptionLegacy)
	if err != nil {
		return nil, err
	}
	text, err := resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", folder, err)
	}
	return text, nil
}

// Objects returns the objects of the kustomization in a folder, in its order.
func Objects(folder string) ([]*unstructured.Unstructured, error) {
	resources, err := build(folder, krusty.ReorderOptionNone)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, r := range resources.Resources() {
		object := &unstructured.Unstructured{}
		text, err := r.AsYAML()
		if err == nil {
			err = yaml.Unmarshal(text, &object.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.CurId(), err)
		}
		out = append(out, object)
	}
	return out, nil
}

func build(folder string, order krusty.ReorderOption) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = order
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	return resources, nil
}
