package mlflow

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

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
func relay(f Feedback) func(context.Context, *mlflowv1.MLflow) error {
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
