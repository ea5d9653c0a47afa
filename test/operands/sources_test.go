//go:build operands

package operands

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// sourceValidation makes the server reject model versions whose artifacts it does not store.
var sourceValidation = corev1.EnvVar{Name: "MLFLOW_CREATE_MODEL_VERSION_SOURCE_VALIDATION_REGEX", Value: "^((mlflow-artifacts|models|runs):|[^:/]+$)"}

// checkSources expects that the server rejects local paths and sources in buckets, which it would read with its own credentials.
func (s *mlflowServer) checkSources() {
	s.t.Helper()
	root, err := cluster.RepositoryRoot()
	s.must(err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	s.must(err)
	if want := "  - name: " + sourceValidation.Name + "\n    value: \"" + sourceValidation.Value + "\"\n"; !strings.Contains(string(page), want) {
		s.t.Errorf("docs/security.md does not contain\n%s", want)
	}
	const api = "/mlflow/api/2.0/mlflow"
	prompt := []any{map[string]string{"key": "mlflow.prompt.is_prompt", "value": "true"}, map[string]string{"key": "mlflow.prompt.text", "value": "Say {{word}}"}}
	for name, tags := range map[string][]any{"limited": {}, "prompted": prompt[:1]} {
		s.expect(http.StatusOK, http.MethodPost, api+"/registered-models/create", map[string]any{"name": name, "tags": tags})
	}
	for source, want := range map[string]int{
		"s3://other/workspaces/team-b/model": http.StatusBadRequest,
		"dbfs:/model":                        http.StatusBadRequest,
		"gs://other/mlflow-artifacts:/model": http.StatusBadRequest,
		"/mlflow/mlflow.db":                  http.StatusBadRequest,
		"other":                              http.StatusBadRequest, // a local path, which the server rejects even without the variable
	} {
		s.expect(want, http.MethodPost, api+"/model-versions/create", map[string]any{"name": "limited", "source": source})
	}
	for source, want := range map[string]int{"prompt-template": http.StatusOK, "s3://other/workspaces/team-b/model": http.StatusBadRequest} {
		s.expect(want, http.MethodPost, api+"/model-versions/create", map[string]any{"name": "prompted", "source": source, "tags": prompt})
	}
	s.reportResponse("model version in another bucket, with the variable of docs/security.md", "400")
}
