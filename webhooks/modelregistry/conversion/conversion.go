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

// OnlyInV1beta1 lists the fields of spec that v1alpha1 does not have.
var OnlyInV1beta1 = []string{
	"replicas", "imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "volumes", "volumeMounts",
}

// Convert returns the object in the wanted version, one of the two apiVersions of ModelRegistry. The object given is not
// changed; the result may share parts with it. It returns an error for everything that is no ModelRegistry.
func Convert(object map[string]any, wanted string) (map[string]any, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if kind != v1beta1.Kind || !isKnownVersion(apiVersion) {
		return nil, fmt.Errorf("%s %s is not of type v1beta1.ModelRegistry", apiVersion, kind)
	}
	if !isKnownVersion(wanted) {
		return nil, fmt.Errorf("%s is not of type v1beta1.ModelRegistry: it can be shown as %s and %s", wanted, v1beta1.GroupVersion, v1alpha1.GroupVersion)
	}
	if apiVersion == wanted {
		return object, nil
	}
	converted := runtime.DeepCopyJSON(object)
	converted["apiVersion"] = wanted
	if wanted == v1beta1.GroupVersion.String() {
		toV1beta1(converted)
	} else {
		toV1alpha1(converted)
	}
	return converted, nil
}

func isKnownVersion(apiVersion string) bool {
	return apiVersion == v1beta1.GroupVersion.String() || apiVersion == v1alpha1.GroupVersion.String()
}

// toV1beta1 changes a v1alpha1 object in place.
func toV1beta1(object map[string]any) {
	kept := popHiddenFields(object)
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	restored, err := kept.restoredSpec(spec)
	if err != nil { // an annotation that was forged where no webhook looked; one such object must not spoil a list of all
		ReplaceIstio(spec)
		return
	}
	object["spec"] = restored
}

// restored is a v1alpha1 spec as v1beta1 says it. It is an error when it has values of types that v1beta1 does not have.
func (k HiddenFields) restoredSpec(spec map[string]any) (map[string]any, error) {
	restored := runtime.DeepCopyJSON(spec)
	ReplaceIstio(restored)
	k.restore(restored)
	return restored, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": restored}, &v1beta1.ModelRegistry{})
}

// Check returns an error when the annotation of a v1alpha1 object cannot be read, or does not fit it: what it keeps would be
// lost.
func Check(object map[string]any) error {
	kept, err := HiddenFieldsIn(object)
	spec, ok := object["spec"].(map[string]any)
	if err == nil && ok && object["apiVersion"] == v1alpha1.GroupVersion.String() {
		_, err = kept.restoredSpec(spec)
	}
	return err
}

// toV1alpha1 changes a v1beta1 object in place.
func toV1alpha1(object map[string]any) {
	popHiddenFields(object) // no stored object has it, so what a user put there means nothing
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	shown := runtime.DeepCopyJSON(spec)
	kept := toV1alpha1Spec(shown)
	object["spec"] = shown
	kept.SetAnnotation(object)
}

// Annotation of a v1alpha1 object holds what only v1beta1 can say about it.
const Annotation = "modelregistry.opendatahub.io/v1beta1-fields"

// Kept is what a v1alpha1 object cannot say, as its annotation holds it. Any client can write that, and it must not be a way
// around the schema: it has room for nothing but what v1alpha1 has no word for, or demands though v1beta1 does without it.
type HiddenFields struct {
	// Proxy is the name that the field oauthProxy has in v1beta1; empty for the same.
	Proxy string `json:"proxy,omitempty"`
	// OAuthProxy is the field of v1beta1 of that name, which v1alpha1 does not show beside the newer proxy.
	OAuthProxy any `json:"oauthProxy,omitempty"`
	// Spec has the fields of OnlyInV1beta1, Postgres those of PostgresOnlyInV1beta1.
	Spec     map[string]any `json:"spec,omitempty"`
	Postgres map[string]any `json:"postgres,omitempty"`
	// WithoutDatabase and WithoutGRPC: v1beta1 says nothing where v1alpha1 shows an empty database and the default port.
	WithoutDatabase bool `json:"withoutDatabase,omitempty"`
	WithoutGRPC     bool `json:"withoutGRPC,omitempty"`
}

// KeptIn returns what the annotation of an object says; nothing when it has none. An error means that it cannot be read.
func HiddenFieldsIn(object map[string]any) (HiddenFields, error) {
	text, ok := annotationsOf(object)[Annotation].(string)
	if !ok {
		return HiddenFields{}, nil
	}
	var fields map[string]any
	if err := kjson.Unmarshal([]byte(text), &fields); err != nil {
		return HiddenFields{}, fmt.Errorf("reading it: %w", err)
	}
	kept := HiddenFields{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &kept, true); err != nil {
		return HiddenFields{}, fmt.Errorf("reading it: %w", err)
	}
	if err := errors.Join(checkFieldNames("spec.", kept.Spec, OnlyInV1beta1), checkFieldNames("spec.postgres.", kept.Postgres, PostgresOnlyInV1beta1)); err != nil {
		return HiddenFields{}, err
	}
	return kept, nil
}

