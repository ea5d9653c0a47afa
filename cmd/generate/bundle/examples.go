package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// sample is a file of config/samples with a single object.
type sample struct {
	file   string
	object *unstructured.Unstructured
}

// csvSamples are the samples in the CSV, with which the console initializes new objects. For further samples, see controllers/olm.
var csvSamples = []string{
	"aihub_catalog.yaml", "appwrapper_job.yaml", "mlflow.yaml", "mlflowconfig.yaml", "modelmesh_predictor.yaml",
	"modelregistry_generated.yaml", "platform_aihub.yaml", "platform_mlflowoperator.yaml",
}

// examples returns the annotation alm-examples: one object for each owned CRD.
func examples(samples []sample, owned []v1alpha1.CRDDescription) (string, error) {
	var objects []map[string]any
	for _, d := range owned {
		_, group, _ := strings.Cut(d.Name, ".")
		kind := schema.GroupVersionKind{Group: group, Version: d.Version, Kind: d.Kind}
		index := slices.IndexFunc(samples, func(s sample) bool {
			return slices.Contains(csvSamples, s.file) && s.object.GroupVersionKind() == kind
		})
		if index < 0 {
			return "", fmt.Errorf("no sample has the kind %s %s: add one to config/samples", d.Kind, d.Version)
		}
		objects = append(objects, samples[index].object.Object)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(objects); err != nil {
		return "", fmt.Errorf("encoding the examples: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// newSample parses a file, and reports whether it contains a single object other than a Kustomization.
func newSample(file, text string) (sample, bool, error) {
	if strings.Contains(text, "\n---") {
		return sample{}, false, nil
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		return sample{}, false, fmt.Errorf("reading sample %s: %w", file, err)
	}
	return sample{file, object}, object.GetKind() != "" && object.GetKind() != "Kustomization", nil
}
