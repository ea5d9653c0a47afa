package modelmesh

import (
	"crypto/sha1" // names the content, as the original did; nothing is trusted for it
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// HashLength is how much of the digest is part of an id.
const HashLength = 10

// key is what the puller needs to fetch a model and the adapter to load it.
type key struct {
	StorageKey    *string            `json:"storage_key,omitempty"`
	StorageParams map[string]string  `json:"storage_params,omitempty"`
	ModelType     v1alpha1.ModelType `json:"model_type"`
	SchemaPath    *string            `json:"schema_path,omitempty"`
}

// ID is the id of the concrete model that the spec describes: another spec is another model for the mesh. The JSON of the spec, in
// the order of its type, is what is hashed.
func (m Model) ID() string {
	document, _ := json.Marshal(m.Spec) // texts, maps of texts and a bool: all have a form
	digest := sha1.Sum(document)
	return m.Name + "__" + m.Source + "-" + hex.EncodeToString(digest[:])[:HashLength]
}

// StorageKey is the entry of the storage Secret that the model names, in either form; nil when it names none.
func (m Model) StorageKey() *string {
	switch s := m.Spec.Storage; {
	case s == nil:
		return nil
	case s.Key == nil && s.S3 != nil:
		return &s.S3.SecretKey
	default:
		return s.Key
	}
}

// Key is the document that accompanies the model to the runtime that loads it.
func (m Model) Key() (string, error) {
	k := key{ModelType: m.Spec.ModelType, StorageParams: m.Parameters()}
	if s := m.Spec.Storage; s != nil {
		k.SchemaPath, k.StorageKey = s.SchemaPath, m.StorageKey()
		if k.SchemaPath == nil {
			k.SchemaPath = m.Spec.SchemaPath
		}
	}
	document, err := json.Marshal(k)
	if err != nil {
		return "", fmt.Errorf("encoding the key of model %s/%s: %w", m.Namespace, m.Name, err)
	}
	return string(document), nil
}
