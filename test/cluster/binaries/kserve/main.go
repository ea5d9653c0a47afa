// Command kserve decodes objects into the types of KServe and encodes them again, for comparison with the types of this repository. It
// reads a JSON array of objects from standard input and writes an array of results in the same order to standard output.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/kserve/kserve/pkg/apis/serving/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
)

// result is the result for one object.
type result struct {
	// Object is the object as KServe's type serializes it.
	Object any `json:"object,omitempty"`
	// Error is the reason why KServe cannot decode the object.
	Error string `json:"error,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return fmt.Errorf("reading objects: %w", err)
	}
	results := make([]result, len(objects))
	for i, raw := range objects {
		if object, err := read(raw); err != nil {
			results[i].Error = err.Error()
		} else {
			results[i].Object = object
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// read decodes an object by its kind. It returns an error for unknown fields.
func read(raw []byte) (any, error) {
	var head struct{ Kind string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	object, known := map[string]any{
		"ServingRuntime": &v1alpha1.ServingRuntime{}, "ServingRuntimeList": &v1alpha1.ServingRuntimeList{},
		"ClusterServingRuntime": &v1alpha1.ClusterServingRuntime{}, "InferenceService": &v1beta1.InferenceService{},
	}[head.Kind]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", head.Kind)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return nil, err
	}
	return object, nil
}
