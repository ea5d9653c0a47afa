package modelmesh

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// passMemory is what one pass over a namespace leaves for the next. It is small and may be lost: a restart costs some reads.
type passMemory struct {
	mu sync.Mutex
	// idle says since when no model needs a runtime.
	idle map[types.NamespacedName]time.Time
	// missing marks Deployments that were looked up past the cache, which does not hold those of the original, and were not there.
	missing map[types.NamespacedName]bool
	// headless is what the Service was seen to be.
	headless map[string]bool
	// owners that no cache holds.
	owners map[string]ownerFacts
}

// ownerFacts are what is looked at of an owner. Its uid never changes while we run.
type ownerFacts struct {
	uid types.UID
	// restricted: pods that could run as root are not let in, as its labels said when it was read.
	restricted bool
}

func newMemory() *passMemory {
	return &passMemory{
		idle: map[types.NamespacedName]time.Time{}, missing: map[types.NamespacedName]bool{}, headless: map[string]bool{}, owners: map[string]ownerFacts{},
	}
}

// idleSince returns since when a runtime is not needed; the zero time where that is not known.
func (m *passMemory) idleSince(namespace, runtime string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idle[inside(namespace, runtime)]
}

// setIdle notes it; the zero time is that it is needed.
func (m *passMemory) setIdle(namespace, runtime string, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since.IsZero() {
		delete(m.idle, inside(namespace, runtime))
		return
	}
	m.idle[inside(namespace, runtime)] = since
}

// isMissing tells whether a Deployment was looked up before and was not there.
func (m *passMemory) isMissing(deployment types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missing[deployment]
}

func (m *passMemory) setMissing(deployment types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing[deployment] = true
}

// found has a Deployment looked up again when the cache does not show it any more: it may only have lost our label.
func (m *passMemory) found(deployment types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, deployment)
}

// wasHeadless tells what the Service of a namespace was seen to be, and whether it was seen.
func (m *passMemory) wasHeadless(namespace string) (headless, seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	headless, seen = m.headless[namespace]
	return headless, seen
}

func (m *passMemory) setHeadless(namespace string, headless bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.headless[namespace] = headless
}

// owner returns what is known of an owner, and whether anything is.
func (m *passMemory) owner(name string) (facts ownerFacts, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts, known = m.owners[name]
	return facts, known
}

func (m *passMemory) setOwner(name string, facts ownerFacts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owners[name] = facts
}

// forgetRuntime drops what is known of a runtime that is not served.
func (m *passMemory) forgetRuntime(namespace, runtime string) {
	m.setIdle(namespace, runtime, time.Time{})
}

// forget drops what is known of a namespace.
func (m *passMemory) forget(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.idle, func(k types.NamespacedName, _ time.Time) bool { return k.Namespace == namespace })
	maps.DeleteFunc(m.missing, func(k types.NamespacedName, _ bool) bool { return k.Namespace == namespace })
	delete(m.headless, namespace)
}
