package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// object is a runtime before its spec is understood.
//
// +kubebuilder:object:generate=false
type object struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`
	Spec            json.RawMessage `json:"spec,omitempty"`
}

// UnmarshalJSON keeps what it understands of the spec and notes the rest. An error for one object would make the list of all
// runtimes of the cluster unreadable.
func (r *ServingRuntime) UnmarshalJSON(data []byte) error {
	o, spec, malformed, err := decodeRuntime(data)
	if err != nil {
		return err
	}
	*r = ServingRuntime{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Spec: spec, Malformed: malformed}
	return nil
}

// UnmarshalJSON is like that of a [ServingRuntime].
func (r *ClusterServingRuntime) UnmarshalJSON(data []byte) error {
	o, spec, malformed, err := decodeRuntime(data)
	if err != nil {
		return err
	}
	*r = ClusterServingRuntime{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Spec: spec, Malformed: malformed}
	return nil
}

func decodeRuntime(data []byte) (o object, spec ServingRuntimeSpec, malformed string, err error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &o); err != nil {
		return o, spec, "", fmt.Errorf("decoding a runtime: %w", err)
	}
	if len(o.Spec) == 0 {
		return o, spec, "", nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.Spec, &spec); err == nil {
		return o, spec, "", nil
	}
	spec, malformed = decodeByField(o.Spec)
	return o, spec, malformed, nil
}

// decodeByField decodes each field of a spec for itself. The text names the first one, by the alphabet, that could not be.
func decodeByField(data []byte) (spec ServingRuntimeSpec, malformed string) {
	fields := map[string]json.RawMessage{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return spec, fmt.Sprintf("spec cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		single, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil {
			before := spec
			if err = kjson.UnmarshalCaseSensitivePreserveInts(single, &spec); err != nil {
				spec = before
			}
		}
		if err != nil && malformed == "" {
			malformed = fmt.Sprintf("spec.%s cannot be read: %v", name, err)
		}
	}
	return spec, malformed
}
