package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// findMatch returns the first group of a pattern in a file.
func findMatch(t *testing.T, path, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if match == nil {
		t.Fatalf("%s does not match %s", path, pattern)
	}
	return match[1]
}

var updateVersions = flag.Bool("update-versions", false, "write the tested versions in docs/versions.md")

// versionIn returns the version of a module in a go.mod file.
func versionIn(t *testing.T, path, module string) string {
	t.Helper()
	return findMatch(t, path, regexp.QuoteMeta(module)+` (v[0-9.]+)`)
}

// testedVersions returns the tested versions by project, from go.mod files and tests, for the table of compatible versions.
func testedVersions(t *testing.T) map[string]string {
	t.Helper()
	const programs, operands = "test/cluster/programs.go", "test/operands/image_test.go"
	return map[string]string{
		"Kubernetes":                 findMatch(t, programs, `\tKubernetesVersion += "(v[0-9.]+)"`) + " and " + findMatch(t, programs, `OldestKubernetesVersion = "(v[0-9.]+)"`),
		"KServe":                     versionIn(t, "test/cluster/binaries/kserve/go.mod", "github.com/kserve/kserve"),
		"KubeRay":                    versionIn(t, "test/cluster/binaries/kuberay/go.mod", "github.com/ray-project/kuberay/ray-operator"),
		"Kueue":                      versionIn(t, "test/cluster/binaries/peers/go.mod", "sigs.k8s.io/kueue"),
		"etcd":                       versionIn(t, "test/cluster/binaries/go.mod", "go.etcd.io/etcd/server/v3"),
		"Gateway API":                versionIn(t, "go.mod", "sigs.k8s.io/gateway-api"),
		"Envoy Gateway":              versionIn(t, "test/cluster/binaries/gateway/go.mod", "github.com/envoyproxy/gateway"),
		"Contour":                    versionIn(t, "test/cluster/binaries/contour/go.mod", "github.com/projectcontour/contour"),
		"Prometheus Operator":        versionIn(t, "test/cluster/binaries/monitoring/go.mod", "github.com/prometheus-operator/prometheus-operator"),
		"Operator Lifecycle Manager": findMatch(t, programs, `olmVersion = "(v[0-9.]+)"`) + " and " + findMatch(t, programs, `olmV1Version = "(v[0-9.]+)"`),
		"MLflow":                     findMatch(t, operands, `oldest = "([0-9.]+)"`) + " to " + findMatch(t, operands, `newest = "([0-9.]+)"`),
	}
}

// namedVersions maps patterns of sentences and cells in docs/versions.md, with a version in a group, to the version in tests.
func namedVersions(t *testing.T) map[string]string {
	t.Helper()
	registry, adapters := "test/operands/binaries/modelregistry/go.mod", "test/operands/binaries/runtime-adapter/go.mod"
	named := map[string]string{
		`the server of Model Registry (v[0-9.]+[0-9])`:                   versionIn(t, registry, "github.com/kubeflow/model-registry"),
		`The catalog is that of Model Registry (v[0-9.]+[0-9])`:          versionIn(t, registry, "github.com/kubeflow/model-registry"),
		"`model-registry` [^|]*\\| Model Registry (v[0-9.]+[0-9])":       versionIn(t, registry, "github.com/kubeflow/model-registry"),
		`github\.com/brancz/kube-rbac-proxy (v[0-9.]+[0-9])`:             versionIn(t, "test/cluster/binaries/peers/go.mod", "github.com/brancz/kube-rbac-proxy"),
		`the adapters and the puller of (v[0-9.]+[0-9])`:                 versionIn(t, adapters, "github.com/kserve/modelmesh-runtime-adapter"),
		`etcd (v[0-9.]+[0-9]) with the scripts`:                          testedVersions(t)["etcd"],
		"`codeflare-sdk` [^|]*\\| KubeRay (v[0-9.]+[0-9])":               testedVersions(t)["KubeRay"],
		`\| MLflow ([0-9.]+ and [0-9.]+[0-9]) of PyPI`:                   strings.Replace(testedVersions(t)["MLflow"], " to ", " and ", 1),
		`every minor version of MLflow from ([0-9.]+ to [0-9.]+[0-9])\b`: minors(testedVersions(t)["MLflow"]),
	}
	const registryTest = "test/clients/registry_test.go"
	for name, releases := range map[string]string{
		"codeflare-sdk": clientReleases(t, "codeflare-sdk"), "kserve": clientReleases(t, "kserve"), "mlflow": testedVersions(t)["MLflow"],
		"model-registry": findMatch(t, registryTest, `releases\("model-registry", "[0-9.]+", "([0-9.]+)"`) + " to " +
			findMatch(t, registryTest, `releases\("model-registry", "([0-9.]+)"`),
	} {
		named["\\| `"+name+"` ([0-9.]+ to [0-9.]+[0-9])"] = releases
	}
	return named
}

