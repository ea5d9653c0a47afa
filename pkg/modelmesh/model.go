package modelmesh

import (
	"crypto/sha1" // an identifier of the content, as in the legacy controller; not used for security
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// Sources of models. The mesh stores them as owners of vmodels and in model IDs, so they must never change.
const (
	SourcePredictor        = "ksp"
	SourceInferenceService = "isvc"
)

// parameterClaimName is the storage parameter with the name of a PersistentVolumeClaim.
const parameterClaimName = "name"

// Model is the desired state of a model in the mesh, for any kind of resource.
type Model struct {
	// Source is SourcePredictor or SourceInferenceService.
	Source    string
	Namespace string
	// Name is the name of the resource and the ID of the vmodel.
	Name string
	UID  types.UID
	// Terminating is true if the resource has a deletionTimestamp.
	Terminating bool
	Spec        v1alpha1.PredictorSpec
}

// FromPredictor returns the model of a Predictor. It does not copy the spec.
func FromPredictor(p *v1alpha1.Predictor) Model {
	return Model{
		Source: SourcePredictor, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Terminating: !p.DeletionTimestamp.IsZero(), Spec: p.Spec,
	}
}

// Label returns the model type by which the mesh selects pods: a runtime by name, or the format with its version and the protocol, joined
// by a vertical bar. See HasLabels.
func (m Model) Label() string {
	if r := m.Spec.Runtime; r != nil && r.Name != "" {
		return runtimePrefix + r.Name
	}
	var b strings.Builder
	b.WriteString(formatPrefix + m.Spec.ModelType.Name)
	if v := ptr.Deref(m.Spec.ModelType.Version, ""); v != "" {
		b.WriteString(":" + v)
	}
	if p := ptr.Deref(m.Spec.ProtocolVersion, ""); p != "" {
		b.WriteString("|" + protocolPrefix + p)
	}
	return b.String()
}

// Path returns the path of the model in its storage. Without spec.storage it is empty, even if the deprecated spec.path is set.
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

// Parameters returns the storage parameters, or the deprecated bucket as a parameter.
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

// Claim returns the PersistentVolumeClaim in the parameters, or "".
func (m Model) Claim() string {
	if p := m.Parameters(); p["type"] == "pvc" {
		return p[parameterClaimName]
	}
	return ""
}

// ValidationMessage returns the first error in the spec, or "". All messages but the one about ".." begin as in the legacy controller.
func (m Model) ValidationMessage() string {
	s := m.Spec.Storage
	switch {
	case s == nil:
		return ""
	case s.Path != nil && m.Spec.Path != "":
		return "Only one of spec.path and spec.storage.path can be specified: remove spec.path"
	case s.SchemaPath != nil && m.Spec.SchemaPath != nil:
		return "Only one of spec.schemaPath and spec.storage.schemaPath can be specified: remove spec.schemaPath"
	case s.PersistentVolumeClaim != nil:
		return "spec.storage.PersistentVolumeClaim is not supported: set type: pvc and name in spec.storage.parameters"
	case s.S3 != nil && (s.Path != nil || s.SchemaPath != nil || s.Parameters != nil || s.Key != nil):
		return "spec.storage.s3 cannot be specified with any other keys in spec.storage: remove s3"
	}
	return m.pathTraversalMessage()
}

// pathTraversalMessage returns an error for ".." in a storage parameter, or "". The puller joins these parameters to a file path, and ".." would
// reach files of the pod and of other models.
func (m Model) pathTraversalMessage() string {
	s := m.Spec.Storage
	for _, parameter := range []struct{ field, text string }{
		{"path", m.Spec.Path}, {"storage.path", ptr.Deref(s.Path, "")},
		{"schemaPath", ptr.Deref(m.Spec.SchemaPath, "")}, {"storage.schemaPath", ptr.Deref(s.SchemaPath, "")},
		{"storage.s3.secretKey", ptr.Deref(s.S3, v1alpha1.S3Storage{}).SecretKey}, {"storage.key", ptr.Deref(s.Key, "")},
		{"storage.parameters[" + parameterClaimName + "]", s.Parameters[parameterClaimName]},
	} {
		if slices.Contains(strings.Split(parameter.text, "/"), "..") {
			return fmt.Sprintf("spec.%s %.200q points outside the storage: remove every '..'", parameter.field, parameter.text)
		}
	}
	return ""
}

// HashLength is the number of hex digits of the spec's hash in a model ID.
const HashLength = 10

// modelKey holds the parameters with which the puller fetches a model and the adapter loads it.
type modelKey struct {
	StorageKey    *string            `json:"storage_key,omitempty"`
	StorageParams map[string]string  `json:"storage_params,omitempty"`
	ModelType     v1alpha1.ModelType `json:"model_type"`
	SchemaPath    *string            `json:"schema_path,omitempty"`
}

// ID returns the ID of the concrete model: another spec is another model in the mesh. It contains a hash of the spec's JSON.
func (m Model) ID() string {
	document, _ := json.Marshal(m.Spec) // encoding strings, maps of strings and a bool cannot fail
	digest := sha1.Sum(document)
	return m.Name + "__" + m.Source + "-" + hex.EncodeToString(digest[:])[:HashLength]
}

// StorageKey returns the entry of the storage Secret that the model refers to, or nil.
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

// Key returns the JSON that the mesh passes to the runtime that loads the model.
func (m Model) Key() string {
	key := modelKey{ModelType: m.Spec.ModelType, StorageParams: m.Parameters()}
	if s := m.Spec.Storage; s != nil {
		key.SchemaPath, key.StorageKey = s.SchemaPath, m.StorageKey()
		if key.SchemaPath == nil {
			key.SchemaPath = m.Spec.SchemaPath
		}
	}
	document, _ := json.Marshal(key) // encoding strings and maps of strings cannot fail
	return string(document)
}
