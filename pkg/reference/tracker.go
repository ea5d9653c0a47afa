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
	// latest are the contents that were read last, for owners that share an object.
	latest map[place]content
}

// maxLatest bounds them.
const maxLatest = 1000

// place is where an object is.
type place struct {
	kind Kind
	client.ObjectKey
}

// content is what is remembered of one version of an object: hashes, never the values.
type content struct {
	uid     types.UID
	version string
	keys    map[string]string
}

// Resolved is the state of a set of references.
type Resolved struct {
	// Hashes maps the ID of every object that exists to a hash of the keys that are consumed.
	Hashes map[string]string
	// Missing lists the objects and keys that are required and do not exist, sorted by ID.
	Missing []Missing
}

// NewTracker returns a Tracker that reads metadata from cached, which must hold Secrets and ConfigMaps as metadata,
// and content from live.
func NewTracker(cached, live client.Reader) *Tracker {
	return &Tracker{cached: cached, live: live, latest: map[place]content{}}
}

// Resolve returns the state of the references of one owner in a namespace. It reads content only of objects whose
// resourceVersion has moved since the last call of this or another owner. Errors are those of the API server, NotFound excepted.
func (t *Tracker) Resolve(ctx context.Context, owner types.UID, namespace string, refs []Reference) (Resolved, error) {
	refs = Merge(refs)
	known, _ := t.owners.Get(owner)
	seen := make(map[string]content, len(refs))
	resolved := Resolved{Hashes: map[string]string{}}
	for _, ref := range refs {
		c, exists, err := t.read(ctx, namespace, ref, known[ref.ID()])
		if err != nil {
			return Resolved{}, err
		}
		if !exists {
			if !ref.Optional {
				resolved.Missing = append(resolved.Missing, Missing{Reference: ref})
			}
			continue
		}
		seen[ref.ID()] = c
		resolved.Hashes[ref.ID()] = c.hash(ref.Keys)
		resolved.Missing = append(resolved.Missing, c.missing(ref)...)
	}
	t.owners.Set(owner, seen)
	return resolved, nil
}

// FindMissing returns those of the required objects that do not exist. Unlike Resolve it reads nothing but whether they do.
func FindMissing(refs []Reference, exists func(Reference) (bool, error)) ([]Missing, error) {
	var absent []Missing
	for _, ref := range refs {
		if ref.Optional {
			continue
		}
		if there, err := exists(ref); err != nil {
			return nil, fmt.Errorf("looking for %s %s: %w", ref.Kind, ref.Name, err)
		} else if !there {
			absent = append(absent, Missing{Reference: ref})
		}
	}
	return absent, nil
}

// FindMissing returns those of the required objects of a namespace that do not exist.
func (t *Tracker) FindMissing(ctx context.Context, namespace string, refs []Reference) ([]Missing, error) {
	return FindMissing(refs, func(ref Reference) (bool, error) {
		err := t.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, head(ref.Kind))
		return err == nil, client.IgnoreNotFound(err)
	})
}

// Forget drops what is remembered for an owner.
func (t *Tracker) Forget(owner types.UID) { t.owners.Delete(owner) }

func (t *Tracker) read(ctx context.Context, namespace string, ref Reference, known content) (content, bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	live := head(ref.Kind)
	if err := t.cached.Get(ctx, key, live); apierrors.IsNotFound(err) {
		return content{}, false, nil
	} else if err != nil {
		return content{}, false, fmt.Errorf("reading metadata of %s %s: %w", ref.Kind, key, err)
	}
	if known.is(live) {
		return known, true, nil
	}
	if shared := t.shared(place{ref.Kind, key}); shared.is(live) {
		return shared, true, nil
	}
	c, err := t.fetch(ctx, key, ref.Kind)
	if client.IgnoreNotFound(err) != nil {
		return content{}, false, fmt.Errorf("reading %s %s: %w", ref.Kind, key, err)
	}
	if err != nil {
		return content{}, false, nil
	}
	t.share(place{ref.Kind, key}, c)
	return c, true, nil
}

// is says whether it is the content of this version of an object.
func (c content) is(object metav1.Object) bool {
	return c.uid == object.GetUID() && c.version == object.GetResourceVersion()
}

func (t *Tracker) shared(at place) content {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest[at]
}

func (t *Tracker) share(at place, c content) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.latest) >= maxLatest {
		clear(t.latest)
	}
	t.latest[at] = c
}

// head is an object of which only the metadata is read.
func head(kind Kind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: string(kind)}}
}

func (t *Tracker) fetch(ctx context.Context, key client.ObjectKey, kind Kind) (content, error) {
	if kind == Secret {
		s := &corev1.Secret{}
		if err := t.live.Get(ctx, key, s); err != nil {
			return content{}, err
		}
		return digest(s.ObjectMeta, s.Data, nil), nil
	}
	m := &corev1.ConfigMap{}
	if err := t.live.Get(ctx, key, m); err != nil {
		return content{}, err
	}
	return digest(m.ObjectMeta, m.BinaryData, m.Data), nil
}

func digest(meta metav1.ObjectMeta, binary map[string][]byte, text map[string]string) content {
	c := content{uid: meta.UID, version: meta.ResourceVersion, keys: make(map[string]string, len(binary)+len(text))}
	for k, v := range binary {
		c.keys[k] = short(c.uid, v)
	}
	for k, v := range text {
		c.keys[k] = short(c.uid, []byte(v))
	}
	return c
}

// hash covers the consumed keys that exist; no keys means all.
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
	return short(c.uid, all)
}

func (c content) missing(ref Reference) []Missing {
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

// short is a keyed hash. It is recorded on workloads, which more people may read than the Secret: without the uid of the
// Secret as a key, a weak password could be guessed from it.
func short(uid types.UID, value []byte) string {
	mac := hmac.New(sha256.New, []byte(uid))
	mac.Write(value)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
