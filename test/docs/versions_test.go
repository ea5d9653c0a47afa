package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// findMatch returns the only group of a pattern in a file.
func findMatch(t *testing.T, path, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if match == nil {
		t.Fatalf("%s does not match %s", path, pattern)
	}
	return match[1]
}

// The table of compatible versions has those that the tests build, and the requirements of the manifests.
func TestCompatibilityTableMatchesTests(t *testing.T) {
	rows := cells(read(t, "docs/versions.md"))
	modules := func(path, module string) string { return findMatch(t, path, regexp.QuoteMeta(module)+` (v[0-9.]+)`) }
	for project, want := range map[string]string{
		"Kubernetes":                 findMatch(t, "test/cluster/programs.go", `\tKubernetesVersion += "(v[0-9.]+)"`) + " and " + findMatch(t, "test/cluster/programs.go", `OldestKubernetesVersion = "(v[0-9.]+)"`),
		"KServe":                     modules("go.mod", "github.com/kserve/kserve"),
		"KubeRay":                    modules("go.mod", "github.com/ray-project/kuberay/ray-operator"),
		"Kueue":                      modules("test/cluster/binaries/peers/go.mod", "sigs.k8s.io/kueue"),
		"etcd":                       modules("test/cluster/binaries/go.mod", "go.etcd.io/etcd/server/v3"),
		"Gateway API":                modules("go.mod", "sigs.k8s.io/gateway-api"),
		"Envoy Gateway":              modules("test/cluster/binaries/gateway/go.mod", "github.com/envoyproxy/gateway"),
		"Contour":                    modules("test/cluster/binaries/contour/go.mod", "github.com/projectcontour/contour"),
		"Prometheus Operator":        modules("test/cluster/binaries/monitoring/go.mod", "github.com/prometheus-operator/prometheus-operator"),
		"Operator Lifecycle Manager": findMatch(t, "test/cluster/programs.go", `olmVersion = "(v[0-9.]+)"`),
		"MLflow":                     findMatch(t, "test/operands/image_test.go", `oldest = "([0-9.]+)"`) + " to " + findMatch(t, "test/operands/image_test.go", `newest = "([0-9.]+)"`),
	} {
		if row := rows[project]; len(row) < 4 || row[1] != want {
			t.Errorf("docs/versions.md has %v for %s, and tests run %s", row, project, want)
		}
	}
	oldest := findMatch(t, "cmd/kubectl-odh/internal/doctor/installation.go", `minServerVersion = "([0-9.]+)"`)
	if got := rows["Kubernetes"][2]; got != oldest+" or newer" {
		t.Errorf("docs/versions.md accepts Kubernetes %s, and kubectl odh doctor %s", got, oldest)
	}
	if want := "version: v" + findMatch(t, "test/operands/image_test.go", `oldest = "([0-9.]+)"`); !strings.Contains(read(t, "config/component_metadata.yaml"), want) {
		t.Errorf("config/component_metadata.yaml does not contain %q", want)
	}
}

// The table of versions in docs/maturity.md has all kinds, with the versions that their CRDs serve, the newest first.
func TestMaturityNamesTheVersionsOfKinds(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(paths) < 8 {
		t.Fatal(paths, err)
	}
	rows := cells(read(t, "docs/maturity.md"))
	for _, path := range paths {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(read(t, strings.TrimPrefix(path, root+"/"))), &crd); err != nil {
			t.Fatal(err)
		}
		var versions []string
		for _, version := range crd.Spec.Versions {
			versions = append(versions, version.Name)
		}
		slices.Sort(versions)
		slices.Reverse(versions)
		if row := rows["`"+crd.Spec.Names.Kind+"`"]; len(row) != 2 || row[1] != strings.Join(versions, ", ") {
			t.Errorf("docs/maturity.md has %v for %s, and its CRD %v", row, crd.Spec.Names.Kind, versions)
		}
	}
}
