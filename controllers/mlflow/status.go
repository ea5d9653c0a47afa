package mlflow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Condition types of MLflow. Pipelines, dashboards and `kubectl wait` read them.
const (
	// ConditionAvailable is True only while the server serves requests.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while the current generation is being rolled out, or waits for a migration or the MLflowOperator.
	ConditionProgressing = "Progressing"
	// ConditionStorage exists, and is False, only while the PersistentVolumeClaim cannot be updated, such as to match spec.storage.
	ConditionStorage = "StorageInSync"
	// ConditionCredentials exists, and is True, only while a URI in the spec contains a password.
	ConditionCredentials = "CredentialsInSpec"
	// ConditionRoute is also False while no Gateway is configured or a route object cannot be written, and Unknown while it cannot be read.
	ConditionRoute = routestatus.Condition
	// ConditionConsoleLink exists, and is False, only while the ConsoleLink cannot be written.
	ConditionConsoleLink = "ConsoleLinkReady"
	// ConditionMonitor exists, and is False, only while the ServiceMonitor cannot be written.
	ConditionMonitor = "ServiceMonitorReady"
	// ConditionBudget exists, and is False, only while the PodDisruptionBudget cannot be written.
	ConditionBudget = "DisruptionBudgetReady"
	// ConditionCronJobs exists, and is False, only while an object of garbage collection or trace archival cannot be written.
	ConditionCronJobs = "ScheduledJobsReady"
	// ConditionCertificate exists, and is False, only while the serving certificate cannot be issued or renewed, or expires soon.
	ConditionCertificate = servingcert.Condition
	// ConditionPruned exists, and is False, only while an object that is no longer desired cannot be deleted.
	ConditionPruned = "LeftoversRemoved"
)

// Reasons of the conditions.
const (
	ReasonDeploymentReady       = "DeploymentReady"
	ReasonDeploymentNotReady    = "DeploymentNotReady"
	ReasonDeploymentProgressing = "DeploymentProgressing"
	ReasonReconcileComplete     = "ReconcileComplete"
	ReasonCABundleConfigMap     = "CABundleConfigMapError"
	ReasonPlatformCABundle      = "PlatformCABundleError"
	ReasonRenderFailed          = "RenderFailed"
	ReasonForbidden             = "Forbidden"
	ReasonApplyFailed           = "ApplyFailed"
	ReasonConsoleLinkFailed     = "ConsoleLinkFailed"
	ReasonHTTPRouteFailed       = "HttpRouteFailed"
	ReasonMetadataStore         = "MetadataStoreValidationFailed"
	ReasonServiceMonitorFailed  = "ServiceMonitorFailed"
	ReasonBudgetFailed          = "DisruptionBudgetFailed"
	ReasonScheduledJobsFailed   = "ScheduledJobsFailed"
	ReasonCertificateFailed     = "CertificateFailed"
	ReasonRemovalFailed         = "RemovalFailed"
	ReasonRouteUnknown          = "RouteUnknown"
	ReasonRolloutUnknown        = "RolloutUnknown"
	ReasonExpansionRefused      = "ExpansionRefused"
	ReasonClaimDiffers          = "ClaimDiffers"
	ReasonPasswordInURI         = "PasswordInURI"
	ReasonGatewayNotNamed       = "GatewayNotNamed"
)

const (
	messageReady     = "MLflow deployment is ready and available"
	messageBothReady = "MLflow and MLflow artifacts deployments are ready and available"
	messageComplete  = "MLflow reconciliation completed successfully"
)

func setCondition(m *mlflowv1.MLflow, conditionType string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(&m.Status.Conditions, conditionType, status, reason, message, m.Generation)
}

// fail sets Available and Progressing to False.
func fail(m *mlflowv1.MLflow, reason, message string) {
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, reason, message)
	setCondition(m, ConditionProgressing, metav1.ConditionFalse, reason, message)
}

// failApply reports that an object of the server could not be written.
func failApply(m *mlflowv1.MLflow, err error) {
	text := fmt.Sprintf("Failed to apply resources: %v", err)
	if failed, ok := errors.AsType[*apply.Error](err); ok {
		text = fmt.Sprintf("Failed to apply resources: apply %s/%s: %v", failed.Kind, failed.Name, failed.Err)
	}
	fail(m, ReasonApplyFailed, text)
}

// reportNonFatal sets the condition to False with the error, or removes it if there is none. It returns the error.
func reportNonFatal(m *mlflowv1.MLflow, condition, reason, prefix string, err error) error {
	if err == nil {
		conditions.Remove(&m.Status.Conditions, condition)
		return nil
	}
	setCondition(m, condition, metav1.ConditionFalse, reason, fmt.Sprintf("%s: %v", prefix, err))
	return err
}

