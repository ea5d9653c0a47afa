package reference

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// Tracker resolves references. It is safe for concurrent use.
type Tracker struct{ contents *ContentCache[content] }

// content holds a hash of the value of each key of an object, never the value.
type content struct {
	uid  types.UID
	keys map[string]string
	// empty has the keys without a value.
	empty sets.Set[string]
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
	return &Tracker{NewContentCache(cached, live, hashContent)}
}

// Resolve returns the state of references, which must not be merged: Merge does not keep which keys are required. It reads content only of
// objects whose resourceVersion changed since the last call. A missing object is no error.
func (t *Tracker) Resolve(ctx context.Context, namespace string, refs []Reference) (Resolved, error) {
	resolved := Resolved{Hashes: map[string]string{}}
	for _, ref := range Merge(refs) {
		c, exists, err := t.contents.get(ctx, cacheKey{ref.Kind, client.ObjectKey{Namespace: namespace, Name: ref.Name}})
		if err != nil {
			return Resolved{}, err
		}
		if !exists {
			if !ref.Optional {
				resolved.Missing = append(resolved.Missing, Missing{Reference: ref})
			}
			continue
		}
		resolved.Hashes[ref.ID()] = c.hash(ref.Keys)
		resolved.Missing = append(resolved.Missing, c.missingKeys(ref, refs)...)
	}
	return resolved, nil
}

// FindMissing returns the required objects of a namespace that do not exist. Unlike Resolve it reads no content. If exists is nil,
// the metadata of the objects is read.
func (t *Tracker) FindMissing(ctx context.Context, namespace string, refs []Reference, exists func(Reference) (bool, error)) ([]Missing, error) {
	if exists == nil {
		exists = func(ref Reference) (bool, error) {
			metadata, err := objectmeta.Get(ctx, t.contents.cached, ref.Kind.gvk(), client.ObjectKey{Namespace: namespace, Name: ref.Name})
			return metadata != nil, err
		}
	}
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

func hashContent(object *corev1.Secret) content {
	c := content{uid: object.UID, keys: make(map[string]string, len(object.Data)), empty: sets.New[string]()}
	for k, v := range object.Data {
		c.keys[k] = keyedHash(c.uid, v)
		if len(v) == 0 {
			c.empty.Insert(k)
		}
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

// missingKeys returns the missing keys of an object that references require. merged is the result of Merge, which joins required and
// optional keys.
func (c content) missingKeys(merged Reference, refs []Reference) []Missing {
	required := sets.New[string]()
	for _, ref := range refs {
		if ref.ID() == merged.ID() && !ref.Optional {
			required.Insert(ref.Keys...)
		}
	}
	var missing []Missing
	for _, k := range sets.List(required) {
		if _, ok := c.keys[k]; !ok || merged.NonEmpty && c.empty.Has(k) {
			missing = append(missing, Missing{Reference: merged, Key: k, Empty: ok})
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
