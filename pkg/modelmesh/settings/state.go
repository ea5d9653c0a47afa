package settings

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// document is what is kept of a ConfigMap.
type document struct {
	types.NamespacedName
	uid     types.UID
	version string            // of the ConfigMap, when it began to say this
	data    map[string]string // of the key that counts, if it has that
	said    string            // text of the last Event
}

// same tells whether two documents say the same, and are one object.
func (d *document) same(other *document) bool {
	if d == nil || other == nil {
		return d == other
	}
	return d.uid == other.uid && maps.Equal(d.data, other.data)
}

// over lays the text under a key over settings; read is Read or ReadOverride. Without the key the ConfigMap was meant for something
// else, or its key is misspelt. An error names the ConfigMap.
func (d *document) over(below Settings, key string, read func(Settings, string) (Settings, []string, error)) (Settings, []string, error) {
	text, ok := d.data[key]
	if !ok {
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: %s %s", d.NamespacedName, noKey, key)
	}
	settings, notes, err := read(below, text)
	if err != nil {
		return Settings{}, nil, fmt.Errorf("ConfigMap %s: %w", d.NamespacedName, err)
	}
	return settings, notes, nil
}

// noKey has the words of the original.
const noKey = "User ConfigMap must contain a key named"

// object is what an Event is about. The version tells one mistake from the next: Events on one object with one reason are counted,
// and show the words of the first.
func (d *document) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, UID: d.uid, ResourceVersion: d.version},
	}
}

func newDocument(meta metav1.Object, data map[string]string) *document {
	d := &document{
		NamespacedName: types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()},
		uid:            meta.GetUID(), version: meta.GetResourceVersion(), data: map[string]string{},
	}
	for _, key := range []string{ConfigMapKey, DefaultsKey} {
		if text, ok := data[key]; ok {
			d.data[key] = text
		}
	}
	return d
}

// documentOf is the document of a ConfigMap, nil of none.
func documentOf(stored *corev1.ConfigMap) *document {
	if stored == nil {
		return nil
	}
	return newDocument(stored, stored.Data)
}

// looseDocument is the document of a ConfigMap in the form in which watches bring it.
func looseDocument(object *unstructured.Unstructured) *document {
	if object == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data") // the API server stores nothing else
	return newDocument(object, data)
}

// state is what was made of the documents.
type state struct {
	defaults *document // the last good ones
	based    bool      // defaults were good once
	current  *Settings // of the administrators; nil until they were good once
	trouble  error     // why current is nil
	spaces   map[string]*space
}

// space is what was made of the document of one namespace.
type space struct {
	from     *document // nil once what is below it has changed
	settings Settings
	good     bool // settings hold a good reading
}

// settle makes the administrators' settings of the documents. Where one is bad, what it said before stays in force.
func (s *state) settle(cfg config.ModelMesh, defaults, admin *document) (changed bool, said []message) {
	settings, all, err := layers(cfg, defaults, admin)
	if all[0].err == nil {
		s.defaults, s.based = defaults, true
	} else if s.based {
		var rest []finding
		settings, rest, err = layers(cfg, s.defaults, admin)
		all = append(all, rest[1:]...)
	}
	for _, f := range all {
		said = append(said, f.about.hear(f.notes, f.err, s.kept())...)
	}
	if err != nil {
		s.trouble = err
		return false, said
	}
	if s.current != nil && equality.Semantic.DeepEqual(*s.current, settings) {
		return false, said
	}
	s.current, s.trouble = &settings, nil
	for _, known := range s.spaces {
		known.from = nil
	}
	return true, said
}

// override returns the settings of a namespace with a document of its own. It is decoded when settings are requested, which happens
// for namespaces that are served only: what others keep under the name is their affair.
func (s *state) override(namespace string, from *document) (Settings, []message) {
	known := s.spaces[namespace]
	if known == nil {
		known = &space{}
		if s.spaces == nil {
			s.spaces = map[string]*space{}
		}
		s.spaces[namespace] = known
	}
	if known.from == from {
		return known.settings, nil
	}
	known.from = from
	settings, notes, err := from.over(*s.current, ConfigMapKey, ReadOverride)
	switch {
	case err == nil:
		known.settings, known.good = settings, true
	case !known.good:
		known.settings = *s.current
	}
	return known.settings, from.hear(notes, err, before)
}

// replace compares the documents of namespaces and returns those namespaces whose document has changed. Documents that have not
// stay the same objects in next.
func (s *state) replace(last, next map[string]*document) map[string]bool {
	moved := map[string]bool{}
	for namespace, document := range next {
		if known := last[namespace]; known.same(document) {
			next[namespace] = known
		} else {
			moved[namespace] = true
		}
	}
	for namespace := range last {
		if next[namespace] == nil {
			moved[namespace] = true
			delete(s.spaces, namespace)
		}
	}
	return moved
}

// What is in force while a document cannot be used.
const (
	before  = "the settings before stay in force"
	nothing = "no model is served until it is right"
)

// kept says what is in force without the documents of the administrators.
func (s *state) kept() string {
	if s.current == nil {
		return nothing
	}
	return before
}

// hear returns the messages about a document that were not reported yet; kept says what is in force after a mistake. A
// nil document has no author: what is wrong then is for the log.
func (d *document) hear(notes []string, err error, kept string) []message {
	m := message{about: d, reason: ReasonIgnored, text: strings.Join(notes, "\n")}
	if err != nil {
		m.reason, m.text = ReasonRefused, kept+": "+err.Error()
	}
	if d != nil {
		known := d.said == m.text
		d.said = m.text
		if known {
			return nil
		}
	}
	if m.text == "" {
		return nil
	}
	return []message{m}
}
