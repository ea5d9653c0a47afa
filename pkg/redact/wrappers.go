package redact

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Writer returns a writer that redacts credentials in log entries. Each call of Write must contain a whole entry.
func Writer(next io.Writer) io.Writer { return redactingWriter{next} }

type redactingWriter struct{ next io.Writer }

// Write implements io.Writer.
func (w redactingWriter) Write(entry []byte) (int, error) {
	if _, err := io.WriteString(w.next, Text(string(entry))); err != nil {
		return 0, err //nolint:wrapcheck // a writer passes errors on
	}
	return len(entry), nil
}

// Recorder returns a recorder that redacts the notes of Events, and limits them to MaxNote.
func Recorder(next recorder.EventRecorder) recorder.EventRecorder { return redactingRecorder{next} }

type redactingRecorder struct{ next recorder.EventRecorder }

// Eventf implements events.EventRecorder.
func (r redactingRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.next.Eventf(regarding, related, eventType, reason, action, "%s", Clip(fmt.Sprintf(note, args...), MaxNote))
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (r redactingRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any) {
	r.next.AnnotatedEventf(regarding, related, annotations, eventType, reason, action, "%s", Clip(fmt.Sprintf(note, args...), MaxNote))
}
