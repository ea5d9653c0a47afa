package modelcatalog

import (
	"cmp"
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
	// ConditionAvailable is the one that every Catalog has; servingcert.Condition, registry.ConditionDatabaseCertificate,
	// routestatus.Condition and reference.Condition come where there is something to say.
	ConditionAvailable = "Available"
	// ConditionHubKeys exists, and is False, only while Secrets are labelled as keys for Hugging Face and are of no use.
	ConditionHuggingFaceKeys = "HuggingFaceKeysReady"
)

// Reasons of the condition, beside those of package serving.
const (
	ReasonConfiguration = "ConfigurationError"
	ReasonNotActive     = "AnotherCatalogActive"
	ReasonMisplaced     = "NotAllowedHere"
	ReasonForbidden     = "Forbidden"
	// ReasonKeysRejected is that of ConditionHubKeys.
	ReasonKeysRejected = "KeysRejected"
)

func setAvailable(c *aihubv1alpha1.Catalog, s serving.State) {
	conditions.Set(&c.Status.Conditions, ConditionAvailable, s.Status, s.Reason, s.Message, c.Generation)
}

// standing says why a Catalog is not the one in charge; the zero value when it is. The webhook refuses most of this, but objects
// may have been stored before it was there.
func inactiveState(c *aihubv1alpha1.Catalog, all []aihubv1alpha1.Catalog, namespace string) serving.State {
	problem := serving.State{Status: metav1.ConditionFalse, Reason: ReasonMisplaced}
	switch {
	case c.Name != aihubv1alpha1.CatalogName:
		problem.Message = fmt.Sprintf("a Catalog must be named %q; delete this one, and create one of that name if there is none", aihubv1alpha1.CatalogName)
		return problem
	case namespace != "" && c.Namespace != namespace:
		problem.Message = fmt.Sprintf("catalogs belong into namespace %s (REGISTRIES_NAMESPACE); delete this one and create it there", namespace)
		return problem
	}
	if first := activeCatalog(all, namespace); first != nil && first.UID != c.UID {
		problem.Reason = ReasonNotActive
		problem.Message = fmt.Sprintf("there is one catalog in a cluster, and that of namespace %s was there first; delete one of them", first.Namespace)
		return problem
	}
	return serving.State{}
}

// inCharge is the oldest Catalog that is to stay and may work at all; nil when there is none.
func activeCatalog(all []aihubv1alpha1.Catalog, namespace string) *aihubv1alpha1.Catalog {
	var able []*aihubv1alpha1.Catalog
	for i := range all {
		c := &all[i]
		if c.DeletionTimestamp.IsZero() && c.Name == aihubv1alpha1.CatalogName && (namespace == "" || c.Namespace == namespace) {
			able = append(able, c)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return slices.MinFunc(able, func(a, b *aihubv1alpha1.Catalog) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// explain adds what the pods show to a state that needs it: a container that waits for something that does not come, or the nearest
// other cause.
func addPodCause(a serving.State, d *appsv1.Deployment, pods []corev1.Pod) serving.State {
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
	if cause := resourceFields.Cause(d, pods); cause != "" {
		return serving.Unavailable("Deployment is unavailable: " + cause)
	}
	return a
}

// settable are the fields where users set the resources of the containers of a catalog and of its database.
var resourceFields = conditions.Fields{
	resources.ServerContainer: "spec.resources.catalog", rbacproxy.ContainerName: "spec.resources.kubeRBACProxy",
	resources.DatabaseContainer: "spec.resources.postgres", resources.DataContainer: "spec.resources.init", resources.BenchmarkContainer: "spec.resources.init",
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
