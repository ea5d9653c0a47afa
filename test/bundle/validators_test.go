package bundle

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verdict is the output of the command validators.
type verdict struct {
	Validators []string
	Findings   []struct{ Validator, Level, Detail string }
}

// docker is a fake engine that has every image for the platforms of the Makefile, because tests have no network.
// The validator then compares labels, affinity and images of the CSV.
const docker = `#!/bin/sh
test "$1" = manifest || exit 0
cat <<'END'
{"manifests": [
  {"platform": {"os": "linux", "architecture": "amd64"}}, {"platform": {"os": "linux", "architecture": "arm64"}},
  {"platform": {"os": "linux", "architecture": "ppc64le"}}, {"platform": {"os": "linux", "architecture": "s390x"}}
]}
END
`

// validate builds the command validators and runs it.
func validate(t *testing.T, folder string) verdict {
	t.Helper()
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "docker"), []byte(docker), 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(tools, "validators")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = "validators"
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the validators: %v\n%s", err, output)
	}
	run := exec.CommandContext(t.Context(), program, folder, minKubernetes)
	run.Env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stderr bytes.Buffer
	run.Stderr = &stderr
	output, err := run.Output()
	if err != nil {
		t.Fatalf("unexpected error: %v\n%s", err, stderr.String())
	}
	var v verdict
	if err := json.Unmarshal(output, &v); err != nil {
		t.Fatalf("unexpected error: %v\n%s", err, output)
	}
	return v
}

// No validator of the operator framework, including the optional ones, reports errors or warnings. Two have no input: a bundle has
// neither a package manifest nor an OperatorGroup.
func TestValidatorsPass(t *testing.T) {
	v := validate(t, root+"/bundle")
	for _, f := range v.Findings {
		t.Errorf("validator %s reports %s: %s", f.Validator, f.Level, f.Detail)
	}
	if len(v.Validators) != 11 {
		t.Errorf("got results of the validators %q, want 11", v.Validators)
	}
}

// Validators report the mistakes in a bundle.
func TestValidatorsReportMistakes(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(root+"/bundle")); err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct{ file, old, new string }{
		{"manifests/odh-platform-operator.clusterserviceversion.yaml", "capabilities: Seamless Upgrades", "capabilities: Marvellous"},
		{"manifests/odh-platform-operator.clusterserviceversion.yaml", "AI/Machine Learning", "Nonsense"},
		{"manifests/odh-platform-operator.clusterserviceversion.yaml", "minKubeVersion: 1.30.0", "minKubeVersion: soon"},
		{"manifests/odh-platform-operator.clusterserviceversion.yaml", "operatorframework.io/arch.s390x: supported", "operatorframework.io/arch.other: supported"},
		{"manifests/odh-platform-operator.clusterserviceversion.yaml", "kind: MLflowConfig\n", "kind: Other\n"},
		{"metadata/annotations.yaml", "candidate", "weekly"},
	} {
		path := filepath.Join(folder, change.file)
		before := string(read(t, path))
		after := strings.ReplaceAll(before, change.old, change.new)
		if after == before {
			t.Fatalf("%s does not contain %q", change.file, change.old)
		}
		if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]bool{}
	for _, f := range validate(t, folder).Findings {
		found[f.Validator] = true
	}
	for _, name := range []string{"ClusterServiceVersion", "bundle", "operatorhub", "categories", "capabilities", "good practices", "architectures"} {
		if !found[name] {
			t.Errorf("the validator %s reports nothing; reports of %v", name, found)
		}
	}
}
