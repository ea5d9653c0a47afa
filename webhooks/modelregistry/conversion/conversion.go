package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// PostgresOnlyInV1beta1 lists the fields of spec.postgres that v1alpha1 does not have.
var PostgresOnlyInV1beta1 = []string{
	"generateDeployment", "retentionPolicy", "storage", "image",
	"connectionSecretName", "resources", "serverTLS", "majorVersion", "backup",
}

// OnlyInV1beta1 lists the fields of spec that v1alpha1 does not have, except kubeRBACProxy.
var OnlyInV1beta1 = []string{
	"replicas", "imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "volumes", "volumeMounts",
}

// Convert returns the object in one of the two versions of ModelRegistry: the object itself if it has the version, or else a converted
// copy. Other kinds and versions are errors.
func Convert(object map[string]any, version string) (map[string]any, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if kind != v1beta1.Kind || !isKnownVersion(apiVersion) {
		return nil, fmt.Errorf("%s %s is not of type v1beta1.ModelRegistry", apiVersion, kind)
	}
	if !isKnownVersion(version) {
		return nil, fmt.Errorf("%s is not of type v1beta1.ModelRegistry: the supported versions are %s and %s", version, v1beta1.GroupVersion, v1alpha1.GroupVersion)
	}
	if apiVersion == version {
		return object, nil
	}
	converted := runtime.DeepCopyJSON(object)
	converted["apiVersion"] = version
	if version == v1beta1.GroupVersion.String() {
		toV1beta1(converted)
	} else {
		toV1alpha1(converted)
	}
	return converted, nil
}

func isKnownVersion(apiVersion string) bool {
	return apiVersion == v1beta1.GroupVersion.String() || apiVersion == v1alpha1.GroupVersion.String()
}

// toV1beta1 converts a v1alpha1 object in place.
func toV1beta1(object map[string]any) {
	hidden := popHiddenFields(object)
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	restored, err := hidden.restoredSpec(spec)
	if err != nil { // an invalid annotation must not fail lists of all objects
		ReplaceIstio(spec)
		return
	}
	object["spec"] = restored
}

// restoredSpec returns a v1alpha1 spec as v1beta1. It returns an error if types do not match the schema of v1beta1.
func (h HiddenFields) restoredSpec(spec map[string]any) (map[string]any, error) {
	restored := runtime.DeepCopyJSON(spec)
	ReplaceIstio(restored)
	h.restore(restored)
	return restored, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": restored}, &v1beta1.ModelRegistry{})
}

// Check returns an error if the annotation of an object is invalid, because the fields in the annotation would be lost.
func Check(object map[string]any) error {
	hidden, err := HiddenFieldsIn(object)
	spec, ok := object["spec"].(map[string]any)
	if err == nil && ok && object["apiVersion"] == v1alpha1.GroupVersion.String() {
		_, err = hidden.restoredSpec(spec)
	}
	return err
}

// toV1alpha1 converts a v1beta1 object in place.
func toV1alpha1(object map[string]any) {
	popHiddenFields(object) // v1beta1 has no hidden fields, so a user set the annotation
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	converted := runtime.DeepCopyJSON(spec)
	hidden := toV1alpha1Spec(converted)
	object["spec"] = converted
	hidden.SetAnnotation(object)
}

// Annotation contains the HiddenFields of a v1alpha1 object.
const Annotation = "modelregistry.opendatahub.io/v1beta1-fields"

// HiddenFields are the fields that v1alpha1 does not have, in the form of the annotation. Other fields are errors, because any client can write
// the annotation, and it must not bypass the schema.
type HiddenFields struct {
	// Proxy is the name of the field oauthProxy in v1beta1, or "" if it is the same.
	Proxy string `json:"proxy,omitempty"`
	// OAuthProxy is the v1beta1 field oauthProxy, if kubeRBACProxy is set too. v1alpha1 has only one field for a proxy.
	OAuthProxy any `json:"oauthProxy,omitempty"`
	// Spec contains fields of OnlyInV1beta1, and Postgres those of PostgresOnlyInV1beta1.
	Spec     map[string]any `json:"spec,omitempty"`
	Postgres map[string]any `json:"postgres,omitempty"`
	// WithoutDatabase and WithoutGRPC are true if the v1beta1 object does not set a field that v1alpha1 requires.
	WithoutDatabase bool `json:"withoutDatabase,omitempty"`
	WithoutGRPC     bool `json:"withoutGRPC,omitempty"`
}

// HiddenFieldsIn returns the fields in the annotation of an object. Without an annotation, they are empty.
func HiddenFieldsIn(object map[string]any) (HiddenFields, error) {
	text, ok := annotationsOf(object)[Annotation].(string)
	if !ok {
		return HiddenFields{}, nil
	}
	var fields map[string]any
	if err := kjson.Unmarshal([]byte(text), &fields); err != nil {
		return HiddenFields{}, fmt.Errorf("decoding the annotation: %w", err)
	}
	hidden := HiddenFields{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &hidden, true); err != nil {
		return HiddenFields{}, fmt.Errorf("decoding the annotation: %w", err)
	}
	if err := errors.Join(checkFieldNames("spec.", hidden.Spec, OnlyInV1beta1), checkFieldNames("spec.postgres.", hidden.Postgres, PostgresOnlyInV1beta1)); err != nil {
		return HiddenFields{}, err
	}
	return hidden, nil
}

// checkFieldNames rejects unknown fields.
func checkFieldNames(path string, fields map[string]any, known []string) error {
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown v1beta1 field %s%s", path, name)
		}
	}
	return nil
}

