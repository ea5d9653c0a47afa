package redact

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Writer returns a writer that redacts whole log entries.
func Writer(next io.Writer) io.Writer { return redactingWriter{next} }

type redactingWriter struct{ next io.Writer }

// Write implements io.Writer.
func (w redactingWriter) Write(entry []byte) (int, error) {
	if _, err := io.WriteString(w.next, Text(string(entry))); err != nil {
		return 0, err //nolint:wrapcheck // a writer passes errors on
	}
	return len(entry), nil
}

// Recorder returns a recorder that redacts the notes of events.
func Recorder(next recorder.EventRecorder) recorder.EventRecorder { return redactingRecorder{next} }

type redactingRecorder struct{ next recorder.EventRecorder }

// Eventf implements events.EventRecorder.
func (n redactingRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	n.next.Eventf(regarding, related, eventType, reason, action, "%s", Text(fmt.Sprintf(note, args...)))
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (n redactingRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any) {
	n.next.AnnotatedEventf(regarding, related, annotations, eventType, reason, action, "%s", Text(fmt.Sprintf(note, args...)))
}

// maxResponseLength limits the responses that are decoded. A single Secret is smaller.
const maxResponseLength = 4 << 20

// RecordSecrets makes all clients of the configuration store the values of the Secrets that they read.
func RecordSecrets(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recordingTransport{next} })
}

type recordingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r recordingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices || !readsSecrets(request) {
		return response, err //nolint:wrapcheck // a transport passes errors on
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseLength))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	if err == nil {
		recordResponse(body)
	}
	return response, nil
}

var secretsPath = regexp.MustCompile(`^/api/v1/(?:namespaces/[^/]+/)?secrets(?:/[^/]+)?$`)

// readsSecrets reports whether the response contains whole Secrets.
func readsSecrets(request *http.Request) bool {
	return secretsPath.MatchString(request.URL.Path) && request.URL.Query().Get("watch") == "" &&
		!strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata")
}

func recordResponse(body []byte) {
	decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return // not a known type
	}
	switch o := decoded.(type) {
	case *corev1.Secret:
		RecordSecret(o)
	case *corev1.SecretList:
		for i := range o.Items {
			RecordSecret(&o.Items[i])
		}
	}
}
