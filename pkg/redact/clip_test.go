package redact

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"
)

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(-2, 40).Draw(t, "limit")
		got, redacted := Clip(text, limit), Text(text)
		switch {
		case len(redacted) <= limit && got != redacted:
			t.Fatalf("got %q, want the redacted text within the limit unchanged: %q", got, redacted)
		case len(got) > max(limit, 0):
			t.Fatalf("got %q, want at most %d bytes", got, limit)
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Fatalf("got %q, which is clipped within a character", got)
		}
	})
}

// A credential whose end is cut off is redacted, also in the note of an Event.
func TestClipRedactsCutCredentials(t *testing.T) {
	url := "postgresql://user:hunter2hunter2@db.example.com/mlflow"
	for limit := strings.Index(url, "hunter2"); limit < len(url); limit++ {
		if got := Clip(url, limit); strings.Contains(got, "hunter") {
			t.Fatalf("Clip to %d bytes returned %q", limit, got)
		}
	}
	recorder := events.NewFakeRecorder(1)
	Recorder(recorder).Eventf(nil, nil, "Warning", "Failed", "Reconcile", "%s", strings.Repeat("x", MaxNote-24)+" "+url)
	if note := <-recorder.Events; strings.Contains(note, "hunter") || len(note) > MaxNote+len("Warning Failed ") {
		t.Errorf("got note %q of %d bytes", note[len(note)-60:], len(note))
	}
}
