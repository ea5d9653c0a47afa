package modelregistry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

const failedCheck = "F1121 mysql.cc:12] Check failed: absl::OkStatus() == status (OK vs. INTERNAL: no route) Connection could not be established."

func TestScanLog(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for name, test := range map[string]struct{ text, reason, message string }{
		"no error":          {"all is well\n", "", ""},
		"empty":             {"", "", ""},
		"failed check":      {"a\n" + failedCheck + "\nb\n", ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"the first counts":  {failedCheck + "\n" + strings.ReplaceAll(failedCheck, "no route", "other"), ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"an alert wins":     {failedCheck + "\n{{ALERT}} the schema is newer\n", ReasonAlert, "rest container alert: {{ALERT}} the schema is newer"},
		"a long line [D18]": {long + "\n" + failedCheck, ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"a long alert":      {"{{ALERT}} " + long, ReasonAlert, "rest container alert: {{ALERT}} " + strings.Repeat("x", maxLineLength-len("{{ALERT}} ")-3) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			got := scanLog(test.text, redact.Values{})
			if got == nil {
				got = &finding{}
			}
			if got.reason != test.reason || got.message != test.message {
				t.Errorf("got %+v, want reason %s and message %q", *got, test.reason, test.message)
			}
		})
	}
}

// A log is read once per run of the container, and with limits.
func TestLogIsReadOnceForEachRun(t *testing.T) {
	reads, text, failure := 0, failedCheck, error(nil)
	w := newTestEnv(t, nil)
	r := w.registryReconciler
	r.readPodLog = func(_ context.Context, pod types.NamespacedName, container string) (string, error) {
		reads++
		if pod.Name != "p" || container != "rest-container" {
			t.Errorf("read %v %s", pod, container)
		}
		return text, failure
	}
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{UID: "m"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p1"}}
	look := func(restarts int32, wantReads int, wantFinding bool) {
		t.Helper()
		status := waitingContainer("rest-container", "CrashLoopBackOff")
		status.RestartCount = restarts
		f, err := r.findingFromLog(t.Context(), m, pod, status)
		if err != nil || reads != wantReads || (f != nil) != wantFinding {
			t.Errorf("finding %v, %d reads, error %v", f, reads, err)
		}
	}
	look(1, 1, true)
	look(1, 1, true)
	text, failure = "", errors.New("the node is away")
	look(2, 2, false)
	look(2, 2, false)
	pod.UID = "p2"
	look(2, 3, false)
	r.states.Delete("m")
	look(2, 4, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.states.Delete("m")
	if _, err := r.findingFromLog(ctx, m, pod, waitingContainer("rest-container", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a reconcile that ends learns nothing: %v", err)
	}
}

func TestLogReaderLimits(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		want := "/api/v1/namespaces/n/pods/p/log?container=rest-container&limitBytes=65536&tailLines=200"
		if got := request.URL.String(); got != want {
			t.Errorf("asked for %s", got)
		}
		_, _ = w.Write([]byte("the end"))
	}))
	defer server.Close()
	read, err := newLogReader(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	text, err := read(t.Context(), types.NamespacedName{Namespace: "n", Name: "p"}, "rest-container")
	if err != nil || text != "the end" {
		t.Errorf("got log %q, error %v, want its last bytes", text, err)
	}
}

// A tenant's Secrets change no message about another registry, and a finding of a log contains none of the values of its own.
func TestFindingRedactsDatabaseSecrets(t *testing.T) {
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"of the registry":     {secretWith("pg-login", "password", "unreachable"), "rest container alert: {{ALERT}} the database is [redacted]"},
		"of another registry": {secretWith("other", "password", "unreachable"), "rest container alert: {{ALERT}} the database is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, nil, test.secret)
			w.readPodLog = func(context.Context, types.NamespacedName, string) (string, error) {
				return "{{ALERT}} the database is unreachable", nil
			}
			pod := podWith("p", waitingContainer("rest-container", "CrashLoopBackOff"))
			f, err := w.findingFromLog(t.Context(), newRegistry("demo"), &pod, pod.Status.ContainerStatuses[0])
			if err != nil || f == nil || f.message != test.want {
				t.Errorf("findingFromLog returned %+v and error %v, want %q", f, err, test.want)
			}
		})
	}
}

func secretWith(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}
