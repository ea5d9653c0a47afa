package certs

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"pgregory.net/rapid"
)

// drawDamage returns the data of a Secret after a manual edit, a restore or a partial write.
func drawDamage(t *rapid.T, data map[string][]byte, others ...map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for name, content := range data {
		out[name] = bytes.Clone(content)
	}
	keys := slices.Sorted(maps.Keys(out))
	for range rapid.IntRange(0, 3).Draw(t, "damages") {
		name := rapid.SampledFrom(keys).Draw(t, "key")
		switch content := out[name]; rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			delete(out, name)
		case 1:
			out[name] = content[:rapid.IntRange(0, len(content)).Draw(t, "cut")]
		case 2:
			if len(content) > 0 {
				content[rapid.IntRange(0, len(content)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
			}
		case 3:
			out[name] = rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "noise")
		case 4:
			out[name] = bytes.Clone(out[rapid.SampledFrom(keys).Draw(t, "from")])
		default:
			out[name] = bytes.Clone(others[rapid.IntRange(0, len(others)-1).Draw(t, "other")][name])
		}
	}
	return out
}

// rootStages returns a CA after its creation, announcement and replacement, with the time of each step.
func rootStages(t *testing.T) map[string]struct {
	root Root
	now  time.Time
} {
	t.Helper()
	first := ensureRoot(t, nil, epoch)
	announced := ensureRoot(t, first.Data, first.Next)
	replaced := ensureRoot(t, announced.Data, announced.Next)
	return map[string]struct {
		root Root
		now  time.Time
	}{"first": {first, epoch}, "announced": {announced, first.Next}, "replaced": {replaced, announced.Next}}
}

// After any damage the CA can sign, its certificate is first, and a second call changes nothing.
func TestDamagedRootIsRepaired(t *testing.T) {
	all := rootStages(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		stage := all[rapid.SampledFrom(names).Draw(t, "stage")]
		other := all[rapid.SampledFrom(names).Draw(t, "other stage")]
		data := drawDamage(t, stage.root.Data, other.root.Data)
		now := stage.now.Add(time.Duration(rapid.IntRange(0, 5*365).Draw(t, "days")) * 24 * time.Hour)
		r, err := EnsureRoot(data, rootOptions, now)
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := certutil.ParseCertsPEM(r.Data[dataKeyCACert])
		if err != nil {
			t.Fatal(err)
		}
		key, err := parseKey(r.Data[dataKeyCAPrivateKey])
		if err != nil || !keyMatches(key, bundle[0]) || !bundle[0].IsCA || now.After(bundle[0].NotAfter) {
			t.Fatalf("the first of %d certificates cannot sign: %v", len(bundle), err)
		}
		if len(bundle) > maxBundleSize || !r.Next.After(now) {
			t.Fatalf("got %d certificates and the next rotation at %s, the time is %s", len(bundle), r.Next, now)
		}
		if r.Step == Unchanged != maps.EqualFunc(r.Data, data, bytes.Equal) {
			t.Fatalf("unexpected step %q, because %s", r.Step, r.Cause)
		}
		again, err := EnsureRoot(r.Data, rootOptions, now)
		if err != nil || again.Step != Unchanged {
			t.Fatalf("the second call made step %q, because %s, error %v", again.Step, again.Cause, err)
		}
	})
}

// After any damage the certificate is valid for all names, and a second call changes nothing.
func TestDamagedLeafIsReplaced(t *testing.T) {
	all := rootStages(t)
	names := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		stage := all[rapid.SampledFrom(names).Draw(t, "stage")]
		other := all[rapid.SampledFrom(names).Draw(t, "other stage")]
		foreign, err := other.root.EnsureLeaf(nil, leafOptions, stage.now)
		if err != nil {
			t.Fatal(err)
		}
		own, err := stage.root.EnsureLeaf(nil, leafOptions, stage.now)
		if err != nil {
			t.Fatal(err)
		}
		data := drawDamage(t, own.Data, foreign.Data)
		now := stage.now.Add(time.Duration(rapid.IntRange(0, 365).Draw(t, "days")) * 24 * time.Hour)
		l, err := stage.root.EnsureLeaf(data, leafOptions, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"localhost", "demo-head-svc.team.svc", "10.0.0.7", "[fd00::7]"} {
			if err := verify(l.Data, stage.root.Data[dataKeyCACert], name, now); err != nil {
				t.Fatalf("%s: unexpected error: %v", name, err)
			}
		}
		if key, err := parseKey(l.Data[dataKeyPrivateKey]); err != nil || len(l.Data) != 3 {
			t.Fatalf("got private key %T, error %v, and %d keys in the Secret, want 3", key, err, len(l.Data))
		}
		if (l.Cause == "") != maps.EqualFunc(l.Data, data, bytes.Equal) {
			t.Fatalf("the cause %q does not match the change of the data", l.Cause)
		}
		again, err := stage.root.EnsureLeaf(l.Data, leafOptions, now)
		if err != nil || again.Cause != "" {
			t.Fatalf("the second call changed the certificate, because %s, error %v", again.Cause, err)
		}
	})
}
