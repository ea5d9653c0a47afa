package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// The example manifests have the command, preStop hook and grace period of the databases that the operator generates.
func TestExamplePostgresDeployments(t *testing.T) {
	for _, file := range []string{"config/kind/database/postgres.yaml", "config/samples/databases/postgres.yaml"} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := bytes.Cut(content, []byte("\n---\n"))
			deployment := appsv1.Deployment{}
			if err := yaml.UnmarshalStrict(first, &deployment); err != nil {
				t.Fatal(err)
			}
			pod := deployment.Spec.Template.Spec
			server := pod.Containers[0]
			want := ExclusivePostgres(corev1ac.Container(), server.VolumeMounts[0].MountPath)
			if diff := cmp.Diff(want.Command, server.Command); diff != "" {
				t.Errorf("command (-operator +manifest):\n%s", diff)
			}
			if server.Lifecycle == nil || server.Lifecycle.PreStop == nil || server.Lifecycle.PreStop.Exec == nil {
				t.Fatal("the database container has no preStop hook")
			}
			if diff := cmp.Diff(want.Lifecycle.PreStop.Exec.Command, server.Lifecycle.PreStop.Exec.Command); diff != "" {
				t.Errorf("preStop (-operator +manifest):\n%s", diff)
			}
			if grace := pod.TerminationGracePeriodSeconds; grace == nil || *grace != PostgresGraceSeconds {
				t.Errorf("terminationGracePeriodSeconds is %v, want %d", grace, PostgresGraceSeconds)
			}
		})
	}
}
