package resources

import (
	"encoding/json"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Apply turns an API value that a user wrote into the apply configuration T of
// the same shape, for instance a corev1.Affinity into an
// AffinityApplyConfiguration. Only what the user set is carried over, so that
// defaults stay with the API server. It fails when the shapes do not agree.
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

// ApplyEach is Apply for every element of a list. It gives nil for an empty list.
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

// MustApply is Apply where both types are generated from one type of Kubernetes. That they do not agree is a mistake in the
// program, about which it panics.
func MustApply[T any](from any) *T {
	into, err := Apply[T](from)
	utilruntime.Must(err)
	return into
}

// MustApplyEach is MustApply for every element of a list. It gives nil for an empty list.
func MustApplyEach[T, F any](from []F) []T {
	into, err := ApplyEach[T](from)
	utilruntime.Must(err)
	return into
}
