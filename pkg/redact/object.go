package redact

import "regexp"

// sensitiveName matches the names of environment variables, and sensitiveField those of fields, with a credential as value.
// sensitiveFlag matches a list item that is a flag without its value, which is the next item.
var (
	sensitiveFlag  = regexp.MustCompile(`(?i)^--?[\w.-]*` + sensitive + `$`)
	sensitiveName  = regexp.MustCompile(`(?i)` + sensitive + `$|_key$`)
	sensitiveField = regexp.MustCompile(`(?i)^` + sensitiveInJSON + `$`)
)

// Object redacts the content of an object in place: the values of Secrets and ConfigMaps, environment variables, fields and flags with
// sensitive names, and in other strings the values given to [ValuesOf] and the credentials that [Text] recognizes. It includes embedded
// objects, such as the components of an AppWrapper. The annotations with copies of the object, by kubectl and by the legacy operator of
// registries, are removed.
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
	for _, copied := range []string{"kubectl.kubernetes.io/last-applied-configuration", "banzaicloud.com/last-applied"} {
		delete(content, copied)
	}
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
		hidesNext := false
		for i := range field {
			text, isString := field[i].(string)
			if field[i] = v.redactValue(field[i]); hidesNext && isString {
				field[i] = Mark
			}
			hidesNext = isString && !hidesNext && sensitiveFlag.MatchString(text)
		}
	}
	return value
}
