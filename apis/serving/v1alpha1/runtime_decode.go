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
	var o object
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &o); err != nil {
		return fmt.Errorf("decoding a runtime: %w", err)
	}
	*r = ServingRuntime{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta}
	if len(o.Spec) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(o.Spec, &r.Spec) != nil {
		r.Spec, r.Malformed = decodeByField(o.Spec)
	}
	return nil
}

// UnmarshalJSON is like that of a [ServingRuntime].
func (r *ClusterServingRuntime) UnmarshalJSON(data []byte) error {
	return (*ServingRuntime)(r).UnmarshalJSON(data)
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
