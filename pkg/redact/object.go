package redact

import "regexp"

// sensitiveName matches the names of environment variables, and sensitiveField those of fields, with a credential as value.
var (
	sensitiveName  = regexp.MustCompile(`(?i)` + sensitive + `$|_key$`)
	sensitiveField = regexp.MustCompile(`(?i)^` + sensitiveInJSON + `$`)
)

// Object redacts the content of an object in place: the values of Secrets and ConfigMaps, environment variables and fields with sensitive
// names, and in other strings the values and the credentials that [Text] recognizes. It includes embedded objects, such as the components of
// an AppWrapper. The annotation last-applied-configuration is removed.
func (v Values) Object(content map[string]any) {
	if content["kind"] == "Secret" || content["kind"] == "ConfigMap" {
		for _, field := range []string{"data", "stringData", "binaryData"} {
			values, _ := content[field].(map[string]any)
			for key := range values {
				values[key] = Mark
			}
		}
	}
	name, _ := content["name"].(string)
	if _, isString := content["value"].(string); isString && sensitiveName.MatchString(name) {
		content["value"] = Mark
	}
	delete(content, "kubectl.kubernetes.io/last-applied-configuration")
	for key, value := range content {
		if _, isString := value.(string); isString && sensitiveField.MatchString(key) {
			value = Mark
		}
		content[key] = v.redactValue(value)
	}
}

// redactValue redacts the value of a field or a list item.
func (v Values) redactValue(value any) any {
	switch field := value.(type) {
	case string:
		return v.Text(field)
	case map[string]any:
		v.Object(field)
	case []any:
		for i := range field {
			field[i] = v.redactValue(field[i])
		}
	}
	return value
}
