package apply

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// seed makes the hashes of this process; none of them is ever stored in the cluster.
var seed = maphash.MakeSeed()

// key names one child.
type key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// record is what the API server answered when a child was last written or looked at.
type record struct {
	intent  uint64    // hash of what was desired
	uid     types.UID // of the live object
	version string    // resourceVersion of the answer
	at      time.Time // of the answer
	fields  digest    // our own managed fields entry
	// generation is that of the answer, 0 for kinds without one. Foreign admission webhooks move it and leave our fields ours.
	generation int64
	// differs stands for what the answer held when that was not what was sent; rounds counts how often it was the same.
	differs uint64
	rounds  int
}

// known says that the record is of an object, and not only of a try to make one.
func (r record) known() bool { return !r.at.IsZero() }

// memory holds the records of all owners by their uid. Its lock is held only while the maps are touched.
type memory struct {
	mu      sync.RWMutex
	records map[types.UID]map[key]record
}

func (m *memory) recall(owner types.UID, k key) (record, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.records[owner][k]
	return r, r.known()
}

// tried says whether an object was ever written or looked at in the life of this process.
func (m *memory) tried(owner types.UID, k key) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, tried := m.records[owner][k]
	return tried
}

func (m *memory) remember(owner types.UID, k key, r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[owner] == nil {
		m.records[owner] = map[key]record{}
	}
	m.records[owner][k] = r
}

// doubt drops what is known of an object, but not that it was tried.
func (m *memory) doubt(owner types.UID, k key) { m.remember(owner, k, record{}) }

func (m *memory) drop(owner types.UID, k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records[owner], k)
}

func (m *memory) forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, owner)
}

func (m *memory) forgetNamespace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, records := range m.records {
		maps.DeleteFunc(records, func(k key, _ record) bool { return k.Namespace == namespace })
	}
}

// searched is the key under which it is noted that objects of older operators have been searched for an owner.
var searched key

// Version returns the uid and the resourceVersion that a child of an owner had when it was last written or looked at here; both
// are empty when that is not known.
func (a *Applier) Version(owner types.UID, kind schema.GroupVersionKind, name types.NamespacedName) (types.UID, string) {
	known, _ := a.memory.recall(owner, key{kind, name})
	return known.uid, known.version
}

// A foreign webhook may change what we write, without a trace in the fields that we own. Each time the generation
// moves without us the object is checked, and written again if it differs. A webhook that does the same again and again wins: after
// as many equal answers the object is left as it is until it becomes another one, or something else is wanted of it.
const roundsBeforeRest = 2

// alteration stands for the content of an answer that is not what was sent; 0 when it is.
func (a *Applier) alteration(o owner, c child, answer *unstructured.Unstructured) uint64 {
	if done, _, err := a.asDesired(o, c, answer); err != nil || done {
		return 0
	}
	return contentOf(answer)
}

// contentOf is a hash of what an object holds, without what every write and every controller moves.
func contentOf(object *unstructured.Unstructured) uint64 {
	content := maps.Clone(object.Object)
	content["metadata"] = []any{object.GetLabels(), object.GetAnnotations()}
	delete(content, "status")
	data, err := json.Marshal(content)
	if err != nil {
		return 0
	}
	return maphash.Bytes(seed, data) | 1 // never that of an unaltered answer
}

// rests says whether a live object that differs from what is wanted is to be left so.
func (a *Applier) rests(ctx context.Context, o owner, c child, live *unstructured.Unstructured) bool {
	known, ok := a.memory.recall(o.uid, c.key)
	if !ok || known.intent != c.intent || known.rounds < roundsBeforeRest || known.differs != contentOf(live) ||
		!a.labelled(live) || !tied(live, o, c.Ownership) {
		return false
	}
	a.skip(c.key.Kind)
	a.remember(o, c, live, known.differs)
	log.FromContext(ctx).Info("Another client changes this object whenever it is written; it is left as it is", "object", title(c.key.Kind, c.key.Namespace, c.key.Name))
	return true
}

func (a *Applier) remember(o owner, c child, answer *unstructured.Unstructured, differs uint64) {
	now := record{
		intent:     c.intent,
		uid:        answer.GetUID(),
		version:    answer.GetResourceVersion(),
		at:         a.Clock.Now(),
		fields:     digestOf(answer.GetManagedFields(), a.FieldOwner),
		generation: answer.GetGeneration(),
		differs:    differs,
	}
	if differs != 0 {
		now.rounds = 1
		if before, ok := a.memory.recall(o.uid, c.key); ok && before.differs == differs && before.intent == c.intent {
			now.rounds = before.rounds + 1
		}
	}
	a.memory.remember(o.uid, c.key, now)
}
