package redact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestObject(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"Secret":                  {"{kind: Secret, type: Opaque, data: {a: eA==}, stringData: {b: x}}", "{kind: Secret, type: Opaque, data: {a: '[redacted]'}, stringData: {b: '[redacted]'}}"},
		"ConfigMap":               {"{kind: ConfigMap, data: {a: x}}", "{kind: ConfigMap, data: {a: '[redacted]'}}"},
		"data of another kind":    {"{kind: Widget, data: {a: x}}", "{kind: Widget, data: {a: x}}"},
		"Secret in an AppWrapper": {"{kind: AppWrapper, spec: {components: [{template: {kind: Secret, stringData: {x: y}}}]}}", "{kind: AppWrapper, spec: {components: [{template: {kind: Secret, stringData: {x: '[redacted]'}}}]}}"},
		"environment variables": {"{env: [{name: DB_PASSWORD, value: x}, {name: AWS_ACCESS_KEY_ID, value: x}, {name: SIGNING_KEY, value: x}, {name: LEVEL, value: DEBUG}, {name: A_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
			"{env: [{name: DB_PASSWORD, value: '[redacted]'}, {name: AWS_ACCESS_KEY_ID, value: '[redacted]'}, {name: SIGNING_KEY, value: '[redacted]'}, {name: LEVEL, value: DEBUG}, {name: A_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]}"},
		"sensitive fields":           {"{password: x, apiKey: x, secretName: mlflow-tls, reason: SecretMissing, passwordSecret: {name: n, key: k}}", "{password: '[redacted]', apiKey: '[redacted]', secretName: mlflow-tls, reason: SecretMissing, passwordSecret: {name: n, key: k}}"},
		"URL with a password":        {"{spec: {uri: 'postgresql://u:hunter2@db/x'}}", "{spec: {uri: 'postgresql://[redacted]@db/x'}}"},
		"last-applied-configuration": {"{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', a: b}}}", "{metadata: {annotations: {a: b}}}"},
		"value after a flag": {"{args: [--db-password, hunter2, --level, debug, -token, x, --password-file, f], command: [--secret, {a: b}, --secret]}",
			"{args: [--db-password, '[redacted]', --level, debug, -token, '[redacted]', --password-file, f], command: [--secret, {a: b}, --secret]}"},
		"copy of the legacy operator": {"{metadata: {annotations: {banzaicloud.com/last-applied: UEsDBBQ, a: b}}}", "{metadata: {annotations: {a: b}}}"},
		"values of other types":       {"{a: 1, b: true, c: null, d: [1, x]}", "{a: 1, b: true, c: null, d: [1, x]}"},
	} {
		t.Run(name, func(t *testing.T) {
			var got, want map[string]any
			if err := yaml.Unmarshal([]byte(c.in), &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			Values{}.Object(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
