package runtimes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// recordedEvents returns the Events since the last call.
func recordedEvents(r *events.FakeRecorder) []string {
	var emitted []string
	for {
		select {
		case e := <-r.Events:
			emitted = append(emitted, e)
		default:
			return emitted
		}
	}
}

// [M28] Each message is recorded once per namespace, and again when it changes. A resolved problem is recorded too.
func TestReporterRecordsMessageOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	a, b := &reporter{redact.Recorder(recorder), "a", map[eventKey]string{}}, &reporter{redact.Recorder(recorder), "b", map[eventKey]string{}}
	namespaced, clusterScoped := &v1alpha1.ServingRuntime{}, &v1alpha1.ClusterServingRuntime{}
	namespaced.UID, namespaced.Namespace, namespaced.Name = "1", "a", "local"
	clusterScoped.UID, clusterScoped.Name = "2", "global"
	for _, step := range []struct {
		name   string
		report func()
		want   []string
	}{
		{"no problem", func() { a.reportInvalid(namespaced, nil) }, nil},
		{"problem", func() { a.reportInvalid(namespaced, errors.New("bad")) }, []string{"Warning InvalidRuntime bad"}},
		{"same problem", func() { a.reportInvalid(namespaced, errors.New("bad")) }, nil},
		{"another problem", func() { a.reportInvalid(namespaced, errors.New("worse")) }, []string{"Warning InvalidRuntime worse"}},
		{"problem resolved", func() { a.reportInvalid(namespaced, nil) }, []string{"Normal ValidRuntime the runtime is valid again"}},
		{"still no problem", func() { a.reportInvalid(namespaced, nil) }, nil},
		{"ClusterServingRuntime in two namespaces", func() {
			a.reportInvalid(clusterScoped, errors.New("bad"))
			b.reportInvalid(clusterScoped, errors.New("bad"))
		}, []string{"Warning InvalidRuntime in namespace a: bad", "Warning InvalidRuntime in namespace b: bad"}},
		{"two actions", func() {
			a.warn(namespaced, "one", ReasonNotice, "x")
			a.warn(namespaced, "two", ReasonNotice, "x")
		}, []string{"Warning RuntimeNotice x", "Warning RuntimeNotice x"}},
		{"message too long", func() { a.warn(namespaced, "long", ReasonNotice, strings.Repeat("x", 2000)) },
			[]string{"Warning RuntimeNotice " + strings.Repeat("x", redact.MaxNote-3) + "..."}},
		{"after forgetDeleted", func() {
			a.forgetDeleted(nil)
			a.reportInvalid(clusterScoped, errors.New("bad"))
			b.reportInvalid(clusterScoped, errors.New("bad"))
		}, []string{"Warning InvalidRuntime in namespace a: bad"}},
	} {
		step.report()
		if got := recordedEvents(recorder); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}
