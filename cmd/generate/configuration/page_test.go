package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const checkout = "../../.."

// The page in the checkout equals the generated one.
func TestPageIsFresh(t *testing.T) {
	have, err := os.ReadFile(filepath.Join(checkout, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page(config.SettingDocs(program())) {
		t.Error("docs/configuration.md is stale: run make generate")
	}
}

// Each setting is in a table, with flag, variable and key.
func TestPageHasRowForEachSetting(t *testing.T) {
	settings := config.SettingDocs(program())
	text := page(settings)
	for _, setting := range settings {
		if !strings.Contains(text, "\n"+row(setting)+"\n") {
			t.Errorf("no row for %+v", setting)
		}
	}
}

func TestSettingsAreGroupedByTitle(t *testing.T) {
	for want, setting := range map[string]config.SettingDoc{
		"Components": {Flag: "enable-mlflow"}, "Listeners": {Flag: "x", Key: "webhook.port"}, "Logging": {Flag: "zap-devel", Key: "logging.development"},
		"Process": {Flag: "kubeconfig"}, "RayCluster": {Key: "raycluster.publish"}, "AppWrapper": {Key: "appwrapper.autopilot.monitorNodes"}, "Model Registry": {Key: "modelregistry.image"},
		"Authors of custom resources": {Flag: "author-checks", Key: "admission.authorChecks"}, "Model Catalog": {Key: "modelcatalog.image"}, "ModelMesh": {Key: "modelmesh.image"}, "MLflow": {Key: "mlflow.url"},
	} {
		if got := titleOf(setting); got != want {
			t.Errorf("%+v is in table %q, want %q", setting, got, want)
		}
	}
}

func TestRowEscapesCells(t *testing.T) {
	setting := config.SettingDoc{Flag: "a", Env: []string{"B", "C"}, Key: "d.e", Default: filepath.Join(os.TempDir(), "x"), Help: "one | two"}
	if got, want := row(setting), "| `--a` | `B`, `C` | `d.e` | `/tmp/x` | one \\| two |"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := row(config.SettingDoc{Help: "h"}), "|  |  |  |  | h |"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if normalizeTempDir(os.TempDir()+"orary") != os.TempDir()+"orary" {
		t.Error("a path that only shares a prefix with the temporary folder was normalized")
	}
}

func TestRun(t *testing.T) {
	if run(nil) == nil {
		t.Error("want an error for run without a path")
	}
	target := filepath.Join(t.TempDir(), "page.md")
	if err := run([]string{target}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) == 0 {
		t.Errorf("nothing was written: %v", err)
	}
}
