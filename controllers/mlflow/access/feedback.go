package access

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// Reasons of the condition NamespaceRBACReady of MLflow.
const (
	ReasonBound          = "RoleBindingsReady"
	ReasonAuthAPIMissing = "AuthAPIMissing"
	ReasonAuthMissing    = "AuthMissing"
	ReasonAuthInvalid    = "AuthInvalid"
	ReasonFailed         = "RoleBindingsFailed"
)

// report gathers what went wrong in which namespace, for the condition that the controller of MLflow writes.
type report struct {
	auth   func() auth
	events chan event.GenericEvent

	mu       sync.Mutex
	failures map[string]string
}

func newReport() *report {
	return &report{
		auth:     func() auth { return auth{} },
		events:   make(chan event.GenericEvent, 1),
		failures: map[string]string{},
	}
}

// note takes in how the reconciliation of a namespace ended.
func (r *report) note(namespace string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	moved := r.failures[namespace] != text
	if text == "" {
		delete(r.failures, namespace)
	} else {
		r.failures[namespace] = text
	}
	r.mu.Unlock()
	if moved {
		r.wake()
	}
}

// begin starts again, with what is known of Auth.
func (r *report) begin(auth func() auth) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth, r.failures = auth, map[string]string{}
}

// wake lets the controller of MLflow look. It never blocks.
func (r *report) wake() {
	select {
	case r.events <- event.GenericEvent{Object: &mlflowv1.MLflow{}}:
	default: // one that has not been taken up yet covers this change too
	}
}

// State reports how access stands: status, reason and message of a condition; an empty status when nothing is known yet.
func (r *report) State() (status metav1.ConditionStatus, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch a := r.auth(); a.state {
	case authUnknown:
		return "", "", ""
	case authNotServed:
		return metav1.ConditionFalse, ReasonAuthAPIMissing, "No group has access through namespaces, because the cluster does not serve " +
			auths.GroupResource().String() + ": install the operator of the platform, or switch namespace RBAC off with ENABLE_NAMESPACE_RBAC=false"
	case authMissing:
		return metav1.ConditionFalse, ReasonAuthMissing, "No group has access through namespaces, because there is no Auth " + authName +
			": the operator of the platform creates it"
	case authInvalid:
		return metav1.ConditionFalse, ReasonAuthInvalid, "Access through namespaces stays as it was: " + a.problem
	}
	if len(r.failures) > 0 {
		first := slices.Sorted(maps.Keys(r.failures))[0]
		return metav1.ConditionFalse, ReasonFailed,
			fmt.Sprintf("RoleBindings failed in %d namespace(s), the first is %s: %s", len(r.failures), first, r.failures[first])
	}
	return metav1.ConditionTrue, ReasonBound, "The groups of Auth " + authName + " have access in every namespace labelled " + WorkspaceLabel
}

// Source wakes the handler when State may have changed.
func (r *report) Source(h handler.EventHandler) source.Source { return source.Channel(r.events, h) }
