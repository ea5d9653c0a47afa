package apply

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// hashSeed seeds all hashes of this process. They are never stored in the cluster.
var hashSeed = maphash.MakeSeed()

// key identifies one child.
type key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// record is the state of a child after its last write or read.
type record struct {
	desiredHash uint64    // of the desired object
	uid         types.UID // of the live object
	version     string    // resourceVersion of the response
	time        time.Time // of the response
	ownFields   digest    // of the managed fields entry of FieldOwner
	// generation is 0 for kinds without one. Mutating webhooks of other clients raise it without a change of ownFields.
	generation int64
	// mutationHash is the hash of a response that differs from the request; 0 for none.
	mutationHash uint64
}

// exists reports whether the record holds a response, and not only an attempted write.
func (r record) exists() bool { return !r.time.IsZero() }

// recordStore holds the records by owner and child.
type recordStore struct {
	mu      sync.RWMutex
	byOwner map[types.UID]map[key]record
}

func (s *recordStore) get(owner types.UID, k key) (record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.byOwner[owner][k]
	return r, r.exists()
}

// attempted reports whether this process ever wrote or read an object.
func (s *recordStore) attempted(owner types.UID, k key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, attempted := s.byOwner[owner][k]
	return attempted
}

func (s *recordStore) set(owner types.UID, k key, r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOwner[owner] == nil {
		s.byOwner[owner] = map[key]record{}
	}
	s.byOwner[owner][k] = r
}

// invalidate deletes the content of a record, but not the information that a write was attempted.
func (s *recordStore) invalidate(owner types.UID, k key) { s.set(owner, k, record{}) }

func (s *recordStore) delete(owner types.UID, k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byOwner[owner], k)
}

func (s *recordStore) deleteOwner(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byOwner, owner)
}

func (s *recordStore) deleteNamespace(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, records := range s.byOwner {
		maps.DeleteFunc(records, func(k key, _ record) bool { return k.Namespace == namespace })
	}
}

// legacyListedKey is the key of the record that legacy objects of an owner were listed.
var legacyListedKey key

// Version returns the uid and resourceVersion of a child after its last write or read; both are empty if unknown.
func (a *Applier) Version(owner types.UID, kind schema.GroupVersionKind, name types.NamespacedName) (types.UID, string) {
	last, _ := a.records.get(owner, key{kind, name})
	return last.uid, last.version
}

// Mutating webhooks leave no trace in ownFields, so an object whose generation changed is compared, and applied again if it differs. If it is
// what the last apply resulted in, another apply would result in the same: the object is left until its content or the desired object changes.

// hashMutation returns the hash of a response that differs from the request; 0 if it does not.
func (a *Applier) hashMutation(o owner, c child, response *unstructured.Unstructured) uint64 {
	if upToDate, _, err := a.isUpToDate(o, c, response); err != nil || upToDate {
		return 0
	}
	return hashContent(response)
}

// hashContent returns a hash of an object without status and the metadata that every write changes.
func hashContent(object *unstructured.Unstructured) uint64 {
	content := maps.Clone(object.Object)
	content["metadata"] = []any{object.GetLabels(), object.GetAnnotations(), object.GetOwnerReferences()}
	delete(content, "status")
	data, err := json.Marshal(content)
	if err != nil {
		return 0
	}
	return maphash.Bytes(hashSeed, data) | 1 // never 0, which is no mutation
}

func (a *Applier) storeRecord(o owner, c child, response *unstructured.Unstructured, mutationHash uint64) {
	a.records.set(o.uid, c.key, record{
		desiredHash:  c.desiredHash,
		uid:          response.GetUID(),
		version:      response.GetResourceVersion(),
		time:         a.Clock.Now(),
		ownFields:    digestOf(response.GetManagedFields(), a.FieldOwner),
		generation:   response.GetGeneration(),
		mutationHash: mutationHash,
	})
}
