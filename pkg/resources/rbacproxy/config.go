package rbacproxy

import "sigs.k8s.io/yaml"

// ConfigKey is the ConfigMap key of the configuration file.
const ConfigKey = "config-file.yaml"

// Attributes are the access that callers need. Empty fields are omitted.
type Attributes struct {
	APIGroup   string `json:"apiGroup,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Verb       string `json:"verb,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Config returns the data of the ConfigMap, with the access review of callers. Values are encoded, so that they cannot change
// the structure of the file.
func Config(required Attributes) map[string]string {
	type authorization struct {
		ResourceAttributes Attributes `json:"resourceAttributes"`
	}
	text, _ := yaml.Marshal(struct { // names of Kubernetes: encoding cannot fail
		Authorization authorization `json:"authorization"`
	}{authorization{required}})
	return map[string]string{ConfigKey: string(text)}
}
