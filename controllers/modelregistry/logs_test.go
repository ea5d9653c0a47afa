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
		"no error":                   {"all is well\n", "", ""},
		"empty":                      {"", "", ""},
		"failed check":               {"a\n" + failedCheck + "\nb\n", ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"several failed checks":      {failedCheck + "\n" + strings.ReplaceAll(failedCheck, "no route", "other"), ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"alert after a failed check": {failedCheck + "\n{{ALERT}} the schema is newer\n", ReasonAlert, "rest container alert: {{ALERT}} the schema is newer"},
		"long line [D18]":            {long + "\n" + failedCheck, ReasonConfiguration, "database configuration error: Connection could not be established.: INTERNAL: no route"},
		"long alert":                 {"{{ALERT}} " + long, ReasonAlert, "rest container alert: {{ALERT}} " + strings.Repeat("x", maxLineLength-len("{{ALERT}} ")-3) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			got := scanLog(test.text, redact.Values{})
			if got == nil {
				got = &conditionReason{}
			}
			if got.reason != test.reason || got.message != test.message {
				t.Errorf("got %+v, want reason %s and message %q", *got, test.reason, test.message)
			}
		})
	}
}

// The log of a pod is read once per restart of its container, even if the read fails.
func TestLogIsReadOncePerRestart(t *testing.T) {
	reads, text, readErr := 0, failedCheck, error(nil)
	env := newTestEnv(t, nil)
	r := env.registryReconciler
	r.readPodLog = func(_ context.Context, pod types.NamespacedName, container string) (string, error) {
		reads++
		if pod.Name != "p" || container != "rest-container" {
			t.Errorf("read the log of pod %v, container %s", pod, container)
		}
		return text, readErr
	}
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{UID: "m"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p1"}}
	expect := func(name string, restarts int32, wantReads int, wantProblem bool) {
		t.Helper()
		status := waitingContainer("rest-container", "CrashLoopBackOff")
		status.RestartCount = restarts
		problem, err := r.problemInLog(t.Context(), m, pod, status)
		if err != nil || reads != wantReads || (problem != nil) != wantProblem {
			t.Errorf("%s: got problem %v after %d reads, error %v; want problem %t after %d reads", name, problem, reads, err, wantProblem, wantReads)
		}
	}
	expect("first call", 1, 1, true)
	expect("same restart", 1, 1, true)
	text, readErr = "", errors.New("the node is unreachable")
	expect("unreadable log after a restart", 2, 2, false)
	expect("unreadable log again", 2, 2, false)
	pod.UID = "p2"
	expect("recreated pod", 2, 3, false)
	r.states.Delete("m")
	expect("deleted state", 2, 4, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.states.Delete("m")
	if _, err := r.problemInLog(ctx, m, pod, waitingContainer("rest-container", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

func TestLogReaderLimits(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		want := "/api/v1/namespaces/n/pods/p/log?container=rest-container&limitBytes=65536&tailLines=200"
		if got := request.URL.String(); got != want {
			t.Errorf("got request %s, want %s", got, want)
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
		t.Errorf("got log %q, error %v, want the body of the response", text, err)
	}
}

// The quoted line of a log contains no values of the Secrets of the registry. Values of other Secrets are not redacted.
func TestProblemInLogRedactsDatabaseSecrets(t *testing.T) {
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"Secret of the spec": {secretWith("pg-login", "password", "unreachable"), "rest container alert: {{ALERT}} the database is [redacted]"},
		"other Secret":       {secretWith("other", "password", "unreachable"), "rest container alert: {{ALERT}} the database is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil, test.secret)
			env.readPodLog = func(context.Context, types.NamespacedName, string) (string, error) {
				return "{{ALERT}} the database is unreachable", nil
			}
			pod := podWith("p", waitingContainer("rest-container", "CrashLoopBackOff"))
			problem, err := env.problemInLog(t.Context(), newRegistry("demo"), &pod, pod.Status.ContainerStatuses[0])
			if err != nil || problem == nil || problem.message != test.want {
				t.Errorf("got problem %+v and error %v, want message %q", problem, err, test.want)
			}
		})
	}
}

func secretWith(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}
