package servers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

func TestEnvReferences(t *testing.T) {
	env := []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "FIELD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: new(true)}}},
		{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Key: "k"}}},
	}
	want := []reference.Reference{{Kind: reference.Secret, Name: "s", Keys: []string{"k"}, Optional: true}, {Kind: reference.ConfigMap, Name: "c", Keys: []string{"k"}}}
	if diff := cmp.Diff(want, EnvReferences(env)); diff != "" {
		t.Errorf("EnvReferences() differs (-want +got):\n%s", diff)
	}
	from := []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Optional: new(true)}},
	}
	want = []reference.Reference{{Kind: reference.Secret, Name: "s"}, {Kind: reference.ConfigMap, Name: "c", Optional: true}}
	if diff := cmp.Diff(want, EnvFromReferences(from)); diff != "" {
		t.Errorf("EnvFromReferences() differs (-want +got):\n%s", diff)
	}
}

// PodReferences returns the references to all Secrets and ConfigMaps, with optional ones marked.
func TestPodReferences(t *testing.T) {
	p := &server.Pods{}
	if err := yaml.UnmarshalStrict([]byte(`{imagePullSecrets: [{name: pull}], volumes: [
		{name: a, secret: {secretName: files}}, {name: b, secret: {secretName: maybe, optional: true}}, {name: c, configMap: {name: settings}},
		{name: d, csi: {driver: c, nodePublishSecretRef: {name: store}}}, {name: e, emptyDir: {}}, {name: f, persistentVolumeClaim: {claimName: claim}},
		{name: g, projected: {sources: [{secret: {name: part}}, {configMap: {name: maybe, optional: true}}, {serviceAccountToken: {path: t}}, {downwardAPI: {}}]}},
		{name: h, csi: {driver: z}}]}`), p); err != nil {
		t.Fatal(err)
	}
	want := []reference.Reference{
		{Kind: reference.ConfigMap, Name: "maybe", Optional: true}, {Kind: reference.ConfigMap, Name: "settings"}, {Kind: reference.Secret, Name: "files"}, {Kind: reference.Secret, Name: "maybe", Optional: true},
		{Kind: reference.Secret, Name: "part"}, {Kind: reference.Secret, Name: "pull"}, {Kind: reference.Secret, Name: "store"},
	}
	if diff := cmp.Diff(want, PodReferences(p)); diff != "" {
		t.Errorf("PodReferences() differs (-want +got):\n%s", diff)
	}
}
