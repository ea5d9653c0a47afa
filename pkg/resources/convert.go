package resources

import (
	"encoding/json"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Apply converts an API value of a user to the apply configuration T of the same type, such as corev1.Affinity to
// AffinityApplyConfiguration. Unset fields remain unset, so that the API server sets their defaults. It returns an error if the types do
// not match.
func Apply[T any](from any) (*T, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", from, err)
	}
	into := new(T)
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("decoding %T as %T: %w", from, into, err)
	}
	return into, nil
}

// ApplyEach is Apply for every element of a list. It returns nil for an empty list.
func ApplyEach[T, F any](from []F) ([]T, error) {
	var into []T
	for i := range from {
		one, err := Apply[T](&from[i])
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		into = append(into, *one)
	}
	return into, nil
}

// MustApply is Apply for types generated from one Kubernetes type. It panics if they do not match.
func MustApply[T any](from any) *T {
	into, err := Apply[T](from)
	utilruntime.Must(err)
	return into
}

// MustApplyEach is MustApply for every element of a list. It returns nil for an empty list.
func MustApplyEach[T, F any](from []F) []T {
	into, err := ApplyEach[T](from)
	utilruntime.Must(err)
	return into
}
