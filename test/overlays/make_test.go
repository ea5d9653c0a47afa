package overlays

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// docker-build, docker-push and deploy-to-platform take the variables of mlflow-operator. deploy-to-platform deploys to Open Data Hub by
// default, although PLATFORM is plain for other targets.
func TestLegacyMakeTargets(t *testing.T) {
	content(t, "../../Makefile") // invalidates a cached result after a change
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"build and push":       {[]string{"docker-build", "docker-push", "CONTAINER_TOOL=echo", "IMG=example.com/a:1"}, "-t example.com/a:1 .\npush example.com/a:1\n"},
		"default platform":     {[]string{"deploy-to-platform", "KUBECTL=false", "IMG=a"}, "Gateway data-science-gateway in namespace openshift-ingress cannot be read"},
		"platform rhoai":       {[]string{"deploy-to-platform", "KUBECTL=false", "IMG=a", "PLATFORM=rhoai"}, "cannot be read"},
		"unsupported platform": {[]string{"deploy-to-platform", "KUBECTL=false", "IMG=a", "PLATFORM=plain"}, `PLATFORM is "plain": set it to odh or rhoai`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "make", append([]string{"-s", "-C", "../.."}, tc.arguments...)...)
			if output, _ := command.CombinedOutput(); !strings.Contains(string(output), tc.want) { // some targets fail without a cluster
				t.Errorf("want %q in the output:\n%s", tc.want, output)
			}
		})
	}
}

// Client-side apply writes the object as JSON into an annotation, whose size is limited.
func TestCRDsFitIntoLastAppliedAnnotation(t *testing.T) {
	const limit = 256 << 10
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var object any
		if err := yaml.Unmarshal([]byte(content(t, file)), &object); err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(object); len(text) < 500 || len(text) >= limit-1000 {
			t.Errorf("%s has %d bytes, want at least 500 and less than %d", file, len(text), limit-1000)
		}
	}
}
