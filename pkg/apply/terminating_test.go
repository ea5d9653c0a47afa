package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newTerminating creates the ConfigMap "a", deletes it while it has a finalizer, and sets the clock to its deletion timestamp.
func newTerminating(t *testing.T) *testApplier {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	object := b.get("a")
	object.Finalizers = []string{"example.com/backup", "example.com/audit"}
	b.must(b.server.Update(t.Context(), object, client.FieldOwner("them")))
	b.must(b.server.Delete(t.Context(), object))
	b.clock.SetTime(b.get("a").DeletionTimestamp.Time)
	return b
}

// A terminating object is an error only after a minute. The error includes the finalizers.
func TestApplyReportsTerminatingObjectAfterGracePeriod(t *testing.T) {
	b := newTerminating(t)
	since := b.clock.Now()
	for name, step := range map[string]time.Duration{"with a record": 0, "after a restart": 20 * time.Second} {
		b.clock.SetTime(since.Add(step))
		ctx, changes := RecordChanges(t.Context())
		b.must(b.Apply(ctx, b.owner, Desired{newConfigMap("a", "2")}))
		if changes.RequeueAfter != time.Minute-step {
			t.Errorf("%s: got RequeueAfter %s, want the rest of a minute", name, changes.RequeueAfter)
		}
		b.restart()
	}
	b.clock.SetTime(since.Add(time.Minute))
	for range 2 {
		ctx, changes := RecordChanges(t.Context())
		err := b.Apply(ctx, b.owner, Desired{newConfigMap("a", "2"), newConfigMap("b", "1")})
		terminating, ok := errors.AsType[*TerminatingError](err)
		if !ok || !terminating.TimedOut || !IsBlocked(err) || IsTerminating(err) || changes.RequeueAfter != 0 {
			t.Fatalf("got error %v, want a TerminatingError that timed out", err)
		}
		for _, part := range []string{"ConfigMap ns/a", since.UTC().Format(time.RFC3339), "example.com/backup, example.com/audit"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not contain %q", err, part)
			}
		}
		b.get("b") // other objects of its stage do not wait for it
	}
	object := b.get("a")
	object.Finalizers = nil
	b.must(b.server.Update(t.Context(), object, client.FieldOwner("them")))
	b.must(b.Apply(t.Context(), b.owner, Desired{newConfigMap("a", "2")}))
	if got := b.get("a"); got.DeletionTimestamp != nil || got.Data["key"] != "2" {
		t.Errorf("unexpected data of the recreated object: %v", got.Data)
	}
}

// The deletion of an object without labels causes no event, so it is polled.
func TestApplyPollsTerminatingObjectWithoutLabels(t *testing.T) {
	b := newTerminating(t)
	object := b.get("a")
	object.Labels = nil
	b.must(b.server.Update(t.Context(), object, client.FieldOwner("them")))
	if err := b.Apply(t.Context(), b.owner, Desired{newConfigMap("a", "2")}); !IsTerminating(err) || IsBlocked(err) {
		t.Errorf("got error %v at first, want a terminating object that is not blocked", err)
	}
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	if err := b.Apply(t.Context(), b.owner, Desired{newConfigMap("a", "2")}); IsTerminating(err) || !IsBlocked(err) {
		t.Errorf("got error %v after one minute, want a blocked apply that no longer polls", err)
	}
}

func TestTerminatingErrorWithoutFinalizers(t *testing.T) {
	b := newTerminating(t)
	object := b.get("a")
	object.Finalizers = nil
	if text := NewTerminatingError("ConfigMap", object).Error(); strings.Contains(text, "held") || !strings.Contains(text, "recreates it afterwards") {
		t.Error(text)
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
