package doctor

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// countPattern matches the numbers of shipped objects, which grow.
var countPattern = regexp.MustCompile(`\d+( roles| webhooks| CRDs)`)

// compareGolden compares a text with a golden file.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	framework.GoldenText(t, filepath.Join("testdata", name), countPattern.ReplaceAllString(got, "N$1"))
}

// unhealthyCluster returns an installation with three failed checks and one unknown result.
func unhealthyCluster(t *testing.T) *clusterState {
	w := healthy(t)
	w.documents(legacyDeployment(installed.DeploymentName, "other", 1) + "\n---\n" + legacyDeployment("model-registry-operator-controller-manager", "old", 1))
	edit(w, "CustomResourceDefinition", "mlflowconfigs.mlflow.kubeflow.org", func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil })
	refuse("clusterrolebindings")(w)
	return w
}

func TestText(t *testing.T) {
	compareGolden(t, "healthy.txt", newReport(healthy(t).examine()).text())
	compareGolden(t, "unhealthy.txt", newReport(unhealthyCluster(t).examine()).text())
	multiline := Report{Findings: []Finding{{Result: Warn, Check: "settings", Found: "two\nlines \x1b[31m", Fix: "remove it"}}}
	if text := multiline.text(); strings.Contains(text, "two\n") || strings.Contains(text, "\x1b") {
		t.Errorf("text() = %q, want one line without escape sequences", text)
	}
}

func TestJSON(t *testing.T) {
	report := newReport(unhealthyCluster(t).examine())
	bad := slices.DeleteFunc(slices.Clone(report.Findings), func(f Finding) bool { return f.Result == OK })
	text, err := json.MarshalIndent(bad, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "unhealthy.json", string(text)+"\n")
	if report.OK || report.Summary[Fail] != 3 || report.Summary[Unknown] != 1 {
		t.Errorf("unexpected report.Summary: %+v", report.Summary)
	}
}
