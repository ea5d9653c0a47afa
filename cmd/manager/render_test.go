package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
)

const widgets = "apiVersion: test.io/v1\nkind: Widget\nmetadata: {name: one}\n---\n# nothing\n---\napiVersion: test.io/v1\nkind: Widget\nmetadata: {name: two}\n"

func TestRenderReadsFileAndStdin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	if err := os.WriteFile(file, []byte(widgets), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "---\napiVersion: v1\ndata:\n  platform: \"\"\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: here\n" +
		"---\napiVersion: v1\ndata:\n  platform: \"\"\nkind: ConfigMap\nmetadata:\n  name: two\n  namespace: here\n"
	for name, args := range map[string][]string{
		"short":  {"render", "-f", file, "--platform=bare", "--namespace=here"},
		"long":   {"render", "--namespace", "here", "--platform", "bare", "--file=" + file},
		"stdin":  {"render", "-platform=bare", "-f=-", "-namespace=here"},
		"config": {"render", "-f", file, "--platform", "bare", "--config", configFile(t)},
	} {
		t.Run(name, func(t *testing.T) {
			s := testProcess{stdin: widgets}.run(t.Context(), args...)
			if s.code != 0 {
				t.Fatalf("exit code %d: %s", s.code, s.stderr)
			}
			if diff := cmp.Diff(want, s.stdout.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func configFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: config.platform.opendatahub.io/v1alpha1\nkind: PlatformOperatorConfiguration\nnamespace: here\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRenderPlatforms(t *testing.T) {
	for platform, want := range map[string][]string{
		"bare": nil, "plain": {"ServiceMonitor", "HTTPRoute"}, "openshift": {"ServiceMonitor", "HTTPRoute", "ConsoleLink", "Route"},
	} {
		s := testProcess{stdin: widgets}.run(t.Context(), "render", "-f", "-", "--platform", platform)
		if s.code != 0 {
			t.Errorf("%s: unexpected stderr: %s", platform, s.stderr)
		}
		for _, kind := range []string{"ServiceMonitor", "HTTPRoute", "ConsoleLink", "Route"} {
			got := regexp.MustCompile(`\b` + kind + `\.`).MatchString(s.stdout.String()) // Route is a suffix of HTTPRoute
			if wantServed := slices.Contains(want, kind); got != wantServed {
				t.Errorf("%s: %s served: %v, want %v", platform, kind, got, wantServed)
			}
		}
	}
}

func TestRenderErrors(t *testing.T) {
	failing := render.Kinds{widget: func(*unstructured.Unstructured, render.Env) (render.Result, error) {
		return render.Result{}, errors.New("boom")
	}}
	stdin := []string{"render", "-f", "-"}
	for name, tc := range map[string]struct {
		process testProcess
		args    []string
		want    string
	}{
		"no file":                    {testProcess{}, []string{"render"}, "render -f FILE"},
		"no value":                   {testProcess{}, []string{"render", "-f"}, "-f needs a value"},
		"missing file":               {testProcess{}, []string{"render", "-f", "gone.yaml"}, "gone.yaml"},
		"unknown platform":           {testProcess{}, []string{"render", "-f", "-", "--platform=mars"}, `"mars"; known platforms: bare, plain, openshift`},
		"unknown flag before render": {testProcess{}, []string{"--colour", "render"}, "unknown flag --colour"},
		"unknown flag after render":  {testProcess{}, append(stdin, "--colour"), "unknown flag --colour"},
		"unknown kind":               {testProcess{stdin: "apiVersion: v1\nkind: Pod\n"}, stdin, "v1/Pod cannot be rendered; known kinds: test.io/v1/Widget"},
		"no kinds":                   {testProcess{stdin: "apiVersion: v1\nkind: Pod\n", kinds: render.Kinds{}}, stdin, "v1/Pod cannot be rendered; known kinds:"},
		"not YAML":                   {testProcess{stdin: "a: ["}, stdin, "document 1 is not valid YAML"},
		"duplicate key":              {testProcess{stdin: "kind: a\nkind: b\n"}, stdin, "kind"},
		"only comments":              {testProcess{stdin: "# only words\n"}, stdin, "no custom resource"},
		"rendering error":            {testProcess{stdin: widgets, kinds: failing}, stdin, "rendering Widget one: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.process.run(t.Context(), tc.args...)
			if s.code != 1 || !strings.Contains(s.stderr.String(), tc.want) {
				t.Errorf("got exit code %d and error %q, want it to contain %q", s.code, s.stderr, tc.want)
			}
			if strings.Count(strings.TrimSpace(s.stderr.String()), "\n") > 0 {
				t.Errorf("%q is more than one line", s.stderr)
			}
		})
	}
}
