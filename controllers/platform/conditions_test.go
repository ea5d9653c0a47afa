package platform

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func minutesAfterStart(minutes int) metav1.Time {
	return metav1.NewTime(startTime.Add(time.Duration(minutes) * time.Minute))
}

// lastTransitionTime changes only with the status, and lastHeartbeatTime with any field.
func TestMergeConditionTimes(t *testing.T) {
	base := platformv1alpha1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: "m", ObservedGeneration: 1}
	for name, tc := range map[string]struct {
		change                func(*platformv1alpha1.Condition)
		transition, heartbeat int // minutes
	}{
		"no change":  {func(*platformv1alpha1.Condition) {}, 0, 0},
		"status":     {func(c *platformv1alpha1.Condition) { c.Status = metav1.ConditionFalse }, 5, 5},
		"reason":     {func(c *platformv1alpha1.Condition) { c.Reason = "Other" }, 0, 5},
		"message":    {func(c *platformv1alpha1.Condition) { c.Message = "other" }, 0, 5},
		"generation": {func(c *platformv1alpha1.Condition) { c.ObservedGeneration = 2 }, 0, 5},
		"severity":   {func(c *platformv1alpha1.Condition) { c.Severity = platformv1alpha1.SeverityInfo }, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			status := &platformv1alpha1.Status{}
			mergeCondition(&status.Conditions, minutesAfterStart(0), base)
			next := base
			tc.change(&next)
			mergeCondition(&status.Conditions, minutesAfterStart(5), next)
			got := status.Conditions[0]
			if !got.LastTransitionTime.Equal(new(minutesAfterStart(tc.transition))) || !got.LastHeartbeatTime.Equal(new(minutesAfterStart(tc.heartbeat))) {
				t.Errorf("transition %s, heartbeat %s, want minutes %d and %d", got.LastTransitionTime, got.LastHeartbeatTime, tc.transition, tc.heartbeat)
			}
			got.LastTransitionTime, got.LastHeartbeatTime = metav1.Time{}, nil
			if diff := cmp.Diff(next, got); diff != "" {
				t.Errorf("condition differs (-want +got):\n%s", diff)
			}
		})
	}
	old := &platformv1alpha1.Status{Conditions: []platformv1alpha1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}}
	mergeCondition(&old.Conditions, minutesAfterStart(3), base)
	if !old.Conditions[0].LastTransitionTime.Equal(new(minutesAfterStart(3))) {
		t.Error("want lastTransitionTime set on a condition without one")
	}
	mergeCondition(&old.Conditions, minutesAfterStart(4), platformv1alpha1.Condition{Type: "Long", Message: strings.Repeat("x", 2*conditions.MaxMessage)})
	if n := len(old.Conditions[1].Message); n != conditions.MaxMessage {
		t.Errorf("the message has %d bytes, want %d", n, conditions.MaxMessage)
	}
}

// Merging and removing conditions keeps the order and fields of foreign conditions.
func TestForeignConditionsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.SliceOfNDistinct(rapid.StringMatching(`Foreign[A-Z][a-z]{0,5}`), 0, 5, rapid.ID[string]).Draw(t, "foreign")
		status := &platformv1alpha1.Status{}
		var want []platformv1alpha1.Condition
		for _, conditionType := range foreign {
			c := platformv1alpha1.Condition{
				Type: conditionType, Status: metav1.ConditionUnknown, Severity: platformv1alpha1.SeverityInfo, Message: rapid.String().Draw(t, "message"),
				LastTransitionTime: minutesAfterStart(-9), LastHeartbeatTime: new(minutesAfterStart(-8)), ObservedGeneration: 7,
			}
			want, status.Conditions = append(want, c), append(status.Conditions, c)
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			conditionType := rapid.SampledFrom([]string{ConditionReady, ConditionVersion}).Draw(t, "type")
			if rapid.Bool().Draw(t, "remove") {
				removeCondition(&status.Conditions, conditionType)
				continue
			}
			value := rapid.SampledFrom([]metav1.ConditionStatus{"True", "False"}).Draw(t, "status")
			mergeCondition(&status.Conditions, minutesAfterStart(0), platformv1alpha1.Condition{Type: conditionType, Status: value})
			setPhase(status)
		}
		kept := slices.DeleteFunc(slices.Clone(status.Conditions), func(c platformv1alpha1.Condition) bool {
			return c.Type == ConditionReady || c.Type == ConditionVersion
		})
		if diff := cmp.Diff(want, kept); len(want)+len(kept) > 0 && diff != "" {
			t.Fatalf("foreign conditions differ (-want +got):\n%s", diff)
		}
		seen := map[string]bool{}
		for _, c := range status.Conditions {
			if seen[c.Type] {
				t.Fatalf("duplicate condition %s", c.Type)
			}
			seen[c.Type] = true
		}
	})
}

func TestPhaseFollowsReady(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []platformv1alpha1.Condition
		want       platformv1alpha1.Phase
	}{
		"no conditions": {nil, "Progressing"},
		"ready":         {[]platformv1alpha1.Condition{{Type: "Other", Status: "False"}, {Type: "Ready", Status: "True"}}, "Ready"},
		"not ready":     {[]platformv1alpha1.Condition{{Type: "Ready", Status: "False"}}, "Progressing"},
		"unknown":       {[]platformv1alpha1.Condition{{Type: "Ready", Status: "Unknown"}, {Type: "Other", Status: "True"}}, "Progressing"},
	} {
		status := &platformv1alpha1.Status{Phase: "Previous", Conditions: tc.conditions}
		if setPhase(status); status.Phase != tc.want {
			t.Errorf("%s: phase %q, want %q", name, status.Phase, tc.want)
		}
	}
}

// GetConditions and SetConditions copy the conditions.
func TestAccessorsCopy(t *testing.T) {
	m := mlflowOperatorWith()
	set := []platformv1alpha1.Condition{{Type: "A", LastHeartbeatTime: new(minutesAfterStart(1))}}
	m.SetConditions(set)
	set[0].Type, *set[0].LastHeartbeatTime = "changed", minutesAfterStart(9)
	got := m.GetConditions()
	got[0].Type, *got[0].LastHeartbeatTime = "changed", minutesAfterStart(9)
	if c := m.Status.Conditions[0]; c.Type != "A" || !c.LastHeartbeatTime.Equal(new(minutesAfterStart(1))) {
		t.Errorf("a change of a copy changed the condition to %+v", c)
	}
}
