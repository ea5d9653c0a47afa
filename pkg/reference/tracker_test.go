package reference

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const namespace = "apps"

// countingCluster counts reads of whole objects. Reads of metadata, which go to the cache, are not counted.
type countingCluster struct {
	client.WithWatch
	reads   int
	readErr error
}

func newCluster(objects ...client.Object) *countingCluster {
	c := &countingCluster{}
	c.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, isMetadata := obj.(*metav1.PartialObjectMetadata); !isMetadata {
				c.reads++
				if c.readErr != nil {
					return c.readErr
				}
			}
			return inner.Get(ctx, key, obj, opts...)
		},
	})
	return c
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace, UID: "secret"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func resolve(t *testing.T, tracker *Tracker, refs ...Reference) Resolved {
	t.Helper()
	resolved, err := tracker.Resolve(t.Context(), namespace, refs)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func TestResolveReadsOnlyChangedVersions(t *testing.T) {
	c := newCluster(secret(map[string]string{"uri": "a", "other": "x"}))
	tracker := NewTracker(c, c)
	ref := Reference{Kind: Secret, Name: "db", Keys: []string{"uri"}}
	first := resolve(t, tracker, ref)
	for range 3 {
		if diff := cmp.Diff(first, resolve(t, tracker, ref)); diff != "" {
			t.Errorf("Resolve() of unchanged objects differs (-first +later):\n%s", diff)
		}
	}
	if c.reads != 1 {
		t.Errorf("got %d reads, want 1", c.reads)
	}

	live := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "db"}, live); err != nil {
		t.Fatal(err)
	}
	live.Data["other"] = []byte("y")
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, resolve(t, tracker, ref)); diff != "" {
		t.Errorf("a change of an unreferenced key changed the hash:\n%s", diff)
	}
	live.Data["uri"] = []byte("b")
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(first, resolve(t, tracker, ref)) {
		t.Error("a change of a referenced key did not change the hash")
	}
}

func TestHashOfAllKeys(t *testing.T) {
	ref := Reference{Kind: Secret, Name: "db"}
	hash := func(data map[string]string) string {
		c := newCluster(secret(data))
		return resolve(t, NewTracker(c, c), ref).Hashes["Secret/db"]
	}
	base := hash(map[string]string{"a": "1", "b": "2"})
	if base == "" || base != hash(map[string]string{"b": "2", "a": "1"}) {
		t.Errorf("the hash %q depends on the order of keys", base)
	}
	for name, other := range map[string]map[string]string{
		"value": {"a": "1", "b": "3"}, "key": {"a": "1", "c": "2"}, "fewer": {"a": "1"}, "shifted": {"a": "1b", "": "2"},
	} {
		if hash(other) == base {
			t.Errorf("%s: the hash is the same", name)
		}
	}
}

func TestHashesOfEqualPasswordsDiffer(t *testing.T) {
	first, second := secret(map[string]string{"password": "1234"}), secret(map[string]string{"password": "1234"})
	second.UID = "another"
	a, b := newCluster(first), newCluster(second)
	ref := Reference{Kind: Secret, Name: "db"}
	if resolve(t, NewTracker(a, a), ref).Hashes["Secret/db"] == resolve(t, NewTracker(b, b), ref).Hashes["Secret/db"] {
		t.Error("two Secrets with the same password have the same hash")
	}
}

func TestResolveReturnsMissing(t *testing.T) {
	c := newCluster(secret(map[string]string{"uri": "a"}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: namespace}, Data: map[string]string{"ca.crt": "x"}, BinaryData: map[string][]byte{"der": {1}}})
	got := resolve(t, NewTracker(c, c),
		Reference{Kind: Secret, Name: "db", Keys: []string{"uri", "missing"}},
		Reference{Kind: Secret, Name: "missing"},
		Reference{Kind: Secret, Name: "maybe", Optional: true},
		Reference{Kind: ConfigMap, Name: "ca", Keys: []string{"ca.crt", "der"}},
	)
	var missing []string
	for _, m := range got.Missing {
		missing = append(missing, m.String())
	}
	want := []string{"Secret db has no key missing; add it", "Secret missing does not exist; create it"}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("Missing differs (-want +got):\n%s", diff)
	}
	if len(got.Hashes) != 2 {
		t.Errorf("got hashes %v, want those of the two existing objects", got.Hashes)
	}
}