// reportReady reports that the Deployments of all servers are ready. A pinned server may not have the artifacts server of the spec yet.
func reportReady(m *mlflowv1.MLflow) {
	text := messageReady
	if _, pinned := pinnedCondition(m); resources.HasArtifactsServer(m) && !pinned {
		text = messageBothReady
	}
	setCondition(m, ConditionAvailable, metav1.ConditionTrue, ReasonDeploymentReady, text)
	reportProgress(m, metav1.ConditionFalse, ReasonReconcileComplete, messageComplete)
}

// reportRollout reports the rollout of an unready server. cause is why pods do not start, or "". An available server stays
// available while any of its pods serves, even one of an earlier template.
func reportRollout(m *mlflowv1.MLflow, s resources.Server, state conditions.RolloutState, cause string) {
	subject := "MLflow deployment"
	if s.Name != resources.NameOf(m) {
		subject = "MLflow artifacts deployment"
	}
	text := subject + " scaled to zero replicas"
	if state.Desired > 0 {
		text = fmt.Sprintf("%s not ready: %d/%d replicas ready", subject, state.ReadyReplicas, state.Desired)
		if state.ReadyReplicas >= state.Desired { // pods of an earlier template
			text = subject + " not ready: the new replicas are not ready, and the previous replicas still serve"
		}
	}
	if cause != "" {
		text += ": " + cause
	}
	if state.Serving && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		setCondition(m, ConditionAvailable, metav1.ConditionTrue, ReasonDeploymentReady, "MLflow is available; "+text)
	} else {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonDeploymentNotReady, text)
	}
	reportProgress(m, metav1.ConditionTrue, ReasonDeploymentProgressing, text)
}

// reportProgress sets Progressing. While the Migration condition pins the servers, Progressing has its reason and message.
func reportProgress(m *mlflowv1.MLflow, progressing metav1.ConditionStatus, reason, message string) {
	if c, pinned := pinnedCondition(m); pinned {
		progressing, reason, message = metav1.ConditionTrue, c.Reason, c.Message
		if c.Status == metav1.ConditionFalse {
			progressing = metav1.ConditionFalse
		}
	}
	setCondition(m, ConditionProgressing, progressing, reason, message)
}

// reportClaim sets ConditionStorage to False with the message about a difference of the claim, or removes it if the message is empty.
func reportClaim(m *mlflowv1.MLflow, difference string) {
	if difference == "" {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, difference)
}

// reportCredentials sets ConditionCredentials if URIs in the spec contain passwords, or removes it.
func reportCredentials(m *mlflowv1.MLflow) {
	var found, fixes []string
	for _, s := range resources.Stores(m) {
		if resources.HoldsPassword(s.URI) {
			found, fixes = append(found, "spec."+s.Field), append(fixes, "spec."+s.Field+"From")
		}
	}
	if len(found) == 0 {
		conditions.Remove(&m.Status.Conditions, ConditionCredentials)
		return
	}
	setCondition(m, ConditionCredentials, metav1.ConditionTrue, ReasonPasswordInURI, fmt.Sprintf(
		"%s contains a password that is visible to all users who can read the MLflow, its Deployment or its pods; "+
			"move the URI to a Secret, name the Secret in %s, and change the password",
		strings.Join(found, " and "), strings.Join(fixes, " and ")))
}

// ConditionNamespaceRBAC is True while the RoleBindings of all labelled namespaces are written. It exists only while namespace
// RBAC is enabled.
const ConditionNamespaceRBAC = "NamespaceRBACReady"

// Feedback provides the condition of the controller of namespace RBAC. The MLflow controller sets it, because a status has one writer.
type Feedback interface {
	// State returns status, reason and message of the condition, or an empty status before the first result.
	State() (status metav1.ConditionStatus, reason, message string)
	// Source returns a source that calls the handler when State may have changed.
	Source(handler.EventHandler) source.Source
}

// reportFeedback returns a phase that sets the condition of f, or removes it if f is nil.
func reportFeedback(f Feedback) func(context.Context, *mlflowv1.MLflow) error {
	return func(_ context.Context, m *mlflowv1.MLflow) error {
		if f == nil {
			conditions.Remove(&m.Status.Conditions, ConditionNamespaceRBAC)
			return nil
		}
		if status, reason, message := f.State(); status != "" {
			setCondition(m, ConditionNamespaceRBAC, status, reason, message)
		}
		return nil
	}
}
