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
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// exposureError is the condition that reports a failed write of a kind.
type exposureError struct{ condition, reason, object string }

var exposureErrors = map[string]exposureError{
	capability.HTTPRoute.Kind:        {ConditionRoute, ReasonHTTPRouteFailed, "HttpRoute"},
	capability.ConsoleLink.Kind:      {ConditionConsoleLink, ReasonConsoleLinkFailed, "ConsoleLink"},
	servers.DisruptionBudget.Kind:    {ConditionBudget, ReasonBudgetFailed, "PodDisruptionBudget"},
	capability.ServiceMonitor.Kind:   {ConditionMonitor, ReasonServiceMonitorFailed, "ServiceMonitor"},
	capability.BackendTLSPolicy.Kind: {ConditionRoute, ReasonHTTPRouteFailed, "BackendTLSPolicy"},
	servers.ConfigMap.Kind:           {ConditionRoute, ReasonHTTPRouteFailed, "the ConfigMap of the BackendTLSPolicy"},
	servers.Ingress.Kind:             {ConditionRoute, ReasonHTTPRouteFailed, "Ingress"},
}

// applyExposure applies Plan.Exposure, regardless of the state of the server and its database. It reports a failure in the condition of the
// kind. It returns the error of a Service, which has no such condition and without which the server is unreachable.
func (r *mlflowReconciler) applyExposure(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposure apply.Desired, nonFatal *nonFatalErrors) (serviceErr error) {
	m.Status.URL, m.Status.ArtifactsURL = resources.ExternalURL(m, in), resources.ArtifactsURL(m, in)
	reported := map[string]bool{}
	for _, object := range exposure {
		err := r.Applier.Apply(ctx, m, apply.Desired{object})
		nonFatal.add("applying the exposure", err)
		if err == nil || apply.IsTerminating(err) {
			continue
		}
		condition, ok := reportExposureError(m, err)
		if !ok {
			serviceErr = err
		}
		reported[condition] = true
	}
	for _, c := range []string{ConditionConsoleLink, ConditionMonitor, ConditionBudget} {
		if !reported[c] {
			conditions.Remove(&m.Status.Conditions, c)
		}
	}
	nonFatal.add("checking the route", r.checkRoutes(ctx, m, in, exposure, reported[ConditionRoute]))
	return serviceErr
}

// reportExposureError sets the condition of the kind that could not be written and returns its type. ok is false for a kind
// without a condition.
func reportExposureError(m *mlflowv1.MLflow, err error) (condition string, ok bool) {
	failed, ok := errors.AsType[*apply.Error](err)
	if !ok {
		return "", false
	}
	report, ok := exposureErrors[failed.Kind]
	if !ok {
		return "", false
	}
	if report.condition == ConditionRoute {
		clearURL(m, failed.Name)
	}
	setCondition(m, report.condition, metav1.ConditionFalse, report.reason, fmt.Sprintf("Failed to reconcile %s: %v", report.object, failed.Err))
	return report.condition, true
}

// checkRoutes clears the external URL while the Gateway rejects its HTTPRoute or BackendTLSPolicy, or another Ingress has its host. It sets
// ConditionRoute unless the condition is already reported.
func (r *mlflowReconciler) checkRoutes(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, exposure apply.Desired, reported bool) error {
	report, err := routestatus.Read(ctx, r.FullObjects, in.Gateway(), exposure, r.Clock.Now())
	for _, p := range report.Problems {
		if p.Rejected {
			clearURL(m, p.Name)
		}
	}
	switch {
	case reported:
	case err != nil:
		setCondition(m, ConditionRoute, metav1.ConditionUnknown, ReasonRouteUnknown, err.Error())
	case in.LacksGateway() && in.ExternalURL != "": // without a URL no route is requested
		setCondition(m, ConditionRoute, metav1.ConditionFalse, ReasonGatewayNotNamed, "no Gateway is configured, so there is no HTTPRoute: set MLFLOW_GATEWAY_NAMESPACE "+
			"(mlflow.gatewayNamespace), or publish the server by an Ingress (--exposure=ingress)")
	default:
		report.Set(&m.Status.Conditions, m.Generation)
	}
	return cmp.Or(err, report.Wait())
}

// clearURL clears the external URL that depends on the named object.
func clearURL(m *mlflowv1.MLflow, object string) {
	if strings.TrimSuffix(object, servers.BackendTLSSuffix) == resources.Artifacts(m).Name {
		m.Status.ArtifactsURL = ""
		return
	}
	m.Status.URL = ""
}
