package reconciler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// StatusObject is a custom resource with a status.
type StatusObject interface {
	client.Object
	// ObserveGeneration sets status.observedGeneration to metadata.generation.
	ObserveGeneration()
}

// Object is a StatusObject with conditions of type metav1.Condition.
type Object interface {
	StatusObject
	// ConditionsRef returns the conditions in the status.
	ConditionsRef() *[]metav1.Condition
}

// Conditions gives access to the conditions of a kind. Kinds of other projects may have condition types with more fields, which must be
// preserved.
type Conditions[T StatusObject] struct {
	// List returns the conditions as metav1.Condition. The caller must not modify them.
	List func(T) []metav1.Condition
	// Set adds or updates a condition, and keeps its times if nothing else changes.
	Set func(T, metav1.Condition)
	// Remove deletes the condition of a type if it is present.
	Remove func(T, string)
}

func standardConditions[T Object]() Conditions[T] {
	return Conditions[T]{
		List: func(obj T) []metav1.Condition { return *obj.ConditionsRef() },
		Set: func(obj T, c metav1.Condition) {
			conditions.Set(obj.ConditionsRef(), c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration)
		},
		Remove: func(obj T, conditionType string) { conditions.Remove(obj.ConditionsRef(), conditionType) },
	}
}
