package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// object is a runtime whose spec is not decoded yet.
//
// +kubebuilder:object:generate=false
type object struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      `json:"metadata,omitempty"`
	Spec            json.RawMessage `json:"spec,omitempty"`
}

// UnmarshalJSON decodes the valid fields of the spec, and records the first invalid field in Malformed and unknown fields in Ignored: an
// error would fail the list of all runtimes.
func (r *ServingRuntime) UnmarshalJSON(data []byte) error {
	var o object
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &o); err != nil {
		return fmt.Errorf("decoding a runtime: %w", err)
	}
	*r = ServingRuntime{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta}
	if len(o.Spec) == 0 {
		return nil
	}
	unknown, err := kjson.UnmarshalStrict(o.Spec, &r.Spec, kjson.DisallowUnknownFields)
	if err != nil {
		r.Spec, r.Malformed = decodeByField(o.Spec)
	}
	for _, field := range unknown {
		if e := kjson.FieldError(nil); errors.As(field, &e) && len(r.Spec.Ignored) < maxIgnored {
			r.Spec.Ignored = append(r.Spec.Ignored, e.FieldPath())
		}
	}
	return nil
}

// maxIgnored is the maximum number of entries in Ignored.
const maxIgnored = 10

// UnmarshalJSON does the same as UnmarshalJSON of [ServingRuntime].
func (r *ClusterServingRuntime) UnmarshalJSON(data []byte) error {
	return (*ServingRuntime)(r).UnmarshalJSON(data)
}

// decodeByField decodes each field of a spec separately. malformed describes the first field in alphabetical order that is invalid.
func decodeByField(data []byte) (spec ServingRuntimeSpec, malformed string) {
	fields := map[string]json.RawMessage{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &fields); err != nil {
		return spec, fmt.Sprintf("spec cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		single, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil {
			original := spec
			if err = kjson.UnmarshalCaseSensitivePreserveInts(single, &spec); err != nil {
				spec = original
			}
		}
		if err != nil && malformed == "" {
			malformed = fmt.Sprintf("spec.%s cannot be read: %v", name, err)
		}
	}
	return spec, malformed
}
