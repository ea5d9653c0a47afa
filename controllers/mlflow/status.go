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
	// ConditionAvailable says that the server of the current generation answers.
	ConditionAvailable = "Available"
	// ConditionProgressing says that the operator or Kubernetes is still at work on the current generation.
	ConditionProgressing = "Progressing"
	// ConditionStorage exists only while the live claim differs from spec.storage in a way that cannot be mended.
	ConditionStorage = "StorageInSync"
	// ConditionCredentials exists, and is True, only while the spec shows a password.
	ConditionCredentials = "CredentialsInSpec"
	// ConditionRoute exists, and is not True, also while no Gateway is named, or what publishes the server cannot be written.
	ConditionRoute = routestatus.Condition
	// ConditionConsoleLink exists, and is False, only while the ConsoleLink cannot be written.
	ConditionConsoleLink = "ConsoleLinkReady"
	// ConditionMonitor exists, and is False, only while the ServiceMonitor cannot be written.
	ConditionMonitor = "ServiceMonitorReady"
	// ConditionBudget exists, and is False, only while the PodDisruptionBudget cannot be written.
	ConditionBudget = "DisruptionBudgetReady"
	// ConditionChores exists, and is False, only while garbage collection or trace archival cannot be scheduled as the spec says.
	ConditionCronJobs = "ScheduledJobsReady"
	// ConditionCertificate exists, and is False, only while the serving certificate cannot be issued or renewed, or runs out.
	ConditionCertificate = servingcert.Condition
	// reference.Condition exists, and is False, only while a Secret or ConfigMap does not exist that the spec names.
	// ConditionPruned exists, and is False, only while an object that is no longer wanted cannot be removed.
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

func setCondition(m *mlflowv1.MLflow, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(&m.Status.Conditions, kind, status, reason, message, m.Generation)
}

// fail reports a problem that prevents both availability and progress.
func fail(m *mlflowv1.MLflow, reason, message string) {
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, reason, message)
	setCondition(m, ConditionProgressing, metav1.ConditionFalse, reason, message)
}

// failApply reports that something which the server needs could not be written.
func failApply(m *mlflowv1.MLflow, err error) {
	text := fmt.Sprintf("Failed to apply resources: %v", err)
	if failed, ok := errors.AsType[*apply.Error](err); ok {
		text = fmt.Sprintf("Failed to apply resources: apply %s/%s: %v", failed.Kind, failed.Name, failed.Err)
	}
	fail(m, ReasonApplyFailed, text)
}

// reportAside sets a condition that exists only while there is an error, and passes that on.
func reportNonFatal(m *mlflowv1.MLflow, condition, reason, what string, err error) error {
	if err == nil {
		conditions.Remove(&m.Status.Conditions, condition)
		return nil
	}
	setCondition(m, condition, metav1.ConditionFalse, reason, fmt.Sprintf("%s: %v", what, err))
	return err
}

// reportReady reports that every server is rolled out.
func reportReady(m *mlflowv1.MLflow) {
	text := messageReady
	if resources.HasArtifactsServer(m) {
		text = messageBothReady
	}
	setCondition(m, ConditionAvailable, metav1.ConditionTrue, ReasonDeploymentReady, text)
	reportProgress(m, metav1.ConditionFalse, ReasonReconcileComplete, messageComplete)
}

// reportRollout reports how far a server is that is not ready. cause explains why pods do not start; empty when nothing is known. Once
// available, a server stays so while a pod of it serves, of the present spec or of the one before.
func reportRollout(m *mlflowv1.MLflow, s resources.Server, r conditions.RolloutState, cause string) {
	what := "MLflow deployment"
	if s.Name != resources.NameOf(m) {
		what = "MLflow artifacts deployment"
	}
	text := what + " scaled to zero replicas"
	if r.Desired > 0 {
		text = fmt.Sprintf("%s not ready: %d/%d replicas ready", what, r.ReadyReplicas, r.Desired)
		if r.ReadyReplicas >= r.Desired { // of the template of before
			text = what + " not ready: the new replicas are not ready, those of before still serve"
		}
	}
	if cause != "" {
		text += ": " + cause
	}
	if r.Serving && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		setCondition(m, ConditionAvailable, metav1.ConditionTrue, ReasonDeploymentReady, "MLflow is available; "+text)
	} else {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonDeploymentNotReady, text)
	}
	reportProgress(m, metav1.ConditionTrue, ReasonDeploymentProgressing, text)
}

// reportProgress reports how far the servers are, unless they are kept as they are: then what they wait for, a refused downgrade for good.
func reportProgress(m *mlflowv1.MLflow, progressing metav1.ConditionStatus, reason, message string) {
	if c, is := pinnedCondition(m); is {
		progressing, reason, message = metav1.ConditionTrue, c.Reason, c.Message
		if c.Status == metav1.ConditionFalse {
			progressing = metav1.ConditionFalse
		}
	}
	setCondition(m, ConditionProgressing, progressing, reason, message)
}

// reportClaim shows what of spec.storage the live claim cannot follow, and hides the condition when it follows.
func reportClaim(m *mlflowv1.MLflow, difference string) {
	if difference == "" {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, difference)
}

// reportCredentials warns of passwords in the spec, which every reader of the MLflow, its Deployment or its pods can see,
// and takes the warning back when they are gone. Nothing else depends on it.
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

// ConditionNamespaceRBAC says whether the groups of the platform have access in the namespaces that ask for it. It exists
// only while namespace RBAC is on.
const ConditionNamespaceRBAC = "NamespaceRBACReady"

// Feedback is what another controller reports about an MLflow. Ours writes it, because a status has one writer.
type Feedback interface {
	// State returns status, reason and message of the condition; an empty status when nothing is known yet.
	State() (status metav1.ConditionStatus, reason, message string)
	// Source wakes the handler when State may have changed.
	Source(handler.EventHandler) source.Source
}

// relay shows the feedback in the status. Nil is no feedback.
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