// only refuses fields that are not among the known ones.
func checkFieldNames(path string, fields map[string]any, known []string) error {
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("nothing of v1beta1 is kept for %s%s", path, name)
		}
	}
	return nil
}

// Text is the value of the annotation; empty when nothing is kept.
func (k HiddenFields) Encode() string {
	text, err := json.Marshal(k)
	if err != nil || string(text) == "{}" { // decoded JSON can be encoded
		return ""
	}
	return string(text)
}

// takeKept removes the annotation from an object and returns what it says. One that cannot be read says nothing: the
// conversion of one object must not fail the listing of all. Admission refuses it before it comes here.
func popHiddenFields(object map[string]any) HiddenFields {
	kept, _ := HiddenFieldsIn(object)
	annotations := annotationsOf(object)
	if _, ok := annotations[Annotation]; ok {
		delete(annotations, Annotation)
		if len(annotations) == 0 {
			delete(object["metadata"].(map[string]any), "annotations")
		}
	}
	return kept
}

// Put writes the annotation, or removes it when nothing is kept.
func (k HiddenFields) SetAnnotation(object map[string]any) {
	text := k.Encode()
	if text == "" {
		delete(annotationsOf(object), Annotation)
		return
	}
	_ = unstructured.SetNestedField(object, text, "metadata", "annotations", Annotation) // no API server sends other metadata than a map
}

func annotationsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// shownGRPC is shown in v1alpha1, which demands the field and whose schema would fill in the port, where v1beta1 has none.
func defaultGRPC() map[string]any { return map[string]any{"port": int64(v1beta1.DefaultGRPCPort)} }

// hide changes a v1beta1 spec into one of v1alpha1 and returns what that cannot say.
func toV1alpha1Spec(spec map[string]any) HiddenFields {
	kept := HiddenFields{}
	if proxy, ok := spec["kubeRBACProxy"]; ok {
		kept.Proxy, kept.OAuthProxy = "kubeRBACProxy", spec["oauthProxy"]
		delete(spec, "kubeRBACProxy")
		spec["oauthProxy"] = proxy
	}
	if spec["replicas"] == int64(1) { // the default, which returns by itself
		delete(spec, "replicas")
	}
	kept.Spec = extractFields(spec, OnlyInV1beta1)
	if postgres, ok := spec["postgres"].(map[string]any); ok {
		kept.Postgres = extractFields(postgres, PostgresOnlyInV1beta1)
		if _, given := postgres["database"]; !given {
			kept.WithoutDatabase = true
			postgres["database"] = ""
		}
	}
	if _, given := spec["grpc"]; !given {
		kept.WithoutGRPC = true
		spec["grpc"] = defaultGRPC()
	}
	return kept
}

// take moves fields out of a block; nil when it has none of them.
func extractFields(block map[string]any, fields []string) map[string]any {
	var taken map[string]any
	for _, field := range fields {
		if value, given := block[field]; given {
			if taken == nil {
				taken = map[string]any{}
			}
			taken[field] = value
			delete(block, field)
		}
	}
	return taken
}

// putBack moves fields into a block that does not have them.
func restoreFields(block, fields map[string]any) {
	for field, value := range fields {
		if block[field] == nil {
			block[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// restore changes a v1alpha1 spec into the one of v1beta1. What an edit through v1alpha1 has changed since stays as it is, and what
// belongs to a block that is gone went with it.
func (k HiddenFields) restore(spec map[string]any) {
	if proxy, ok := spec["oauthProxy"]; ok && k.Proxy == "kubeRBACProxy" {
		delete(spec, "oauthProxy")
		spec["kubeRBACProxy"] = proxy
	}
	if k.OAuthProxy != nil && spec["oauthProxy"] == nil && spec["kubeRBACProxy"] != nil {
		spec["oauthProxy"] = runtime.DeepCopyJSONValue(k.OAuthProxy)
	}
	if k.WithoutGRPC && reflect.DeepEqual(spec["grpc"], defaultGRPC()) {
		delete(spec, "grpc")
	}
	restoreFields(spec, k.Spec)
	postgres, ok := spec["postgres"].(map[string]any)
	if !ok {
		return
	}
	restoreFields(postgres, k.Postgres)
	if k.WithoutDatabase && postgres["database"] == "" {
		delete(postgres, "database")
	}
}

// ReplaceIstio replaces the block istio of a v1alpha1 spec by the proxy that does its work, and reports whether there was
// one. A proxy that the spec has already stays as it is.
func ReplaceIstio(spec map[string]any) bool {
	istio, ok := spec["istio"].(map[string]any)
	if !ok {
		return false
	}
	delete(spec, "istio")
	if _, has := spec["oauthProxy"]; !has {
		spec["oauthProxy"] = proxyFor(istio)
	}
	return true
}

func proxyFor(istio map[string]any) map[string]any {
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
	if port, given := rest["port"]; given && rest["tls"] != nil {
		proxy["routePort"] = port
	}
	return proxy
}
