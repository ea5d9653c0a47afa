package reference

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// Condition exists, and is False, only while a Secret, a ConfigMap or a key does not exist that pods need at their start.
	Condition = "ReferencesReady"
	// ReasonMissing is its reason.
	ReasonMissing = "ReferencesMissing"
)

// Report names what is missing in the Condition, also while pods that were started before run on without it, and removes the
// Condition when nothing is.
func SetCondition(all *[]metav1.Condition, generation int64, namespace string, missing []Missing) {
	if len(missing) == 0 {
		conditions.Remove(all, Condition)
		return
	}
	conditions.Set(all, Condition, metav1.ConditionFalse, ReasonMissing, Describe(namespace, missing), generation)
}

// Describe names in one line what is missing in a namespace, and what to do.
func Describe(namespace string, missing []Missing) string {
	texts := make([]string, 0, len(missing))
	for _, m := range missing {
		texts = append(texts, m.String())
	}
	return "In namespace " + namespace + ": " + strings.Join(texts, "; ")
}
