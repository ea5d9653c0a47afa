package doctor

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reference is a Secret or a ConfigMap that a resource names, with the keys that it needs; none where any will do.
type Reference struct {
	Kind, Name string
	Keys       []string
}

// impliedKeys are the keys that fields of a kind mean without naming them.
var impliedKeys = map[string][]string{
	"MLflowConfig artifactRootSecret": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_S3_BUCKET", "AWS_S3_ENDPOINT"},
	"Catalog secretName":              {"database-name", "database-user", "database-password"},
	"Catalog certificateSecretName":   {"tls.crt", "tls.key"},
}

// referencesOf returns what the spec of a resource names and is not optional, each object once. A field is recognized by its name,
// which all APIs of Kubernetes, and ours, keep to.
func referencesOf(u *unstructured.Unstructured) []Reference {
	found := map[string]Reference{}
	walk("", u.Object["spec"], func(field string, value any) {
		object, _ := value.(map[string]any)
		name, is := value.(string)
		if !is {
			name, _ = object["name"].(string)
		}
		kind := kindOf(field)
		if kind == "" || name == "" {
			return
		}
		ref := Reference{kind, name, append(found[kind+" "+name].Keys, impliedKeys[u.GetKind()+" "+field]...)}
		if key, _ := object["key"].(string); key != "" {
			ref.Keys = append(ref.Keys, key)
		}
		slices.Sort(ref.Keys)
		ref.Keys = slices.Compact(ref.Keys)
		found[kind+" "+name] = ref
	})
	var out []Reference
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out
}

// walk visits all fields of a value, and elements of lists as their field. What is optional is passed over.
func walk(field string, value any, visit func(field string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		if optional, _ := v["optional"].(bool); optional {
			return
		}
		visit(field, v)
		for name, below := range v {
			walk(name, below, visit)
		}
	case []any:
		for _, element := range v {
			walk(field, element, visit)
		}
	case string:
		visit(field, v)
	}
}

// kindOf is what a field names; "" for neither Secret nor ConfigMap.
func kindOf(field string) string {
	word := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(field), "name"), "ref")
	for suffix, kind := range map[string]string{
		"secret": "Secret", "secrets": "Secret", "secretkey": "Secret", "urifrom": "Secret", "configmap": "ConfigMap", "configmapkey": "ConfigMap",
	} {
		if strings.HasSuffix(word, suffix) {
			return kind
		}
	}
	return ""
}
