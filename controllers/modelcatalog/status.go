package modelcatalog

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

const (
	// ConditionAvailable is True if the server is available. servingcert.Condition, servingcert.DatabaseCondition, routestatus.Condition and
	// reference.Condition exist only while there is a problem.
	ConditionAvailable = "Available"
	// ConditionHuggingFaceKeys exists, and is False, only while Secrets with API keys for Hugging Face are invalid.
	ConditionHuggingFaceKeys = "HuggingFaceKeysReady"
)

// Reasons of ConditionAvailable, in addition to those of package serving.
const (
	ReasonConfiguration = "ConfigurationError"
	ReasonNotActive     = "AnotherCatalogActive"
	ReasonMisplaced     = "NotAllowedHere"
	ReasonForbidden     = "Forbidden"
	// ReasonKeysRejected is the reason of ConditionHuggingFaceKeys.
	ReasonKeysRejected = "KeysRejected"
)

func setAvailable(c *aihubv1alpha1.Catalog, s serving.State) {
	conditions.Set(&c.Status.Conditions, ConditionAvailable, s.Status, s.Reason, s.Message, c.Generation)
}

// inactiveState returns the state of a Catalog that must not be reconciled, or the zero value. The webhook rejects most of these Catalogs,
// unless they were stored before it was installed.
func inactiveState(c *aihubv1alpha1.Catalog, all []aihubv1alpha1.Catalog, namespace string) serving.State {
	problem := serving.State{Status: metav1.ConditionFalse, Reason: ReasonMisplaced}
	switch {
	case c.Name != aihubv1alpha1.CatalogName:
		problem.Message = fmt.Sprintf("a Catalog must be named %q; delete this one, and create one of that name if there is none", aihubv1alpha1.CatalogName)
		return problem
	case namespace != "" && c.Namespace != namespace:
		problem.Message = fmt.Sprintf("Catalogs must be in namespace %s (REGISTRIES_NAMESPACE); delete this Catalog and create it there", namespace)
		return problem
	}
	if active := resources.ActiveCatalog(all, namespace); active != nil && active.UID != c.UID {
		problem.Reason = ReasonNotActive
		problem.Message = fmt.Sprintf("a cluster has only one Catalog, and the Catalog in namespace %s is older; delete one of them", active.Namespace)
		return problem
	}
	return serving.State{}
}

// addPodCause returns the state with its cause. The first container that waits abnormally is appended to the message of an available state,
// and replaces another state. Without such a container, another problem of the Deployment or its pods replaces a state that is not available.
func addPodCause(state serving.State, d *appsv1.Deployment, pods []corev1.Pod) serving.State {
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, statuses := range [][]corev1.ContainerStatus{pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses} {
			text := waitingContainer(statuses)
			switch {
			case text == "":
			case state.Status == metav1.ConditionTrue:
				state.Message += "; the rollout of the current spec is not finished: " + text
				return state
			default:
				return serving.State{Status: metav1.ConditionFalse, Reason: ReasonConfiguration, Message: text}
			}
		}
	}
	if state.Status == metav1.ConditionTrue {
		return state
	}
	if cause := resourceFields.Cause(d, pods); cause != "" {
		return serving.Unavailable("Deployment is unavailable: " + cause)
	}
	return state
}

// resourceFields maps containers to the fields with their resources.
var resourceFields = conditions.ResourceFields{
	resources.ServerContainer: "spec.resources.catalog", rbacproxy.ContainerName: "spec.resources.kubeRBACProxy",
	resources.DatabaseContainer: "spec.resources.postgres", resources.DataContainer: "spec.resources.init", resources.BenchmarkContainer: "spec.resources.init",
}

// waitingContainer describes the first container that waits for a reason other than its normal start.
func waitingContainer(statuses []corev1.ContainerStatus) string {
	for _, status := range statuses {
		waiting := status.State.Waiting
		if waiting == nil || slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, waiting.Reason) {
			continue
		}
		message := waiting.Message
		if message == "" || waiting.Reason == "CrashLoopBackOff" { // the message contains the back-off time, which changes
			message = waiting.Reason
		}
		return fmt.Sprintf("container %s waiting: %s", status.Name, message)
	}
	return ""
}
