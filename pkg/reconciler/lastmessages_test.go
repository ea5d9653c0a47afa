package reconciler

import "testing"

func TestLastMessagesReportsChanges(t *testing.T) {
	messages := LastMessages[string]{}
	for i, step := range []struct {
		topic, message string
		changed        bool
	}{
		{"a", "", false}, {"a", "one", true}, {"a", "one", false}, {"b", "one", true}, {"a", "two", true}, {"a", "", true}, {"a", "", false},
	} {
		if got := messages.Replace(step.topic, step.message); got != step.changed {
			t.Errorf("step %d: got changed %t, want %t", i, got, step.changed)
		}
	}
	if len(messages) != 1 {
		t.Errorf("got %v, want only the message of b", messages)
	}
}
