package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newTerminating creates the ConfigMap "a", deletes it while it has finalizers, and sets the clock to its deletion timestamp.
func newTerminating(t *testing.T) *testApplier {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	object := a.get("a")
	object.Finalizers = []string{"example.com/backup", "example.com/audit"}
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	a.must(a.server.Delete(t.Context(), object))
	a.clock.SetTime(a.get("a").DeletionTimestamp.Time)
	return a
}

// A terminating object is an error only after a minute. The error includes the finalizers.
func TestApplyReportsTerminatingObjectAfterGracePeriod(t *testing.T) {
	a := newTerminating(t)
	since := a.clock.Now()
	for _, elapsed := range []time.Duration{0, 20 * time.Second} { // first with a record, then after a restart
		a.clock.SetTime(since.Add(elapsed))
		ctx, changes := RecordChanges(t.Context())
		a.must(a.Apply(ctx, a.owner, Desired{newConfigMap("a", "2")}))
		if changes.RequeueAfter != time.Minute-elapsed {
			t.Errorf("got RequeueAfter %s after %s, want the rest of a minute", changes.RequeueAfter, elapsed)
		}
		a.restart()
	}
	a.clock.SetTime(since.Add(time.Minute))
	for range 2 {
		ctx, changes := RecordChanges(t.Context())
		err := a.Apply(ctx, a.owner, Desired{newConfigMap("a", "2"), newConfigMap("b", "1")})
		terminating, ok := errors.AsType[*TerminatingError](err)
		if !ok || !terminating.TimedOut || !IsBlocked(err) || IsTerminating(err) || changes.RequeueAfter != 0 {
			t.Fatalf("got error %v, want a TerminatingError that timed out", err)
		}
		for _, part := range []string{"ConfigMap ns/a", since.UTC().Format(time.RFC3339), "example.com/backup, example.com/audit"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not contain %q", err, part)
			}
		}
		a.get("b") // other objects of its stage do not wait for it
	}
	object := a.get("a")
	object.Finalizers = nil
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	a.must(a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "2")}))
	if got := a.get("a"); got.DeletionTimestamp != nil || got.Data["key"] != "2" {
		t.Errorf("unexpected data of the recreated object: %v", got.Data)
	}
}

// The deletion of an object without labels causes no event, so it is polled.
func TestApplyPollsTerminatingObjectWithoutLabels(t *testing.T) {
	a := newTerminating(t)
	object := a.get("a")
	object.Labels = nil
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	if err := a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "2")}); !IsTerminating(err) || IsBlocked(err) {
		t.Errorf("got error %v at first, want a terminating object that is not blocked", err)
	}
	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	if err := a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "2")}); IsTerminating(err) || !IsBlocked(err) {
		t.Errorf("got error %v after one minute, want a blocked apply that no longer polls", err)
	}
}

func TestTerminatingErrorWithoutFinalizers(t *testing.T) {
	a := newTerminating(t)
	object := a.get("a")
	object.Finalizers = nil
	if text := NewTerminatingError("ConfigMap", object).Error(); strings.Contains(text, "held") || !strings.Contains(text, "recreates it afterwards") {
		t.Errorf("got %q, want no finalizers", text)
	}
}

// The shortest delay applies, also in the outer context.
func TestRequeueAfterIsShortestTime(t *testing.T) {
	ctx, outer := RecordChanges(t.Context())
	ctx, inner := RecordChanges(ctx)
	if got := inner.RequeueAfter; got != 0 {
		t.Errorf("got delay %s without a request, want none", got)
	}
	for _, after := range []time.Duration{time.Minute, time.Second, time.Hour} {
		requeueAfter(ctx, after)
	}
	if inner.RequeueAfter != time.Second || outer.RequeueAfter != time.Second {
		t.Errorf("unexpected delays %s and %s", inner.RequeueAfter, outer.RequeueAfter)
	}
}
