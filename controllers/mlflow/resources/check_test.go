package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func TestCheck(t *testing.T) {
	withImage := func(name string) func(*mlflowv1.MLflowSpec) {
		return func(s *mlflowv1.MLflowSpec) { s.Image = &mlflowv1.ImageConfig{Image: name} }
	}
	withToleration := func(toleration corev1.Toleration) func(*mlflowv1.MLflowSpec) {
		return func(s *mlflowv1.MLflowSpec) { s.Tolerations = []corev1.Toleration{toleration} }
	}
	withAccessMode := func(mode corev1.PersistentVolumeAccessMode) func(*mlflowv1.MLflowSpec) {
		return mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}})
	}
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		want   string
	}{
		"ServiceAccount": {func(s *mlflowv1.MLflowSpec) { s.ServiceAccountName = "My Account" },
			`spec.serviceAccountName: "My Account" cannot be the name of a ServiceAccount: use lower-case letters, digits, - and .`},
		"image":                         {withImage("bad image:??"), `spec.image.image: "bad image:??" is not an image reference: write one such as quay.io/example/mlflow:v3`},
		"image with a port":             {withImage("registry.example.com:5000/team_a/mlflow"), ""},
		"image with a digest":           {withImage("mlflow:v3@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), ""},
		"image with an upper-case path": {withImage("localhost/Team/mlflow"), `spec.image.image: "localhost/Team/mlflow" is not an image reference: write one such as quay.io/example/mlflow:v3`},
		"environment variable": {mlflowtest.WithEnv(corev1.EnvVar{Name: "FINE"}, corev1.EnvVar{Name: "A=B"}),
			`spec.env[1].name: "A=B" cannot be the name of an environment variable: use printable characters without =`},
		"environment variable with a dot": {mlflowtest.WithEnv(corev1.EnvVar{Name: "a.b-c"}), ""},
		"node selector": {func(s *mlflowv1.MLflowSpec) { s.NodeSelector = map[string]string{"disk type": "fast"} },
			`spec.nodeSelector: "disk type=fast" cannot be a label of a node: name part must consist of alphanumeric characters, '-', '_' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		"toleration operator":    {withToleration(corev1.Toleration{Key: "gpu", Operator: "Maybe"}), `spec.tolerations[0].operator: "Maybe" is unknown: use Exists or Equal`},
		"toleration without key": {withToleration(corev1.Toleration{Value: "gpu"}), `spec.tolerations[0].key: "" is valid only with operator Exists, and the default is Equal: set key, or use operator Exists`},
		"value with Exists":      {withToleration(corev1.Toleration{Key: "gpu", Operator: "Exists", Value: "a"}), `spec.tolerations[0].value: "a" has no meaning with Exists: remove it`},
		"toleration effect":      {withToleration(corev1.Toleration{Key: "gpu", Effect: "Stop"}), `spec.tolerations[0].effect: "Stop" is unknown: use NoSchedule, PreferNoSchedule or NoExecute`},
		"toleration seconds":     {withToleration(corev1.Toleration{Key: "gpu", TolerationSeconds: new(int64(5))}), `spec.tolerations[0].tolerationSeconds: "5" needs the effect NoExecute: set effect, or remove tolerationSeconds`},
		"tolerates all taints":   {withToleration(corev1.Toleration{Operator: "Exists"}), ""},
		"access mode":            {withAccessMode("ReadWriteSometimes"), `spec.storage.accessModes[0]: "ReadWriteSometimes" is unknown: use ReadWriteOnce, ReadWriteMany or ReadWriteOncePod`},
		"storage size": {mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: mlflowtest.StorageRequest("-5Gi")}}),
			`spec.storage.resources.requests.storage: "-5Gi" is not a size: write one such as 10Gi`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check(mlflowtest.MLflow(c.change), platformInputs["plain"]); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
