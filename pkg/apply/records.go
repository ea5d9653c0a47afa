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

// exists reports whether the record holds a response. A record without one shows that a write was attempted, and its result is unknown.
func (r record) exists() bool { return !r.time.IsZero() }

// recordKey identifies a child of an owner.
type recordKey struct {
	owner types.UID
	key
}

// recordStore holds a record for each recordKey.
type recordStore struct{ sync.Map }

// get returns a record, and whether this process ever wrote or read the object.
func (s *recordStore) get(owner types.UID, k key) (r record, attempted bool) {
	value, attempted := s.Load(recordKey{owner, k})
	r, _ = value.(record)
	return r, attempted
}

func (s *recordStore) deleteIf(matches func(recordKey) bool) {
	s.Range(func(k, _ any) bool {
		if child, ok := k.(recordKey); ok && matches(child) {
			s.Delete(k)
		}
		return true
	})
}

// Forget deletes the records of an owner. Call it when the owner is deleted.
func (a *Applier) Forget(owner types.UID) {
	a.records.deleteIf(func(k recordKey) bool { return k.owner == owner })
}

// ForgetNamespace deletes the records of all objects in a namespace. Call it when the namespace is deleted or no object in it is desired.
func (a *Applier) ForgetNamespace(namespace string) {
	a.records.deleteIf(func(k recordKey) bool { return k.Namespace == namespace })
}

// legacyListedKey is the key of the record that legacy objects of an owner were listed.
var legacyListedKey key

// Version returns the uid and resourceVersion of a child after its last write or read; both are empty if unknown.
func (a *Applier) Version(owner types.UID, kind schema.GroupVersionKind, name types.NamespacedName) (types.UID, string) {
	last, _ := a.records.get(owner, key{kind, name})
	return last.uid, last.version
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

func (a *Applier) storeRecord(o owner, c *child, response *unstructured.Unstructured, mutationHash uint64) {
	a.records.Store(recordKey{o.uid, c.key}, record{
		desiredHash:  c.desiredHash,
		uid:          response.GetUID(),
		version:      response.GetResourceVersion(),
		time:         a.Clock.Now(),
		ownFields:    digestOf(response.GetManagedFields(), a.FieldOwner),
		generation:   response.GetGeneration(),
		mutationHash: mutationHash,
	})
}