// Encode returns the value of the annotation, or "" without fields.
func (h HiddenFields) Encode() string {
	text, err := json.Marshal(h)
	if err != nil || string(text) == "{}" { // decoded JSON can always be encoded
		return ""
	}
	return string(text)
}

// popHiddenFields removes the annotation from an object and returns its fields. It ignores an invalid annotation, because an error would fail
// the list of all objects. Admission rejects such annotations.
func popHiddenFields(object map[string]any) HiddenFields {
	hidden, _ := HiddenFieldsIn(object)
	annotations := annotationsOf(object)
	if _, ok := annotations[Annotation]; ok {
		delete(annotations, Annotation)
		if len(annotations) == 0 {
			delete(object["metadata"].(map[string]any), "annotations")
		}
	}
	return hidden
}

// SetAnnotation sets the annotation, or removes it if there are no fields.
func (h HiddenFields) SetAnnotation(object map[string]any) {
	text := h.Encode()
	if text == "" {
		delete(annotationsOf(object), Annotation)
		return
	}
	_ = unstructured.SetNestedField(object, text, "metadata", "annotations", Annotation) // the API server always sends a map as metadata
}

func annotationsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// defaultGRPC returns the value of grpc, which v1alpha1 requires, for v1beta1 objects without it.
func defaultGRPC() map[string]any { return map[string]any{"port": int64(v1beta1.DefaultGRPCPort)} }

// toV1alpha1Spec converts a v1beta1 spec in place and returns the fields that v1alpha1 does not have.
func toV1alpha1Spec(spec map[string]any) HiddenFields {
	hidden := HiddenFields{}
	if proxy, ok := spec["kubeRBACProxy"]; ok {
		hidden.Proxy, hidden.OAuthProxy = "kubeRBACProxy", spec["oauthProxy"]
		delete(spec, "kubeRBACProxy")
		spec["oauthProxy"] = proxy
	}
	if spec["replicas"] == int64(1) { // the default
		delete(spec, "replicas")
	}
	hidden.Spec = extractFields(spec, OnlyInV1beta1)
	if postgres, ok := spec["postgres"].(map[string]any); ok {
		hidden.Postgres = extractFields(postgres, PostgresOnlyInV1beta1)
		if _, found := postgres["database"]; !found {
			hidden.WithoutDatabase = true
			postgres["database"] = ""
		}
	}
	if _, found := spec["grpc"]; !found {
		hidden.WithoutGRPC = true
		spec["grpc"] = defaultGRPC()
	}
	return hidden
}

// extractFields removes fields from a map and returns them, or nil if the map has none of them.
func extractFields(block map[string]any, fields []string) map[string]any {
	var extracted map[string]any
	for _, field := range fields {
		if value, found := block[field]; found {
			if extracted == nil {
				extracted = map[string]any{}
			}
			extracted[field] = value
			delete(block, field)
		}
	}
	return extracted
}

// restoreFields copies the fields that are missing in a map.
func restoreFields(block, fields map[string]any) {
	for field, value := range fields {
		if block[field] == nil {
			block[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// restore restores the hidden fields of a v1alpha1 spec in place. It keeps values that were changed through v1alpha1, and does not restore
// fields of a removed proxy or database.
func (h HiddenFields) restore(spec map[string]any) {
	if proxy, ok := spec["oauthProxy"]; ok && h.Proxy == "kubeRBACProxy" {
		delete(spec, "oauthProxy")
		spec["kubeRBACProxy"] = proxy
	}
	if h.OAuthProxy != nil && spec["oauthProxy"] == nil && spec["kubeRBACProxy"] != nil {
		spec["oauthProxy"] = runtime.DeepCopyJSONValue(h.OAuthProxy)
	}
	if h.WithoutGRPC && reflect.DeepEqual(spec["grpc"], defaultGRPC()) {
		delete(spec, "grpc")
	}
	restoreFields(spec, h.Spec)
	postgres, ok := spec["postgres"].(map[string]any)
	if !ok {
		return
	}
	restoreFields(postgres, h.Postgres)
	if h.WithoutDatabase && postgres["database"] == "" {
		delete(postgres, "database")
	}
}

// ReplaceIstio removes istio from a v1alpha1 spec, adds an equivalent proxy if the spec has none, and reports whether istio was set.
func ReplaceIstio(spec map[string]any) bool {
	istio, ok := spec["istio"].(map[string]any)
	if !ok {
		return false
	}
	delete(spec, "istio")
	if _, found := spec["oauthProxy"]; !found {
		spec["oauthProxy"] = proxyFromIstio(istio)
	}
	return true
}

func proxyFromIstio(istio map[string]any) map[string]any {
	proxy := map[string]any{
		"port": int64(v1beta1.DefaultProxyPort), "routePort": int64(v1beta1.DefaultRoutePort), "serviceRoute": string(v1beta1.RouteEnabled),
	}
	gateway, ok := istio["gateway"].(map[string]any)
	if !ok {
		proxy["serviceRoute"] = string(v1beta1.RouteDisabled)
		return proxy
	}
	if domain, _ := gateway["domain"].(string); domain != "" {
		proxy["domain"] = domain
	}
	rest, _ := gateway["rest"].(map[string]any)
	if rest["gatewayRoute"] == string(v1beta1.RouteDisabled) {
		proxy["serviceRoute"] = string(v1beta1.RouteDisabled)
	}
	if port, found := rest["port"]; found && rest["tls"] != nil {
		proxy["routePort"] = port
	}
	return proxy
}
