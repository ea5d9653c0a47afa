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
	// looked marks Deployments whose name was looked up past the cache, which does not hold those of the original.
	looked map[types.NamespacedName]bool
	// headless is what the Service was seen to be.
	headless map[string]bool
	// uids of owners that no cache holds, which never change while we run.
	uids map[string]types.UID
}

func newMemory() *passMemory {
	return &passMemory{
		idle: map[types.NamespacedName]time.Time{}, looked: map[types.NamespacedName]bool{}, headless: map[string]bool{}, uids: map[string]types.UID{},
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

// hasLooked tells whether a Deployment was looked up before.
func (m *passMemory) hasLooked(deployment types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looked[deployment]
}

func (m *passMemory) setLooked(deployment types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked[deployment] = true
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

// uid of an owner, "" where it is not known.
func (m *passMemory) uid(owner string) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uids[owner]
}

func (m *passMemory) setUID(owner string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uids[owner] = uid
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
	maps.DeleteFunc(m.looked, func(k types.NamespacedName, _ bool) bool { return k.Namespace == namespace })
	delete(m.headless, namespace)
}
