package conditions

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetAndGet(t *testing.T) {
	var list []metav1.Condition
	if !Set(&list, "Available", metav1.ConditionFalse, "Starting", "the pod is starting", 3) {
		t.Error("want Set to report a change for a new condition")
	}
	if Set(&list, "Available", metav1.ConditionFalse, "Starting", "the pod is starting", 3) {
		t.Error("want Set to report no change for an equal condition")
	}
	got, ok := Get(list, "Available")
	if !ok || got.Reason != "Starting" || got.ObservedGeneration != 3 || got.LastTransitionTime.IsZero() {
		t.Errorf("got %+v, want reason Starting for generation 3 with a transition time", got)
	}
	old := metav1.NewTime(time.Unix(1000, 0))
	list[0].LastTransitionTime = old
	if !Set(&list, "Available", metav1.ConditionFalse, "Starting", "another message", 4) || !list[0].LastTransitionTime.Equal(&old) {
		t.Error("want Set to report a change for a new message and to keep lastTransitionTime")
	}
	Set(&list, "Available", metav1.ConditionTrue, "Up", "", 4)
	if list[0].LastTransitionTime.Equal(&old) || !IsTrue(list, "Available") {
		t.Error("lastTransitionTime or the status did not change")
	}
	if _, ok := Get(list, "Other"); ok || IsTrue(list, "Other") {
		t.Error("a missing condition was found, or is true")
	}
	if !Remove(&list, "Available") || Remove(&list, "Available") || len(list) != 0 {
		t.Error("want Remove to report a change the first time only")
	}
}

func TestSetClipsMessages(t *testing.T) {
	var list []metav1.Condition
	Set(&list, "Available", metav1.ConditionFalse, "X", strings.Repeat("ä", MaxMessage), 1)
	if n := len(list[0].Message); n > MaxMessage || !strings.HasSuffix(list[0].Message, "ä...") {
		t.Errorf("got a message of %d bytes that ends in %q, want at most %d and dots", n, list[0].Message[n-8:], MaxMessage)
	}
}

func TestSeverity(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason}
	}
	up := condition("Available", metav1.ConditionTrue, "Up")
	starting := condition("Available", metav1.ConditionFalse, "Starting")
	healthy := condition("Degraded", metav1.ConditionFalse, "AsExpected")
	for name, tc := range map[string]struct {
		before *metav1.Condition
		after  metav1.Condition
		want   string
	}{
		"new and False":                     {nil, starting, "Normal"},
		"False to True":                     {&starting, up, "Normal"},
		"True to False":                     {&up, condition("Available", metav1.ConditionFalse, "RolloutUpdating"), "Warning"},
		"True to Unknown":                   {&up, condition("Available", metav1.ConditionUnknown, "NoAnswer"), "Warning"},
		"changed reason":                    {&starting, condition("Available", metav1.ConditionFalse, "StillStarting"), "Normal"},
		"failure":                           {&starting, condition("Available", metav1.ConditionFalse, "DatabaseUnreachable"), "Warning"},
		"new failure":                       {nil, condition("DatabaseReady", metav1.ConditionFalse, "SecretNotFound"), "Warning"},
		"reason begins with a failure word": {nil, condition("Ready", metav1.ConditionFalse, "InvalidSpec"), "Warning"},
		"True with a failure word":          {&starting, condition("Available", metav1.ConditionTrue, "ErrorRepaired"), "Normal"},
		"progressing":                       {nil, condition("Progressing", metav1.ConditionTrue, "Updating"), "Normal"},
		"no longer progressing":             {new(condition("Progressing", metav1.ConditionTrue, "Updating")), condition("Progressing", metav1.ConditionFalse, "Done"), "Normal"},
		"progress failed":                   {nil, condition("Progressing", metav1.ConditionFalse, "ProgressDeadlineExceeded"), "Warning"},
		"negative condition becomes True":   {&healthy, condition("Degraded", metav1.ConditionTrue, "Slow"), "Warning"},
		"negative condition is False":       {nil, healthy, "Normal"},
		"finalizing":                        {nil, condition("Degraded", metav1.ConditionTrue, "Finalizing"), "Normal"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Severity(tc.before, tc.after); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
