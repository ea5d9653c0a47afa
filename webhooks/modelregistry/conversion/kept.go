package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Annotation of a v1alpha1 object holds what only v1beta1 can say about it.
const Annotation = "modelregistry.opendatahub.io/v1beta1-fields"

// Kept is what a v1alpha1 object cannot say, as its annotation holds it. Any client can write that, and it must not be a way
// around the schema: it has room for nothing but what v1alpha1 has no word for, or demands though v1beta1 does without it.
type Kept struct {
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
func KeptIn(object map[string]any) (Kept, error) {
	text, ok := annotationsOf(object)[Annotation].(string)
	if !ok {
		return Kept{}, nil
	}
	var fields map[string]any
	if err := kjson.Unmarshal([]byte(text), &fields); err != nil {
		return Kept{}, fmt.Errorf("reading it: %w", err)
	}
	kept := Kept{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &kept, true); err != nil {
		return Kept{}, fmt.Errorf("reading it: %w", err)
	}
	return kept, errors.Join(only("spec.", kept.Spec, OnlyInV1beta1), only("spec.postgres.", kept.Postgres, PostgresOnlyInV1beta1))
}

// only refuses fields that are not among the known ones.
func only(path string, fields map[string]any, known []string) error {
	for name := range fields {
		if !slices.Contains(known, name) {
			return fmt.Errorf("nothing of v1beta1 is kept for %s%s", path, name)
		}
	}
	return nil
}

// Text is the value of the annotation; empty when nothing is kept.
func (k Kept) Text() string {
	text, err := json.Marshal(k)
	if err != nil || string(text) == "{}" { // decoded JSON can be encoded
		return ""
	}
	return string(text)
}

// takeKept removes the annotation from an object and returns what it says. One that cannot be read says nothing: the
// conversion of one object must not fail the listing of all. Admission refuses it before it comes here.
func takeKept(object map[string]any) Kept {
	kept, err := KeptIn(object)
	if err != nil {
		kept = Kept{}
	}
	annotations := annotationsOf(object)
	if _, ok := annotations[Annotation]; ok {
		delete(annotations, Annotation)
		if len(annotations) == 0 {
			delete(object["metadata"].(map[string]any), "annotations")
		}
	}
	return kept
}

// put writes the annotation, unless nothing is kept.
func (k Kept) put(object map[string]any) {
	text := k.Text()
	if text == "" {
		return
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[Annotation] = text
}

func annotationsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// shownGRPC is shown in v1alpha1, which demands the field and whose schema would fill in the port, where v1beta1 has none.
func shownGRPC() map[string]any { return map[string]any{"port": int64(v1beta1.DefaultGRPCPort)} }

// hide changes a v1beta1 spec into one of v1alpha1 and returns what that cannot say.
func hide(spec map[string]any) Kept {
	kept := Kept{}
	if proxy, ok := spec[fieldKubeRBACProxy]; ok {
		kept.Proxy, kept.OAuthProxy = fieldKubeRBACProxy, spec[fieldOAuthProxy]
		delete(spec, fieldKubeRBACProxy)
		spec[fieldOAuthProxy] = proxy
	}
	if spec[fieldReplicas] == int64(1) { // the default, which returns by itself
		delete(spec, fieldReplicas)
	}
	kept.Spec = take(spec, OnlyInV1beta1)
	if postgres, ok := spec[fieldPostgres].(map[string]any); ok {
		kept.Postgres = take(postgres, PostgresOnlyInV1beta1)
		if _, given := postgres[fieldDatabase]; !given {
			kept.WithoutDatabase = true
			postgres[fieldDatabase] = ""
		}
	}
	if _, given := spec[fieldGRPC]; !given {
		kept.WithoutGRPC = true
		spec[fieldGRPC] = shownGRPC()
	}
	return kept
}

// take moves fields out of a block; nil when it has none of them.
func take(block map[string]any, fields []string) map[string]any {
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
func putBack(block, fields map[string]any) {
	for field, value := range fields {
		if block[field] == nil {
			block[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// restore changes a v1alpha1 spec into the one of v1beta1. What an edit through v1alpha1 has changed since stays as it is, and what
// belongs to a block that is gone went with it.
func (k Kept) restore(spec map[string]any) {
	if proxy, ok := spec[fieldOAuthProxy]; ok && k.Proxy == fieldKubeRBACProxy {
		delete(spec, fieldOAuthProxy)
		spec[fieldKubeRBACProxy] = proxy
	}
	if k.OAuthProxy != nil && spec[fieldOAuthProxy] == nil && spec[fieldKubeRBACProxy] != nil {
		spec[fieldOAuthProxy] = runtime.DeepCopyJSONValue(k.OAuthProxy)
	}
	if k.WithoutGRPC && reflect.DeepEqual(spec[fieldGRPC], shownGRPC()) {
		delete(spec, fieldGRPC)
	}
	putBack(spec, k.Spec)
	postgres, ok := spec[fieldPostgres].(map[string]any)
	if !ok {
		return
	}
	putBack(postgres, k.Postgres)
	if k.WithoutDatabase && postgres[fieldDatabase] == "" {
		delete(postgres, fieldDatabase)
	}
}
