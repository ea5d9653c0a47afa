package reference

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition names the missing objects, and is removed when none is missing.
func TestSetCondition(t *testing.T) {
	list := []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
	SetCondition(&list, 3, "lab", []Missing{{Reference: Reference{Kind: Secret, Name: "db"}}, {Reference: Reference{Kind: ConfigMap, Name: "ca"}, Key: "ca.crt"}})
	c := meta.FindStatusCondition(list, Condition)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != ReasonMissing || c.ObservedGeneration != 3 ||
		c.Message != "In namespace lab: Secret db does not exist; create it; ConfigMap ca has no key ca.crt; add it" {
		t.Errorf("got condition %+v", c)
	}
	if SetCondition(&list, 3, "lab", nil); len(list) != 1 || list[0].Type != "Available" {
		t.Errorf("got conditions %+v, want only Available", list)
	}
}
