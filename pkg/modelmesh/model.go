package modelmesh

import (
	"cmp"
	"crypto/sha1" // names the content, as the original did; nothing is trusted for it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// The sources of models, as the mesh knows them: they are the owners of its vmodels and part of the ids of its models, so
// they never change.
const (
	SourcePredictor        = "ksp"
	SourceInferenceService = "isvc"
)

// parameterName is the storage parameter that names a claim.
const parameterClaimName = "name"

// Model is what a resource wants the mesh to serve, whatever kind of resource it is.
type Model struct {
	// Source is the id of the predictor source: SourcePredictor, SourceInferenceService or that of a plugin.
	Source    string
	Namespace string
	// Name of the resource, which is also the id under which users address the model.
	Name string
	UID  types.UID
	// Deleting tells that the resource is on its way out: the model is not loaded any more on its account.
	Terminating bool
	Spec        v1alpha1.PredictorSpec
}

// FromPredictor returns the model of a Predictor. The spec is shared, not copied.
func FromPredictor(p *v1alpha1.Predictor) Model {
	return Model{
		Source: SourcePredictor, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Terminating: !p.DeletionTimestamp.IsZero(), Spec: p.Spec,
	}
}

// Label is the type under which the mesh places the model: a runtime by name, else the format with its version and, joined by
// a vertical bar, the protocol. A runtime supports the model when it has every part, see Supports.
func (m Model) Label() string {
	if r := m.Spec.Runtime; r != nil && r.Name != "" {
		return runtimePrefix + r.Name
	}
	var b strings.Builder
	b.WriteString(formatPrefix + m.Spec.ModelType.Name)
	if v := stringValue(m.Spec.ModelType.Version); v != "" {
		b.WriteString(":" + v)
	}
	if p := stringValue(m.Spec.ProtocolVersion); p != "" {
		b.WriteString("|" + protocolPrefix + p)
	}
	return b.String()
}

// Path is where the model lies in its storage. Without storage there is none, even if the deprecated spec.path says one.
func (m Model) Path() string {
	switch s := m.Spec.Storage; {
	case s == nil:
		return ""
	case s.Path != nil:
		return *s.Path
	default:
		return m.Spec.Path
	}
}

// Parameters are the storage parameters that count, with the deprecated bucket among them; nil for none.
func (m Model) Parameters() map[string]string {
	switch s := m.Spec.Storage; {
	case s == nil:
		return nil
	case s.Parameters != nil:
		return s.Parameters
	case s.S3 != nil && s.S3.Bucket != nil:
		return map[string]string{"bucket": *s.S3.Bucket}
	default:
		return nil
	}
}

// Claim is the PersistentVolumeClaim that the parameters name; empty for none.
func (m Model) Claim() string {
	if p := m.Parameters(); p["type"] == "pvc" {
		return p[parameterClaimName]
	}
	return ""
}

// Invalid says what is wrong with the spec, first things first; empty when nothing is. The texts are those that users of
// ModelMesh know.
func (m Model) ValidationMessage() string {
	s := m.Spec.Storage
	switch {
	case s == nil:
		return ""
	case s.Path != nil && m.Spec.Path != "":
		return "Only one of spec.path and spec.storage.path can be specified"
	case s.SchemaPath != nil && m.Spec.SchemaPath != nil:
		return "Only one of spec.schemaPath and spec.storage.schemaPath can be specified"
	case s.PersistentVolumeClaim != nil:
		return "spec.storage.PersistentVolumeClaim is not supported"
	case s.S3 != nil && (s.Path != nil || s.SchemaPath != nil || s.Parameters != nil || s.Key != nil):
		return "spec.storage.s3 cannot be specified with any other keys in spec.storage"
	}
	return m.pathTraversalMessage()
}

// astray names a text that leads out of the storage. The puller joins these texts to the name of a file, beside
// files of the pod and of other models.
func (m Model) pathTraversalMessage() string {
	for _, at := range []struct{ field, text string }{
		{"path", m.Path()}, {"schemaPath", stringValue(cmp.Or(m.Spec.Storage.SchemaPath, m.Spec.SchemaPath))}, {"key", stringValue(m.StorageKey())},
		{"parameters[" + parameterClaimName + "]", m.Parameters()[parameterClaimName]},
	} {
		if slices.Contains(strings.Split(at.text, "/"), "..") {
			return fmt.Sprintf("spec.storage.%s %.200q leads out of the storage: leave out every '..'", at.field, at.text)
		}
	}
	return ""
}

// said is the value of an optional string; empty when it is not set.
func stringValue(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// HashLength is how much of the digest is part of an id.
const HashLength = 10

// key is what the puller needs to fetch a model and the adapter to load it.
type modelKey struct {
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
	k := modelKey{ModelType: m.Spec.ModelType, StorageParams: m.Parameters()}
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
