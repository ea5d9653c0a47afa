package mlflow

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// publication is what the status says of one kind that leads to the server or looks at it, while it cannot be written.
type publication struct{ condition, reason, format string }

var publications = map[string]publication{
	capability.HTTPRoute.Kind:        {ConditionRoute, ReasonHTTPRouteFailed, "Failed to reconcile HttpRoute: %v"},
	capability.ConsoleLink.Kind:      {ConditionConsoleLink, ReasonConsoleLinkFailed, "Failed to reconcile ConsoleLink: %v"},
	budgetKind.Kind:                  {ConditionBudget, ReasonBudgetFailed, "Failed to reconcile PodDisruptionBudget: %v"},
	capability.ServiceMonitor.Kind:   {ConditionMonitor, ReasonServiceMonitorFailed, "Failed to reconcile ServiceMonitor: %v"},
	capability.BackendTLSPolicy.Kind: {ConditionRoute, ReasonHTTPRouteFailed, "Failed to reconcile BackendTLSPolicy: %v"},
	configMapKind.Kind:               {ConditionRoute, ReasonHTTPRouteFailed, "Failed to reconcile the ConfigMap of the BackendTLSPolicy: %v"},
	ingressKind.Kind:                 {ConditionRoute, ReasonHTTPRouteFailed, "Failed to reconcile Ingress: %v"},
}

// expose writes what leads to the server, whatever the server and its database do, and says of each kind in a condition of
// its own that it could not be written. The error for the Service, without which the server is unreachable, comes apart.
func (r *objects) expose(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposed apply.Desired, aside *troubles) (service error) {
	for _, c := range []string{ConditionConsoleLink, ConditionMonitor, ConditionBudget} {
		conditions.Remove(&m.Status.Conditions, c)
	}
	aside.add("checking the route", r.checkRoutes(ctx, m, in))
	for _, object := range exposed {
		err := r.applier.Apply(ctx, m, apply.Desired{object})
		if err == nil {
			continue
		}
		aside.add("publishing the server", err)
		if !apply.Vanishing(err) && !reportPublication(m, err) {
			service = err
		}
	}
	return service
}

// reportPublication shows what could not be published; false when the error is about something else.
func reportPublication(m *mlflowv1.MLflow, err error) bool {
	failed, ok := errors.AsType[*apply.Error](err)
	if !ok {
		return false
	}
	p, ok := publications[failed.Kind]
	if !ok {
		return false
	}
	if p.condition == ConditionRoute {
		withdraw(m, failed.Name)
	}
	setCondition(m, p.condition, metav1.ConditionFalse, p.reason, fmt.Sprintf(p.format, failed.Err))
	return true
}
