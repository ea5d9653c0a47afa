package openshift

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// fields of a data connection, and the members of a storage entry that they become.
var fields = []struct {
	key     string
	members []string
}{
	{"AWS_ACCESS_KEY_ID", []string{"access_key_id"}},
	{"AWS_SECRET_ACCESS_KEY", []string{"secret_access_key"}},
	{"AWS_S3_ENDPOINT", []string{keyEndpoint}},
	{"AWS_S3_BUCKET", []string{"bucket", "default_bucket"}},
	{"AWS_DEFAULT_REGION", []string{"region"}},
}

const (
	keyType     = "type"
	keyEndpoint = "endpoint_url"
	typeS3      = "s3"
)

// storage gathers the entries of data connections, one under the name of each. The bundle are the CAs of the platform. It is nil
// when there is none.
func storage(connections []corev1.Secret, bundle string) (map[string][]byte, error) {
	var data map[string][]byte
	for i := range connections {
		c := &connections[i]
		members := entry(c, bundle)
		if members == nil {
			continue
		}
		text, err := json.Marshal(members)
		if err != nil {
			return nil, fmt.Errorf("encoding the storage entry of data connection %s: %w", c.Name, err)
		}
		if data == nil {
			data = map[string][]byte{}
		}
		data[c.Name] = text
	}
	return data, nil
}

// entry is the storage entry of one data connection; nil for one that says nothing of S3, which no puller could use.
func entry(c *corev1.Secret, bundle string) map[string]string {
	members := map[string]string{}
	for _, f := range fields {
		value, known := c.Data[f.key]
		if !known {
			continue
		}
		for _, m := range f.members {
			members[m] = string(value)
		}
	}
	kind := c.Annotations[AnnotationConnection]
	if len(members) == 0 && kind != typeS3 {
		return nil
	}
	if kind == "" {
		kind = typeS3
	}
	members[keyType] = kind
	if bundle != "" && strings.HasPrefix(strings.ToLower(members[keyEndpoint]), "https://") {
		members["certificate"], members["cabundle_configmap"] = bundle, kserveBundle
	}
	return members
}
