package mlflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

func keyOf(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

// [D19] Everything that pods read at their start is followed.
func TestReferences(t *testing.T) {
	m := &mlflowv1.MLflow{}
	always := []reference.Reference{
		{Kind: reference.ConfigMap, Name: "odh-trusted-ca-bundle", Optional: true},
		{Kind: reference.Secret, Name: "mlflow-tls", Keys: []string{"tls.crt", "tls.key"}},
	}
	if diff := cmp.Diff(always, references(m)); diff != "" {
		t.Errorf("without anything of the user (-want +got):\n%s", diff)
	}

	m.Spec.BackendStoreURIFrom = keyOf("db", "uri")
	m.Spec.RegistryStoreURIFrom = keyOf("db", "registry")
	m.Spec.ReadReplicaBackendStoreURIFrom = keyOf("replica", "uri")
	m.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: keyOf("token", "t")}}}
	m.Spec.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s3"}}}}
	m.Spec.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate"}
	want := []reference.Reference{
		{Kind: reference.ConfigMap, Name: "corporate"},
		{Kind: reference.ConfigMap, Name: "odh-trusted-ca-bundle", Optional: true},
		{Kind: reference.Secret, Name: "db", Keys: []string{"registry", "uri"}},
		{Kind: reference.Secret, Name: "mlflow-tls", Keys: []string{"tls.crt", "tls.key"}},
		{Kind: reference.Secret, Name: "replica", Keys: []string{"uri"}},
		{Kind: reference.Secret, Name: "s3"},
		{Kind: reference.Secret, Name: "token", Keys: []string{"t"}},
	}
	if diff := cmp.Diff(want, references(m)); diff != "" {
		t.Errorf("references differ (-want +got):\n%s", diff)
	}
	for _, r := range want {
		if !refersTo(m, r.Kind, r.Name) {
			t.Errorf("refersTo(%s) = false", r.ID())
		}
	}
	if refersTo(m, reference.ConfigMap, "db") || refersTo(m, reference.Secret, "other") {
		t.Error("refersTo is true for objects that nobody consumes")
	}
}
