package rbacproxy

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// ConfigKey is the key of the ConfigMap under which the file stands.
const ConfigKey = "config-file.yaml"

// Attributes are the right that callers need. Empty fields are left out.
type Attributes struct {
	APIGroup   string `json:"apiGroup,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Verb       string `json:"verb,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Config is the data of the ConfigMap: the file by which the proxy demands that a caller has the right. It is encoded, so no
// value can change its structure.
func Config(needed Attributes) (map[string]string, error) {
	type authorization struct {
		ResourceAttributes Attributes `json:"resourceAttributes"`
	}
	text, err := yaml.Marshal(struct {
		Authorization authorization `json:"authorization"`
	}{authorization{needed}})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of kube-rbac-proxy: %w", err)
	}
	return map[string]string{ConfigKey: string(text)}, nil
}
