package openshift

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is what is remembered of one namespace. No credential is among it but the key of cookies.
type remembered struct {
	// cookie is the key of the sidecar's cookies.
	cookie []byte
	// gathered are the versions of what the storage entries were made of, and entries the version of the Secret that held them then.
	gathered, entries string
	// certificate is the version of the Secret with a certificate that was found good until renewal, authority its CA.
	certificate string
	authority   []byte
	renewal     time.Time
	// reported is the text of the last Event about each topic.
	reported map[topic]string
}

// topic is a matter about which Events are recorded.
type topic string

const (
	topicApply   topic = "apply"
	topicStorage topic = "storage"
)

// news notes the text about a topic, and reports whether it differs from the last one. An empty text ends the matter.
func (k *remembered) news(about topic, text string) bool {
	before := k.reported[about]
	if k.reported == nil {
		k.reported = map[topic]string{}
	}
	k.reported[about] = text
	return text != "" && text != before
}

// published is what is remembered of one InferenceService.
type published struct {
	uid types.UID
	// problem is the text of the last Event.
	problem string
}

// trusted is what is remembered of the certificate of one namespace.
type trusted struct{ version, text string }
