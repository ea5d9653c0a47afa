package reference

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Tracker resolves references. It is safe for concurrent use.
type Tracker struct {
	cached client.Reader
	live   client.Reader
	owners reconciler.UIDMap[map[string]content]

	mu sync.Mutex
	// latest holds the contents that were read last, for owners that share an object.
	latest map[contentKey]content
}

// maxLatest is the maximum size of Tracker.latest.
const maxLatest = 1000

// contentKey identifies a referenced object.
type contentKey struct {
	kind Kind
	client.ObjectKey
}

// content holds the hashes of the keys of one version of an object, never the values.
type content struct {
	uid     types.UID
	version string
	keys    map[string]string
}

// Resolved is the state of a set of references.
type Resolved struct {
	// Hashes maps the ID of each existing object to a hash of its used keys.
	Hashes map[string]string
	// Missing lists required objects and keys that do not exist, sorted by ID.
	Missing []Missing
}

// NewTracker returns a Tracker that reads metadata from cached, a cache of the metadata of Secrets and ConfigMaps, and content from live.
func NewTracker(cached, live client.Reader) *Tracker {
	return &Tracker{cached: cached, live: live, latest: map[contentKey]content{}}
}

// Resolve returns the state of the references of one owner. It reads content only of objects whose resourceVersion changed since the last
// call for any owner. Errors are those of the API server except NotFound.
func (t *Tracker) Resolve(ctx context.Context, owner types.UID, namespace string, refs []Reference) (Resolved, error) {
	refs = Merge(refs)
	last, _ := t.owners.Get(owner)
	contents := make(map[string]content, len(refs))
	resolved := Resolved{Hashes: map[string]string{}}
	for _, ref := range refs {
		c, exists, err := t.resolveContent(ctx, namespace, ref, last[ref.ID()])
		if err != nil {
			return Resolved{}, err
		}
		if !exists {
			if !ref.Optional {
				resolved.Missing = append(resolved.Missing, Missing{Reference: ref})
			}
			continue
		}
		contents[ref.ID()] = c
		resolved.Hashes[ref.ID()] = c.hash(ref.Keys)
		resolved.Missing = append(resolved.Missing, c.missingKeys(ref)...)
	}
	t.owners.Set(owner, contents)
	return resolved, nil
}

// FindMissing returns the required objects that do not exist. Unlike Resolve it reads no content.
func FindMissing(refs []Reference, exists func(Reference) (bool, error)) ([]Missing, error) {
	var missing []Missing
	for _, ref := range refs {
		if ref.Optional {
			continue
		}
		if found, err := exists(ref); err != nil {
			return nil, fmt.Errorf("looking for %s %s: %w", ref.Kind, ref.Name, err)
		} else if !found {
			missing = append(missing, Missing{Reference: ref})
		}
	}
	return missing, nil
}

// FindMissing returns the required objects of a namespace that do not exist.
func (t *Tracker) FindMissing(ctx context.Context, namespace string, refs []Reference) ([]Missing, error) {
	return FindMissing(refs, func(ref Reference) (bool, error) {
		err := t.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, newMetadata(ref.Kind))
		return err == nil, client.IgnoreNotFound(err)
	})
}

// Forget deletes the stored hashes of an owner.
func (t *Tracker) Forget(owner types.UID) { t.owners.Delete(owner) }

func (t *Tracker) resolveContent(ctx context.Context, namespace string, ref Reference, last content) (content, bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	live := newMetadata(ref.Kind)
	if err := t.cached.Get(ctx, key, live); apierrors.IsNotFound(err) {
		return content{}, false, nil
	} else if err != nil {
		return content{}, false, fmt.Errorf("reading metadata of %s %s: %w", ref.Kind, key, err)
	}
	if last.matches(live) {
		return last, true, nil
	}
	if shared := t.getLatest(contentKey{ref.Kind, key}); shared.matches(live) {
		return shared, true, nil
	}
	c, err := t.readContent(ctx, key, ref.Kind)
	if client.IgnoreNotFound(err) != nil {
		return content{}, false, fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	}
	if err != nil {
		return content{}, false, nil
	}
	t.setLatest(contentKey{ref.Kind, key}, c)
	return c, true, nil
}

// matches reports whether this is the content of the given version of an object.
func (c content) matches(object metav1.Object) bool {
	return c.uid == object.GetUID() && c.version == object.GetResourceVersion()
}

func (t *Tracker) getLatest(at contentKey) content {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest[at]
}

func (t *Tracker) setLatest(at contentKey, c content) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.latest) >= maxLatest {
		clear(t.latest)
	}
	t.latest[at] = c
}

// newMetadata returns an object for reads of metadata.
func newMetadata(kind Kind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: string(kind)}}
}

func (t *Tracker) readContent(ctx context.Context, key client.ObjectKey, kind Kind) (content, error) {
	if kind == Secret {
		s := &corev1.Secret{}
		if err := t.live.Get(ctx, key, s); err != nil {
			return content{}, err
		}
		return newContent(s.ObjectMeta, s.Data, nil), nil
	}
	m := &corev1.ConfigMap{}
	if err := t.live.Get(ctx, key, m); err != nil {
		return content{}, err
	}
	return newContent(m.ObjectMeta, m.BinaryData, m.Data), nil
}

func newContent(meta metav1.ObjectMeta, binary map[string][]byte, text map[string]string) content {
	c := content{uid: meta.UID, version: meta.ResourceVersion, keys: make(map[string]string, len(binary)+len(text))}
	for k, v := range binary {
		c.keys[k] = keyedHash(c.uid, v)
	}
	for k, v := range text {
		c.keys[k] = keyedHash(c.uid, []byte(v))
	}
	return c
}

// hash returns a hash of the given keys that exist; no keys means all.
func (c content) hash(keys []string) string {
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(c.keys))
	}
	var all []byte
	for _, k := range keys {
		if h, ok := c.keys[k]; ok {
			all = append(all, k+"\x00"+h+"\x00"...)
		}
	}
	return keyedHash(c.uid, all)
}

func (c content) missingKeys(ref Reference) []Missing {
	if ref.Optional {
		return nil
	}
	var missing []Missing
	for _, k := range ref.Keys {
		if _, ok := c.keys[k]; !ok {
			missing = append(missing, Missing{Reference: ref, Key: k})
		}
	}
	return missing
}

// keyedHash returns an HMAC with the uid of the object as key. The hash is stored on workloads, which have more readers than Secrets: a
// plain hash would allow guessing a weak password.
func keyedHash(uid types.UID, value []byte) string {
	mac := hmac.New(sha256.New, []byte(uid))
	mac.Write(value)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
