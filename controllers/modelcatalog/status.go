package modelcatalog

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

const (
	// ConditionAvailable is the one that every Catalog has; servingcert.Condition and
	// reference.Condition come where there is something to say.
	ConditionAvailable = "Available"
	// ConditionHubKeys exists, and is False, only while Secrets are labelled as keys for Hugging Face and are of no use.
	ConditionHubKeys = "HuggingFaceKeysReady"
	// ConditionDatabaseCertificate exists, and is False, only while a certificate of the database runs out that the operator did not
	// issue.
	ConditionDatabaseCertificate = "DatabaseCertificateReady"
)

// Reasons of the condition, beside those of package serving.
const (
	ReasonConfiguration = "ConfigurationError"
	ReasonNotInCharge   = "AnotherCatalogActive"
	ReasonMisplaced     = "NotAllowedHere"
	ReasonForbidden     = "Forbidden"
	// ReasonKeysRejected is that of ConditionHubKeys.
	ReasonKeysRejected = "KeysRejected"
)

func setAvailable(c *aihubv1alpha1.Catalog, s serving.State) {
	conditions.Set(&c.Status.Conditions, ConditionAvailable, s.Status, s.Reason, s.Message, c.Generation)
}

// explain adds what the pods show to a state that needs it: a container that waits for something that does not come, or the nearest
// other cause.
func explain(a serving.State, pods []corev1.Pod) serving.State {
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, statuses := range [][]corev1.ContainerStatus{pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses} {
			text := waitingContainer(statuses)
			switch {
			case text == "":
			case a.Status == metav1.ConditionTrue:
				a.Message += "; pods of its present spec are not: " + text
				return a
			default:
				return serving.State{Status: metav1.ConditionFalse, Reason: ReasonConfiguration, Message: text}
			}
		}
	}
	if a.Status == metav1.ConditionTrue {
		return a
	}
	if cause := conditions.Diagnose(pods); cause != "" {
		return serving.Unavailable("Deployment is unavailable: " + cause)
	}
	return a
}

// waitingContainer names the first container that waits for longer than its start takes.
func waitingContainer(statuses []corev1.ContainerStatus) string {
	for _, s := range statuses {
		w := s.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		message := w.Message
		if message == "" || w.Reason == "CrashLoopBackOff" { // its message counts the seconds
			message = w.Reason
		}
		return fmt.Sprintf("container %s waiting: %s", s.Name, message)
	}
	return ""
}