// minors returns a range of versions without their patch versions.
func minors(versions string) string {
	return regexp.MustCompile(`\.\d+( |$)`).ReplaceAllString(versions, "$1")
}

// clientReleases returns the range of the releases of a Python client that tests install.
func clientReleases(t *testing.T, name string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "test/clients/requirements", name+"-[0-9]*.txt"))
	if err != nil || len(paths) < 2 {
		t.Fatal(name, paths, err)
	}
	var releases []string
	for _, path := range paths {
		releases = append(releases, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), name+"-"), ".txt"))
	}
	slices.SortFunc(releases, func(a, b string) int { return semver.MustParse(a).Compare(semver.MustParse(b)) })
	return releases[0] + " to " + releases[len(releases)-1]
}

// replaceGroup replaces the group of a pattern, which must match once.
func replaceGroup(t *testing.T, page, pattern, value string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatchIndex(page, -1)
	if len(found) != 1 {
		t.Errorf("docs/versions.md has %d matches of %s, want 1", len(found), pattern)
		return page
	}
	return page[:found[0][2]] + value + page[found[0][3]:]
}

// docs/versions.md has the versions that tests build and install. With -update-versions, the test writes them.
func TestVersionsMatchTests(t *testing.T) {
	original := read(t, "docs/versions.md")
	page := original
	for project, version := range testedVersions(t) {
		page = replaceGroup(t, page, `(?m)^\| `+regexp.QuoteMeta(project)+` \| ([^|]*[^| ]) \| [^|]* \| [^|]* \|$`, version)
	}
	for pattern, version := range namedVersions(t) {
		page = replaceGroup(t, page, pattern, version)
	}
	switch {
	case page == original || t.Failed():
	case *updateVersions:
		if err := os.WriteFile(filepath.Join(root, "docs/versions.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("run go test ./test/docs -run TestVersionsMatchTests -update-versions: docs/versions.md has other versions than the tests (-page +tests):\n%s",
			cmp.Diff(strings.Split(original, "\n"), strings.Split(page, "\n")))
	}
}

// The versions in go.mod, in kubectl odh doctor and in config/component_metadata.yaml are versions that tests run.
func TestVersionsAreConsistent(t *testing.T) {
	tested := testedVersions(t)
	oldest := findMatch(t, "cmd/kubectl-odh/internal/doctor/installation.go", `minServerVersion = "([0-9.]+)"`)
	if got := cells(read(t, "docs/versions.md"))["Kubernetes"][2]; got != oldest+" or newer" {
		t.Errorf("docs/versions.md accepts Kubernetes %s, but kubectl odh doctor accepts %s", got, oldest)
	}
	if built := versionIn(t, "test/cluster/binaries/oldest/go.mod", "k8s.io/kubernetes"); !strings.HasPrefix(built, "v"+oldest+".") || !strings.HasSuffix(tested["Kubernetes"], built) {
		t.Errorf("tests build %s as the oldest Kubernetes, but the page has %s, and kubectl odh doctor accepts %s", built, tested["Kubernetes"], oldest)
	}
	for project, module := range map[string]string{"KServe": "github.com/kserve/kserve", "KubeRay": "github.com/ray-project/kuberay/ray-operator"} {
		if types := versionIn(t, "go.mod", module); types != tested[project] {
			t.Errorf("the operator uses the types of %s %s, but tests run %s", project, types, tested[project])
		}
	}
	const monitoring = "github.com/prometheus-operator/prometheus-operator"
	for module, types := range map[string]string{
		"sigs.k8s.io/gateway-api": "sigs.k8s.io/gateway-api", monitoring: monitoring + "/pkg/apis/monitoring", "github.com/kserve/kserve": "github.com/kserve/kserve",
		"github.com/ray-project/kuberay/ray-operator": "github.com/ray-project/kuberay/ray-operator",
	} {
		crds := findMatch(t, "test/cluster/crdsets.go", `"`+regexp.QuoteMeta(module)+`",\s+Version: "(v[0-9.]+)"`)
		if used := versionIn(t, "go.mod", types); crds != used {
			t.Errorf("the operator uses the types of %s %s, but test clusters have the CRDs of %s", types, used, crds)
		}
	}
	if want := "version: v" + findMatch(t, "test/operands/image_test.go", `oldest = "([0-9.]+)"`); !strings.Contains(read(t, "config/component_metadata.yaml"), want) {
		t.Errorf("config/component_metadata.yaml does not contain %q", want)
	}
}

// docs/maturity.md lists all kinds with the versions of their CRDs, the newest first.
func TestMaturityListsVersionsOfKinds(t *testing.T) {
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
		slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		if row := rows["`"+crd.Spec.Names.Kind+"`"]; len(row) != 2 || row[1] != strings.Join(versions, ", ") {
			t.Errorf("docs/maturity.md has %v for %s, but its CRD has %v", row, crd.Spec.Names.Kind, versions)
		}
	}
}
