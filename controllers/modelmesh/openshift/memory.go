package openshift

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is what is remembered of one namespace. No credential is among it but the key of cookies.
type remembered struct {
	// cookie is the key of the sidecar's cookies.
	cookie []byte
	// renewal is when the certificate of the sidecar is due; zero for none.
	renewal time.Time
	// told is what users were told last about each topic.
	told map[topic]string
}

// topic is a matter about which users are told.
type topic string

const (
	topicApply   topic = "apply"
	topicStorage topic = "storage"
)

// news notes what is said about a topic, and tells whether it differs from what was said last. Empty ends the matter.
func (k *remembered) news(about topic, text string) bool {
	before := k.told[about]
	if k.told == nil {
		k.told = map[topic]string{}
	}
	k.told[about] = text
	return text != "" && text != before
}

// published is what is remembered of one InferenceService.
type published struct {
	uid types.UID
	// told is what users were told last.
	told string
}
