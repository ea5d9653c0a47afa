package redact

import "regexp"

// sensitiveName are the names of variables, and sensitiveField those of fields, whose value is a credential.
var (
	sensitiveName  = regexp.MustCompile(`(?i)` + sensitive + `$|_key$`)
	sensitiveField = regexp.MustCompile(`(?i)^` + sensitiveInJSON + `$`)
)

// Object takes the credentials out of the content of an object, in place: values of Secrets and ConfigMaps, of variables and fields whose
// names say that they are credentials, and whatever Text finds in other texts. Objects inside of it, as in an AppWrapper, are treated
// alike. Copies of the object that clients leave in annotations are removed.
func Object(content map[string]any) {
	if content["kind"] == "Secret" || content["kind"] == "ConfigMap" {
		for _, field := range []string{"data", "stringData", "binaryData"} {
			values, _ := content[field].(map[string]any)
			for key := range values {
				values[key] = Mark
			}
		}
	}
	name, _ := content["name"].(string)
	if _, is := content["value"].(string); is && sensitiveName.MatchString(name) {
		content["value"] = Mark
	}
	delete(content, "kubectl.kubernetes.io/last-applied-configuration")
	for key, value := range content {
		if _, is := value.(string); is && sensitiveField.MatchString(key) {
			value = Mark
		}
		content[key] = redactValue(value)
	}
}

// element is the value of a field or of a list without credentials.
func redactValue(value any) any {
	switch v := value.(type) {
	case string:
		return Text(v)
	case map[string]any:
		Object(v)
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
	}
	return value
}
