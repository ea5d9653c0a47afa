package reference

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// Condition is False while a Secret, ConfigMap or key does not exist that pods need to start, and absent otherwise.
	Condition = "ReferencesReady"
	// ReasonMissing is the reason of Condition.
	ReasonMissing = "ReferencesMissing"
)

// SetCondition sets Condition for missing objects and keys, even if pods run that were started with them, and removes it if none is missing.
func SetCondition(all *[]metav1.Condition, generation int64, namespace string, missing []Missing) {
	if len(missing) == 0 {
		conditions.Remove(all, Condition)
		return
	}
	conditions.Set(all, Condition, metav1.ConditionFalse, ReasonMissing, Describe(namespace, missing), generation)
}

// Describe returns the missing objects and keys of a namespace and the fixes in one line.
func Describe(namespace string, missing []Missing) string {
	texts := make([]string, 0, len(missing))
	for _, m := range missing {
		texts = append(texts, m.String())
	}
	return "In namespace " + namespace + ": " + strings.Join(texts, "; ")
}
