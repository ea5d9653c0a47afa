package raycluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
)

// memory is what is remembered of each cluster between two reconciles. All of it can be lost.
type memory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]*remembered
}

// remembered is what is remembered of one cluster. One worker at a time deals with a cluster.
type remembered struct {
	uid types.UID
	// cookie is the key in the Secret of the sidecar.
	cookie []byte
	// asked is the generation at which admission was asked to bring the pod templates up to date.
	asked int64
	// deleted are the pods that were deleted for want of a pull secret.
	deleted map[types.UID]bool
	// certificates is what their keeper remembers.
	certificates certificates.Memory
	// messages are the last ones on each topic.
	messages map[topic]string
}

// of returns what is remembered of a cluster, nothing at first.
func (m *memory) of(cluster *unstructured.Unstructured) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := client.ObjectKeyFromObject(cluster)
	known := m.clusters[name]
	if known == nil || known.uid != cluster.GetUID() {
		if m.clusters == nil {
			m.clusters = map[types.NamespacedName]*remembered{}
		}
		known = &remembered{uid: cluster.GetUID(), deleted: map[types.UID]bool{}, messages: map[topic]string{}}
		m.clusters[name] = known
	}
	return known
}

// replace forgets the cluster of that name unless it has the uid, and returns what was remembered; nil for nothing.
func (m *memory) replace(name types.NamespacedName, uid types.UID) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.clusters[name]
	if known == nil || known.uid == uid {
		return nil
	}
	delete(m.clusters, name)
	return known
}

// topic is what a user is informed about.
type topic string

// isNews remembers the message on a topic, and reports whether it differs from the last one.
func (k *remembered) isNews(about topic, text string) bool {
	if k.messages[about] == text {
		return false
	}
	k.messages[about] = text
	return true
}

// resolve forgets the last message on a topic, and reports whether there was one.
func (k *remembered) resolve(about topic) bool {
	_, open := k.messages[about]
	delete(k.messages, about)
	return open
}