// A key is missing only if a reference requires it, even if another reference to the object has optional keys, or uses all keys.
func TestResolveReturnsOnlyRequiredKeysAsMissing(t *testing.T) {
	of := func(optional bool, keys ...string) Reference {
		return Reference{Kind: Secret, Name: "db", Keys: keys, Optional: optional}
	}
	for name, tc := range map[string]struct {
		refs []Reference
		want []Missing
	}{
		"optional key and required key":         {[]Reference{of(true, "region"), of(false, "uri")}, nil},
		"optional key and missing required key": {[]Reference{of(true, "region"), of(false, "url")}, []Missing{{Reference: of(false, "region", "url"), Key: "url"}}},
		"key that is optional and required":     {[]Reference{of(true, "url"), of(false, "url")}, []Missing{{Reference: of(false, "url"), Key: "url"}}},
		"all keys and missing required key":     {[]Reference{of(false), of(false, "url")}, []Missing{{Reference: of(false), Key: "url"}}},
		"all keys and optional key":             {[]Reference{of(false), of(true, "url")}, nil},
	} {
		c := newCluster(secret(map[string]string{"uri": "a"}))
		if diff := cmp.Diff(tc.want, resolve(t, NewTracker(c, c), tc.refs...).Missing); diff != "" {
			t.Errorf("%s: missing (-want +got):\n%s", name, diff)
		}
	}
}

// A shared object is read once for all owners, and once after each change. Objects in different namespaces are not shared.
func TestResolveSharesContentBetweenOwners(t *testing.T) {
	other := secret(map[string]string{"uri": "other"})
	other.Namespace = "other"
	c := newCluster(secret(map[string]string{"uri": "a"}), other, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace, UID: "map"}})
	tracker := NewTracker(c, c)
	ref := Reference{Kind: Secret, Name: "db"}
	resolveForOwners := func() (hashes []string) {
		for range 3 {
			resolved, err := tracker.Resolve(t.Context(), namespace, []Reference{ref})
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, resolved.Hashes[ref.ID()])
		}
		return hashes
	}
	before := resolveForOwners()
	if c.reads != 1 || before[0] != before[1] || before[1] != before[2] {
		t.Errorf("got %d reads and hashes %v, want one read and equal hashes", c.reads, before)
	}
	live := secret(map[string]string{"uri": "b"})
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	after := resolveForOwners()
	if c.reads != 2 || after[0] == before[0] || after[0] != after[2] {
		t.Errorf("got %d reads and hashes %v after a change, want one more read for all owners", c.reads, after)
	}
	inOther, err := tracker.Resolve(t.Context(), "other", []Reference{ref})
	if err != nil || inOther.Hashes[ref.ID()] == after[0] {
		t.Errorf("got %v, error %v in another namespace, want another hash", inOther, err)
	}
	resolve(t, tracker, Reference{Kind: ConfigMap, Name: "db"})
	if c.reads != 4 {
		t.Errorf("got %d reads, want 4", c.reads)
	}
}

func TestResolveErrorNamesObject(t *testing.T) {
	c := newCluster(secret(nil))
	c.readErr = errors.New("timeout")
	_, err := NewTracker(c, c).Resolve(t.Context(), namespace, []Reference{{Kind: Secret, Name: "db"}})
	if err == nil || !strings.Contains(err.Error(), "reading Secret apps/db: timeout") {
		t.Errorf("got error %v, want one that names the Secret", err)
	}
}

func TestFindMissing(t *testing.T) {
	refs := []Reference{{Kind: Secret, Name: "existing"}, {Kind: Secret, Name: "absent"}, {Kind: ConfigMap, Name: "absent", Optional: true}}
	missing, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(r Reference) (bool, error) { return r.Name == "existing", nil })
	if diff := cmp.Diff([]Missing{{Reference: refs[1]}}, missing); diff != "" || err != nil {
		t.Errorf("FindMissing() returns error %v, differs (-want +got):\n%s", err, diff)
	}
	if _, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(Reference) (bool, error) { return false, errors.New("timeout") }); err == nil || !strings.Contains(err.Error(), "Secret existing: timeout") {
		t.Errorf("got error %v, want that of the lookup", err)
	}
}
