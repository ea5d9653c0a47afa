package runtimes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// recordedEvents returns the Events that were recorded so far.
func recordedEvents(r *events.FakeRecorder) []string {
	var out []string
	for {
		select {
		case e := <-r.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// [M28] Each message is recorded once per namespace, and again when it changes. The end of a problem is recorded too.
func TestReporterRecordsMessageOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	a, b := &reporter{recorder, "a", map[eventKey]string{}}, &reporter{recorder, "b", map[eventKey]string{}}
	local, global := &v1alpha1.ServingRuntime{}, &v1alpha1.ClusterServingRuntime{}
	local.UID, local.Namespace, local.Name = "1", "a", "local"
	global.UID, global.Name = "2", "global"
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"nothing is wrong", func() { a.reportInvalid(local, nil) }, nil},
		{"trouble", func() { a.reportInvalid(local, errors.New("bad")) }, []string{"Warning InvalidRuntime bad"}},
		{"the same", func() { a.reportInvalid(local, errors.New("bad")) }, nil},
		{"another", func() { a.reportInvalid(local, errors.New("worse")) }, []string{"Warning InvalidRuntime worse"}},
		{"over", func() { a.reportInvalid(local, nil) }, []string{"Normal ValidRuntime the runtime is valid again"}},
		{"still over", func() { a.reportInvalid(local, nil) }, nil},
		{"in two namespaces", func() {
			a.reportInvalid(global, errors.New("bad"))
			b.reportInvalid(global, errors.New("bad"))
		}, []string{"Warning InvalidRuntime in namespace a: bad", "Warning InvalidRuntime in namespace b: bad"}},
		{"two subjects", func() {
			a.warn(local, "one", ReasonNotice, "x")
			a.warn(local, "two", ReasonNotice, "x")
		}, []string{"Warning RuntimeNotice x", "Warning RuntimeNotice x"}},
		{"more than the API server takes", func() { a.warn(local, "long", ReasonNotice, strings.Repeat("x", 2000)) },
			[]string{"Warning RuntimeNotice " + strings.Repeat("x", modelmesh.MaxEventNoteBytes-3) + "..."}},
		{"forgotten", func() {
			a.forgetDeleted(nil)
			a.reportInvalid(global, errors.New("bad"))
			b.reportInvalid(global, errors.New("bad"))
		}, []string{"Warning InvalidRuntime in namespace a: bad"}},
	} {
		step.do()
		if got := recordedEvents(recorder); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
}
