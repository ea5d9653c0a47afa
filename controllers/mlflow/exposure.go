package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// publication is what the status says of one kind that leads to the server or looks at it, while it cannot be written.
type exposureError struct{ condition, reason, what string }

var exposureErrors = map[string]exposureError{
	capability.HTTPRoute.Kind:        {ConditionRoute, ReasonHTTPRouteFailed, "HttpRoute"},
	capability.ConsoleLink.Kind:      {ConditionConsoleLink, ReasonConsoleLinkFailed, "ConsoleLink"},
	disruptionBudgetKind.Kind:        {ConditionBudget, ReasonBudgetFailed, "PodDisruptionBudget"},
	capability.ServiceMonitor.Kind:   {ConditionMonitor, ReasonServiceMonitorFailed, "ServiceMonitor"},
	capability.BackendTLSPolicy.Kind: {ConditionRoute, ReasonHTTPRouteFailed, "BackendTLSPolicy"},
	configMapKind.Kind:               {ConditionRoute, ReasonHTTPRouteFailed, "the ConfigMap of the BackendTLSPolicy"},
	ingressKind.Kind:                 {ConditionRoute, ReasonHTTPRouteFailed, "Ingress"},
}

// expose writes what leads to the server, whatever the server and its database do, and says of each kind in a condition of
// its own that it could not be written. The error for the Service, without which the server is unreachable, comes apart.
func (r *mlflowReconciler) applyExposure(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposed apply.Desired, aside *nonFatalErrors) (service error) {
	reported := map[string]bool{}
	for _, object := range exposed {
		err := r.applier.Apply(ctx, m, apply.Desired{object})
		aside.add("publishing the server", err)
		if err == nil || apply.IsTerminating(err) {
			continue
		}
		condition, ok := reportExposureError(m, err)
		if !ok {
			service = err
		}
		reported[condition] = true
	}
	for _, c := range []string{ConditionConsoleLink, ConditionMonitor, ConditionBudget} {
		if !reported[c] {
			conditions.Remove(&m.Status.Conditions, c)
		}
	}
	aside.add("checking the route", r.checkRoutes(ctx, m, in, exposed, reported[ConditionRoute]))
	return service
}

// reportPublication shows what could not be published, and returns the condition; false when the error is about something else.
func reportExposureError(m *mlflowv1.MLflow, err error) (condition string, ok bool) {
	failed, ok := errors.AsType[*apply.Error](err)
	if !ok {
		return "", false
	}
	p, ok := exposureErrors[failed.Kind]
	if !ok {
		return "", false
	}
	if p.condition == ConditionRoute {
		clearURL(m, failed.Name)
	}
	setCondition(m, p.condition, metav1.ConditionFalse, p.reason, fmt.Sprintf("Failed to reconcile %s: %v", p.what, failed.Err))
	return p.condition, true
}

// checkRoutes takes an external URL back while the gateway refuses what leads there, and reports why, unless the condition is taken.
func (r *mlflowReconciler) checkRoutes(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposed apply.Desired, reported bool) error {
	report, err := routestatus.Read(ctx, r.fullObjects, in.Gateway(), exposed, r.clock.Now())
	for _, p := range report.Problems {
		if p.Refused {
			clearURL(m, p.Name)
		}
	}
	switch {
	case reported:
	case err != nil:
		setCondition(m, ConditionRoute, metav1.ConditionUnknown, ReasonRouteUnknown, err.Error())
	case in.LacksGateway() && in.ExternalURL != "": // a URL is the wish to be reached by a Gateway; without one nothing is amiss
		setCondition(m, ConditionRoute, metav1.ConditionFalse, ReasonGatewayNotNamed, "no Gateway is named, so there is no HTTPRoute: set MLFLOW_GATEWAY_NAMESPACE "+
			"(mlflow.gatewayNamespace), or publish the server by an Ingress (--exposure=ingress)")
	default:
		report.Set(&m.Status.Conditions, m.Generation)
	}
	return cmp.Or(err, report.Await())
}

// withdraw takes the external URL back to which an object should lead that does not.
func clearURL(m *mlflowv1.MLflow, object string) {
	if strings.TrimSuffix(object, resources.BackendTLSSuffix) == resources.Artifacts(m).Name {
		m.Status.ArtifactsURL = ""
		return
	}
	m.Status.URL = ""
}
