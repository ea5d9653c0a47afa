package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestReferencesOf(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []reference
	}{
		"MLflow": {`
kind: MLflow
spec:
  backendStoreUri: postgresql://elsewhere
  backendStoreUriFrom: {name: db, key: uri}
  registryStoreUriFrom: {name: db, key: registry}
  env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: k}}}, {name: B, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}, {name: C, value: v}]
  envFrom: [{secretRef: {name: whole}}, {configMapRef: {name: maps}}]
  caBundleConfigMap: {name: ca}
  imagePullSecrets: [{name: pull}]
  serviceAccountName: me
`, []reference{{"ConfigMap", "ca", nil}, {"ConfigMap", "maps", nil}, {"Secret", "a", []string{"k"}}, {"Secret", "db", []string{"registry", "uri"}}, {"Secret", "pull", nil}, {"Secret", "whole", nil}}},
		"MLflowConfig": {"kind: MLflowConfig\nspec: {artifactRootSecret: s, artifactRootPath: p, archiveRootSecret: t}\n",
			[]reference{{"Secret", "s", []string{"AWS_S3_BUCKET"}}, {"Secret", "t", []string{"AWS_S3_BUCKET"}}}},
		"ModelRegistry": {`
kind: ModelRegistry
spec:
  postgres: {passwordSecret: {name: p, key: word}, sslRootCertificateConfigMap: {name: ca, key: ca.crt}}
  mysql: {sslRootCertificatesSecretName: folder}
  kubeRBACProxy: {tlsCertificateSecret: {name: tls, key: tls.crt}, tlsKeySecret: {name: tls, key: tls.key}}
`, []reference{{"ConfigMap", "ca", []string{"ca.crt"}}, {"Secret", "folder", nil}, {"Secret", "p", []string{"word"}}, {"Secret", "tls", []string{"tls.crt", "tls.key"}}}},
		"Catalog": {"kind: Catalog\nspec: {database: {external: {host: h, secretName: d}}, authProxy: {certificateSecretName: t}}\n",
			[]reference{{"Secret", "d", []string{"database-name", "database-password", "database-user"}}, {"Secret", "t", []string{"tls.crt", "tls.key"}}}},
		"Catalog with a connection": {"kind: Catalog\nspec: {database: {connection: {secretName: d, caSecretName: c}}, proxy: {certificateSecretName: t}}\n",
			[]reference{{"Secret", "c", []string{"ca.crt"}}, {"Secret", "d", []string{"dbname", "host", "password", "port", "user"}}, {"Secret", "t", []string{"tls.crt", "tls.key"}}}},
		"volumes": {"kind: ServingRuntime\nspec: {volumes: [{name: a, secret: {secretName: s}}, {name: b, secret: {secretName: o, optional: true}}, {name: c, configMap: {name: m}}]}\n",
			[]reference{{"ConfigMap", "m", nil}, {"Secret", "s", nil}}},
		"no references": {"kind: MLflow\n", nil},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, referencesOf(u), cmp.AllowUnexported(reference{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
