package reference

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"pgregory.net/rapid"
)

// environment is a Deployment with its references and their hashes, for subsequent calls of NewRolloutHash.
type environment struct {
	current RolloutHash
	hashes  map[string]string
	refs    []Reference
}

func (env *environment) reconcile(t rapid.TB) (restarted bool) {
	t.Helper()
	live := &appsv1.Deployment{}
	live.Annotations = map[string]string{HashesAnnotation: env.current.Hashes}
	live.Spec.Template.Annotations = map[string]string{RolloutAnnotation: env.current.Rollout}
	next := NewRolloutHash(live, env.hashes, env.refs)
	restarted = next.Rollout != env.current.Rollout
	env.current = next
	return restarted
}

func TestPodsRestartOnReferenceChange(t *testing.T) {
	db, tls := Reference{Kind: Secret, Name: "db"}, Reference{Kind: Secret, Name: "tls"}
	env := &environment{hashes: map[string]string{"Secret/db": "1"}, refs: []Reference{db, tls}}
	steps := []struct {
		name   string
		change func()
		want   bool
	}{
		{"first reconcile", func() {}, false},
		{"unchanged", func() {}, false},
		{"serving certificate created after the workload", func() { env.hashes["Secret/tls"] = "a" }, false},
		{"certificate renewed", func() { env.hashes["Secret/tls"] = "b" }, true},
		{"unchanged after the renewal", func() {}, false},
		{"password changed", func() { env.hashes["Secret/db"] = "2" }, true},
		{"password changed back", func() { env.hashes["Secret/db"] = "1" }, true},
		{"password changed again", func() { env.hashes["Secret/db"] = "2" }, true},
		{"Secret deleted", func() { delete(env.hashes, "Secret/db") }, false},
		{"Secret recreated with the same content", func() { env.hashes["Secret/db"] = "2" }, false},
		{"Secret deleted again", func() { delete(env.hashes, "Secret/db") }, false},
		{"Secret recreated with other content", func() { env.hashes["Secret/db"] = "3" }, true},
		{"no longer referenced", func() { env.refs = []Reference{tls} }, false},
		{"changed while not referenced", func() { env.hashes["Secret/db"] = "4" }, false},
		{"referenced again, which changes the pod template itself", func() { env.refs = []Reference{db, tls} }, false},
		{"annotation invalid", func() { env.current.Hashes = "{" }, false},
		{"changed after the invalid annotation", func() { env.hashes["Secret/db"] = "5" }, true},
	}
	for _, s := range steps {
		s.change()
		if got := env.reconcile(t); got != s.want {
			t.Errorf("%s: restarted = %t, want %t", s.name, got, s.want)
		}
	}
}

func TestRolloutHashWithoutReferences(t *testing.T) {
	env := &environment{}
	if env.reconcile(t); env.current != (RolloutHash{}) {
		t.Errorf("got %+v, want an empty RolloutHash", env.current)
	}
}

func TestHashesAnnotation(t *testing.T) {
	env := &environment{hashes: map[string]string{"Secret/db": "0123"}, refs: []Reference{{Kind: Secret, Name: "db"}}}
	env.reconcile(t)
	if want := `{"Secret/db":"0123"}`; env.current.Hashes != want {
		t.Errorf("got hashes %s, want %s", env.current.Hashes, want)
	}
}

// A repeated reconcile returns the same hash.
func TestNewRolloutHashIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		env := &environment{hashes: map[string]string{}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			n := name.Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				env.hashes["Secret/"+n] = rapid.StringMatching(`[0-9]`).Draw(t, "hash")
			case 1:
				delete(env.hashes, "Secret/"+n)
			default:
				env.refs = append(env.refs, Reference{Kind: Secret, Name: n})
			}
			env.reconcile(t)
			before := env.current
			if env.reconcile(t) || env.current != before {
				t.Fatalf("a repeated reconcile changed %+v to %+v", before, env.current)
			}
			if strings.Contains(env.current.Rollout, " ") {
				t.Fatalf("rollout %q contains a space", env.current.Rollout)
			}
		}
	})
}
