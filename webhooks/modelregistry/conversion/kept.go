package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Annotation of a v1alpha1 object holds what only v1beta1 can say about it.
const Annotation = "modelregistry.opendatahub.io/v1beta1-fields"

// Kept is what a v1alpha1 object cannot say, as it stands in its annotation.
type Kept struct {
	// Proxy is the name that the field oauthProxy has in v1beta1; empty for the same.
	Proxy string `json:"proxy,omitempty"`
	// Fields of the v1beta1 spec that are missing or different in v1alpha1.
	Fields []Field `json:"fields,omitempty"`
}

// Field is one field of the spec.
type Field struct {
	// Path to it, below spec.
	Path []string `json:"path"`
	// Value in v1beta1; nil when it is absent there.
	Value any `json:"value,omitempty"`
	// Shown is what v1alpha1 says instead; nil when it says nothing.
	Shown any `json:"shown,omitempty"`
}

// KeptIn returns what the annotation of an object says; nothing when it has none. An error means that it cannot be read.
func KeptIn(object map[string]any) (Kept, error) {
	text, ok := annotationsOf(object)[Annotation].(string)
	if !ok {
		return Kept{}, nil
	}
	var kept Kept
	if err := kjson.Unmarshal([]byte(text), &kept); err != nil {
		return Kept{}, fmt.Errorf("reading it: %w", err)
	}
	for i, field := range kept.Fields {
		if !field.allowed() {
			return Kept{}, fmt.Errorf("fields[%d]: nothing of v1beta1 is kept for spec.%s", i, strings.Join(field.Path, "."))
		}
	}
	return kept, nil
}

// allowed tells whether this program would keep such a field. Anybody can write the annotation, and it must not be a way
// around the schema: only what v1alpha1 has no word for, or demands though v1beta1 does without it.
func (f Field) allowed() bool {
	switch {
	case len(f.Path) == 1 && f.Path[0] == fieldGRPC:
		return f.Value == nil
	case len(f.Path) == 1 && f.Path[0] == fieldOAuthProxy:
		return f.Shown == nil
	case len(f.Path) != 2 || f.Path[0] != fieldPostgres:
		return false
	case f.Path[1] == fieldDatabase:
		return f.Value == nil
	default:
		return f.Shown == nil && slices.Contains(PostgresOnlyInV1beta1, f.Path[1])
	}
}

// Lookup returns the value that is kept for a field, nil for none.
func (k Kept) Lookup(path ...string) any {
	for _, field := range k.Fields {
		if slices.Equal(field.Path, path) {
			return field.Value
		}
	}
	return nil
}

// Without returns what is kept beside the field at path.
func (k Kept) Without(path ...string) Kept {
	k.Fields = slices.DeleteFunc(slices.Clone(k.Fields), func(f Field) bool { return slices.Equal(f.Path, path) })
	return k
}

// Text is the value of the annotation; empty when nothing is kept.
func (k Kept) Text() string {
	if k.Proxy == "" && len(k.Fields) == 0 {
		return ""
	}
	text, err := json.Marshal(k)
	if err != nil { // decoded JSON can be encoded
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

// hideProxy gives the proxy its name of v1beta1 back.
func (k Kept) hideProxy(spec map[string]any) {
	if proxy, ok := spec[fieldOAuthProxy]; ok && k.Proxy == fieldKubeRBACProxy {
		delete(spec, fieldOAuthProxy)
		spec[fieldKubeRBACProxy] = proxy
	}
}

// restore puts every kept field back where v1alpha1 still says what it was shown. A field of a block that is gone, or that
// is no block any more, went with it.
func (k Kept) restore(spec map[string]any) {
	k.hideProxy(spec)
	for _, field := range k.Fields {
		parent := spec
		last := len(field.Path) - 1
		for _, step := range field.Path[:last] {
			parent, _ = parent[step].(map[string]any)
		}
		name := field.Path[last]
		switch {
		case parent == nil || !reflect.DeepEqual(parent[name], field.Shown):
		case name == fieldOAuthProxy && last == 0 && spec[fieldKubeRBACProxy] == nil: // it stood behind the proxy that was removed
		case field.Value == nil:
			delete(parent, name)
		default:
			parent[name] = runtime.DeepCopyJSONValue(field.Value)
		}
	}
}

// difference lists the fields that make want out of have, in an order that does not vary. Blocks are entered, everything
// else is replaced whole.
func difference(path []string, have, want map[string]any) []Field {
	names := map[string]bool{}
	for name := range have {
		names[name] = true
	}
	for name := range want {
		names[name] = true
	}
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(names)) {
		here := append(slices.Clone(path), name)
		haveBlock, haveIs := have[name].(map[string]any)
		wantBlock, wantIs := want[name].(map[string]any)
		switch {
		case haveIs && wantIs:
			fields = append(fields, difference(here, haveBlock, wantBlock)...)
		case !reflect.DeepEqual(have[name], want[name]):
			fields = append(fields, Field{Path: here, Value: want[name], Shown: have[name]})
		}
	}
	return fields
}
