package apply

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A webhook of somebody else may change what we write, without a trace in the fields that we own. Each time the generation
// moves without us the object is looked at, and written again if it differs. Whoever does the same again and again wins: after
// as many equal answers the object is left as it is until it becomes another one, or something else is wanted of it.
const roundsBeforeRest = 2

// alteration stands for the content of an answer that is not what was sent; 0 when it is.
func (a *Applier) alteration(o owner, c child, answer *unstructured.Unstructured, others []metav1.OwnerReference) uint64 {
	want, err := c.render(a.Component, o, others)
	if err != nil || settled(want, answer, a.owned(answer), a.Client.Scheme()) {
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
	log.FromContext(ctx).Info("Somebody changes this object whenever it is written; it is left as it is", "object", title(c.key.Kind, c.key.Namespace, c.key.Name))
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
