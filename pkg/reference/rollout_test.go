package reference

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"pgregory.net/rapid"
)

// environment is a workload and its Secrets during subsequent calls of NewRolloutHash.
type environment struct {
	stamp  RolloutHash
	hashes map[string]string
	refs   []Reference
}

func (env *environment) reconcile(t rapid.TB) (rolled bool) {
	t.Helper()
	live := &appsv1.Deployment{}
	live.Annotations = map[string]string{HashesAnnotation: env.stamp.Hashes}
	live.Spec.Template.Annotations = map[string]string{RolloutAnnotation: env.stamp.Rollout}
	next := NewRolloutHash(live, env.hashes, env.refs)
	rolled = next.Rollout != env.stamp.Rollout
	env.stamp = next
	return rolled
}

func TestPodsRollOnReferenceChange(t *testing.T) {
	db, tls := Reference{Kind: Secret, Name: "db"}, Reference{Kind: Secret, Name: "tls"}
	w := &environment{hashes: map[string]string{"Secret/db": "1"}, refs: []Reference{db, tls}}
	steps := []struct {
		name string
		do   func()
		want bool
	}{
		{"new or taken over", func() {}, false},
		{"nothing happened", func() {}, false},
		{"the serving certificate appears after the workload", func() { w.hashes["Secret/tls"] = "a" }, false},
		{"the certificate is renewed", func() { w.hashes["Secret/tls"] = "b" }, true},
		{"nothing happened since", func() {}, false},
		{"the password changes", func() { w.hashes["Secret/db"] = "2" }, true},
		{"and back", func() { w.hashes["Secret/db"] = "1" }, true},
		{"and forth", func() { w.hashes["Secret/db"] = "2" }, true},
		{"deleted", func() { delete(w.hashes, "Secret/db") }, false},
		{"made again with the same content", func() { w.hashes["Secret/db"] = "2" }, false},
		{"deleted again", func() { delete(w.hashes, "Secret/db") }, false},
		{"made again with another content", func() { w.hashes["Secret/db"] = "3" }, true},
		{"no longer referenced", func() { w.refs = []Reference{tls} }, false},
		{"changed while the manager is down", func() { w.hashes["Secret/db"] = "4" }, false},
		{"referenced again: the pod template shows it", func() { w.refs = []Reference{db, tls} }, false},
		{"the annotation is destroyed by hand", func() { w.stamp.Hashes = "{" }, false},
		{"and it works on", func() { w.hashes["Secret/db"] = "5" }, true},
	}
	for _, s := range steps {
		s.do()
		if got := w.reconcile(t); got != s.want {
			t.Errorf("%s: rolled = %t, want %t", s.name, got, s.want)
		}
	}
}

func TestRolloutHashWithoutReferences(t *testing.T) {
	w := &environment{}
	if w.reconcile(t); w.stamp != (RolloutHash{}) {
		t.Errorf("stamp = %+v, want none", w.stamp)
	}
}

func TestHashesContainNoValues(t *testing.T) {
	w := &environment{hashes: map[string]string{"Secret/db": "0123"}, refs: []Reference{{Kind: Secret, Name: "db"}}}
	w.reconcile(t)
	if want := `{"Secret/db":"0123"}`; w.stamp.Hashes != want {
		t.Errorf("baseline = %s, want %s", w.stamp.Hashes, want)
	}
}

// A second reconcile changes nothing.
func TestNewRolloutHashIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		w := &environment{hashes: map[string]string{}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			n := name.Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				w.hashes["Secret/"+n] = rapid.StringMatching(`[0-9]`).Draw(t, "hash")
			case 1:
				delete(w.hashes, "Secret/"+n)
			default:
				w.refs = append(w.refs, Reference{Kind: Secret, Name: n})
			}
			w.reconcile(t)
			before := w.stamp
			if w.reconcile(t) || w.stamp != before {
				t.Fatalf("a second pass changed %+v to %+v", before, w.stamp)
			}
			if strings.Contains(w.stamp.Rollout, " ") {
				t.Fatalf("rollout %q is not one word", w.stamp.Rollout)
			}
		}
	})
}
