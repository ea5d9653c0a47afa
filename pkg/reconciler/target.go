package reconciler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// StatusObject is a custom resource with a status.
type StatusObject interface {
	client.Object
	// ObserveGeneration notes metadata.generation in the status.
	ObserveGeneration()
}

// Object is a Target with conditions of the standard type.
type Object interface {
	StatusObject
	// ConditionsRef returns the conditions in the status.
	ConditionsRef() *[]metav1.Condition
}

// Conditions gives access to the conditions of a kind. Kinds that another program defined may have conditions with more
// fields than the standard ones, which stay out of sight here and must survive.
type Conditions[T StatusObject] struct {
	// List returns the conditions as standard ones. The caller does not change them.
	List func(T) []metav1.Condition
	// Set adds or updates one, and keeps its times when nothing else of it changes.
	Set func(T, metav1.Condition)
	// Remove drops one; one that is not there is fine.
	Remove func(T, string)
}

func standard[T Object]() Conditions[T] {
	return Conditions[T]{
		List: func(obj T) []metav1.Condition { return *obj.ConditionsRef() },
		Set: func(obj T, c metav1.Condition) {
			conditions.Set(obj.ConditionsRef(), c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration)
		},
		Remove: func(obj T, conditionType string) { conditions.Remove(obj.ConditionsRef(), conditionType) },
	}
}
