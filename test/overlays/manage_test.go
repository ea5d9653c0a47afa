package overlays

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeKubectl records its arguments and the applied params.env, and its output is set by variables. Calls with the argument
// in variable FAIL fail.
const fakeKubectl = `#!/usr/bin/env bash
echo "$*" >>"$CALLS"
for word in "$@"; do [ "$word" != "${FAIL:-}" ] || { echo "connection refused" >&2; exit 1; }; done
for word in "$@"; do if [ -f "$word/params.env" ]; then cat "$word/params.env" >"$CALLS.params"; fi; done
case "$*" in
  *gateways*) printf %s "${ADDRESS:-}" ;;
  *"get customresourcedefinitions"*) printf '%b' "${CRDS:-}" ;;
  *--all-namespaces*) printf '%b' "${OBJECTS:-}" ;;
  *"get deployments"*) printf %s "${RUNTIMES:-}" ;;
  *"go-template=apiVersion"*) echo "copied-secret" ;;
  *"get secret storage-config --ignore-not-found"*) printf %s "${STORED:-}" ;;
  *"create -f -"*) cat >>"$CALLS" ;;
esac
`

// result is that of config/manage with fakeKubectl.
type result struct {
	output, calls, params string
	failed                bool
}

// manage runs config/manage.
func manage(t *testing.T, target string, env ...string) result {
	t.Helper()
	return runScript(t, "../../config/manage", target, env...)
}

// runScript runs config/manage or a copy of it.
func runScript(t *testing.T, script, target string, env ...string) result {
	t.Helper()
	dir := t.TempDir()
	kubectl, calls := filepath.Join(dir, "kubectl"), filepath.Join(dir, "calls")
	if err := os.WriteFile(kubectl, []byte(fakeKubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), script, target)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "KUBECTL=" + kubectl, "CALLS=" + calls}, env...)
	output, err := command.CombinedOutput()
	left, globErr := filepath.Glob(filepath.Join(dir, "tmp.*"))
	if globErr != nil || len(left) > 0 {
		t.Errorf("temporary directories %v were not deleted, error %v", left, globErr)
	}
	return result{output: string(output), calls: content(t, calls), params: content(t, calls+".params"), failed: err != nil}
}

// content returns the content of a file, "" if it does not exist.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// The applied params.env differs from that of the checkout only in the requested values.
func TestManageSetsParameters(t *testing.T) {
	const plain, gateway = "odh-platform-operator-image=", "mlflow-url=https://gate.example.org"
	for name, tc := range map[string]struct {
		target string
		env    []string
		want   []string // changed lines of params.env
	}{
		"image":                         {"deploy", []string{"OVERLAY=rhoai", "IMG=a:1"}, []string{plain + "a:1"}},
		"image with special characters": {"deploy", []string{"OVERLAY=odh", `IMG=a&b\1 "c" $(d) 'e'`}, []string{plain + `a&b\1 "c" $(d) 'e'`}},
		"default Gateway":               {"deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org", "IMG=c"}, []string{gateway, plain + "c"}},
		"custom Gateway": {"deploy-to-platform", []string{"PLATFORM=rhoai", "ADDRESS=gate.example.org", "ODH_GATEWAY_NAME=g", "ODH_GATEWAY_NAMESPACE=n", "IMG=b"},
			[]string{gateway, "gateway-name=g", "gateway-namespace=n", plain + "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manage(t, tc.target, tc.env...)
			if got.failed {
				t.Fatal(got.output)
			}
			overlay := strings.TrimPrefix(strings.TrimPrefix(tc.env[0], "OVERLAY="), "PLATFORM=")
			shipped := strings.Split(content(t, "../../config/overlays/"+overlay+"/params.env"), "\n")
			var changed []string
			for index, line := range strings.Split(got.params, "\n") {
				if index >= len(shipped) || line != shipped[index] {
					changed = append(changed, line)
				}
			}
			slices.Sort(changed)
			slices.Sort(tc.want)
			if !slices.Equal(changed, tc.want) {
				t.Errorf("changed lines %q, want %q", changed, tc.want)
			}
			if !strings.Contains(got.calls, "apply --server-side --force-conflicts --field-manager=odh-platform-operator-install -k ") {
				t.Errorf("calls %s, want a server-side apply", got.calls)
			}
		})
	}
}

// serve-models labels namespaces after their other objects exist, and keeps an existing storage Secret.
func TestManageServesModels(t *testing.T) {
	const label, copied = " modelmesh-enabled=true --overwrite\n", "-n team create -f -\ncopied-secret\n"
	for name, tc := range map[string]struct {
		env  []string
		want []string // in this order
		not  string
	}{
		"without storage":             {nil, []string{"get namespace team", "label namespace team" + label, "label namespace other" + label}, "storage-config"},
		"with storage":                {[]string{"STORAGE=1"}, []string{copied, "label namespace team" + label, "-n other create -f -", "label namespace other" + label}, "create namespace"},
		"storage Secret exists":       {[]string{"STORAGE=1", "STORED=secret/storage-config"}, []string{"label namespace team" + label}, "copied-secret"},
		"another overlay":             {[]string{"STORAGE=1", "OVERLAY=rhoai"}, []string{"-n redhat-ods-applications get secret model-serving-etcd", copied}, "-n opendatahub"},
		"namespace cannot be created": {[]string{"FAIL=namespace"}, []string{"get namespace team", "create namespace team"}, "label"},
		"STORAGE is not 1":            {[]string{"STORAGE=true"}, []string{"label namespace team" + label}, "storage-config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manage(t, "serve-models", append(tc.env, "NAMESPACES=team other")...)
			if failed := strings.HasPrefix(strings.Join(tc.env, " "), "FAIL"); got.failed != failed {
				t.Fatal(got.output)
			}
			rest := got.calls
			for _, want := range tc.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("want %q in this order in the calls:\n%s", want, got.calls)
				}
				rest = after
			}
			if strings.Contains(got.calls, tc.not) {
				t.Errorf("unexpected %q in the calls:\n%s", tc.not, got.calls)
			}
		})
	}
}

// Errors name the cause, and no object is changed.
func TestManageReportsErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		env    []string
		want   string
	}{
		"target is missing":             {"", nil, "usage:"},
		"unknown target":                {"destroy", nil, "usage:"},
		"unknown overlay":               {"deploy", []string{"OVERLAY=vanilla"}, `there is no overlay "vanilla": set OVERLAY to one of kubernetes odh openshift rhoai`},
		"image is not published":        {"deploy", []string{"OVERLAY=kubernetes"}, "ghcr.io/odh-platform/odh-platform-operator:unreleased is not published: set IMG"},
		"IMG is missing":                {"deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org"}, "IMG is not set"},
		"overlay is a path":             {"install", []string{"OVERLAY=../default"}, "there is no overlay"},
		"PLATFORM is missing":           {"deploy-to-platform", nil, `PLATFORM is "": set it to odh or rhoai`},
		"unknown platform":              {"deploy-to-platform", []string{"PLATFORM=plain"}, `PLATFORM is "plain"`},
		"Gateway cannot be read":        {"deploy-to-platform", []string{"PLATFORM=odh", "FAIL=data-science-gateway"}, "Gateway data-science-gateway in namespace openshift-ingress cannot be read: name one"},
		"Gateway has no address":        {"deploy-to-platform", []string{"PLATFORM=odh", "ODH_GATEWAY_NAME=g"}, "Gateway g in namespace openshift-ingress has no address yet"},
		"CRDs cannot be listed":         {"uninstall", []string{"FAIL=customresourcedefinitions"}, "the CRDs cannot be listed"},
		"objects exist":                 {"uninstall", []string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`}, "A n/x\n\nNothing was removed."},
		"objects cannot be listed":      {"uninstall", []string{`CRDS=a.b\nc.d\n`, "FAIL=c.d"}, "objects of c.d, which cannot be listed\n\nNothing was removed."},
		"NAMESPACES is missing":         {"serve-models", nil, "NAMESPACES is not set"},
		"etcd Secret is missing":        {"serve-models", []string{"NAMESPACES=a", "FAIL=model-serving-etcd"}, "create the Secret model-serving-etcd in namespace opendatahub"},
		"storage Secret cannot be read": {"serve-models", []string{"NAMESPACES=a", "STORAGE=1", "FAIL=storage-config"}, "cannot be copied: create it"},
		"FORCE is not 1":                {"uninstall", []string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`, "FORCE=yes"}, "Nothing was removed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manage(t, tc.target, tc.env...)
			if !got.failed || !strings.Contains(got.output, tc.want) {
				t.Errorf("failed %t, output %q, want %q", got.failed, got.output, tc.want)
			}
			for _, verb := range []string{"apply", "delete", "create"} {
				if strings.Contains(got.calls, verb) {
					t.Errorf("unexpected %s in the calls %s", verb, got.calls)
				}
			}
		})
	}
}

// If the key of a requested value was removed from params.env, nothing is deployed.
func TestManageReportsMissingKeys(t *testing.T) {
	const image, url = "odh-platform-operator-image", "mlflow-url"
	for name, tc := range map[string]struct {
		removed, target string
		env             []string
		want            string // the reported key
	}{
		"image":       {image, "deploy", []string{"OVERLAY=odh", "IMG=a:1"}, image},
		"address":     {url, "deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org", "IMG=a:3"}, url},
		"unrequested": {url, "deploy", []string{"OVERLAY=odh", "IMG=a:2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			// Not parallel: a newly written script cannot be executed while another process forks.
			dir := t.TempDir()
			for _, file := range []string{"manage", "overlays/odh/kustomization.yaml", "overlays/odh/params.env"} {
				text := content(t, "../../config/"+file)
				if filepath.Ext(file) == ".env" {
					text = strings.Replace("\n"+text, "\n"+tc.removed+"=", "\n#"+tc.removed+"=", 1)
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			got := runScript(t, filepath.Join(dir, "manage"), tc.target, tc.env...)
			want := filepath.Join(dir, "overlays/odh/params.env") + " has no key " + tc.want + ","
			switch reported := strings.Contains(got.output, want) && strings.Contains(got.output, "add the line "+tc.want+"= to the file again"); {
			case got.failed != (tc.want != ""), got.failed && !reported:
				t.Errorf("failed %t, output %q, want the missing key %q", got.failed, got.output, tc.want)
			case got.failed && (strings.Contains(got.calls, "apply") || strings.Contains(got.calls, "create")):
				t.Errorf("calls %s, want no apply or create", got.calls)
			}
		})
	}
}

// uninstall deletes the CRDs if they have no objects; with FORCE=1 also with their objects.
func TestManageUninstalls(t *testing.T) {
	for name, tc := range map[string]struct {
		env  []string
		want string
	}{
		"not installed": {nil, ""},
		"no objects":    {[]string{`CRDS=a.b\nc.d\n`}, "delete customresourcedefinition --timeout=2m a.b c.d\n"},
		"with FORCE=1":  {[]string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`, "FORCE=1"}, "delete customresourcedefinition --timeout=2m a.b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manage(t, "uninstall", tc.env...)
			index := strings.Index(got.calls, "delete")
			if got.failed || (index >= 0) != (tc.want != "") || index >= 0 && got.calls[index:] != tc.want {
				t.Errorf("failed %t, calls %q, want %q: %s", got.failed, got.calls, tc.want, got.output)
			}
		})
	}
	got := manage(t, "uninstall", `CRDS=a.b\n`, "FAIL=delete")
	if !got.failed || !strings.Contains(got.output, "finalizer that the operator removes: run make deploy") {
		t.Errorf("output after a timeout of the deletion: %q, want the fix", got.output)
	}
}

// undeploy deletes the manager before its roles, and keeps objects with the label odh-platform-operator/keep.
func TestManageUndeploys(t *testing.T) {
	got := manage(t, "undeploy", "OVERLAY=rhoai")
	calls := strings.Split(strings.TrimSpace(got.calls), "\n")
	if got.failed || len(calls) != 6 {
		t.Fatalf("calls %q: %s", calls, got.output)
	}
	for index, want := range []string{
		"-n redhat-ods-applications delete deployment/" + managerName + " --ignore-not-found --cascade=foreground",
		"delete -k ", "delete --ignore-not-found -k ", "-n redhat-ods-applications delete --ignore-not-found lease/odh-platform-operator secret/odh-platform-operator-webhook-cert",
		"-n redhat-ods-applications get deployments -l app.kubernetes.io/managed-by=modelmesh-controller",
		"-n redhat-ods-applications delete services -l app.kubernetes.io/managed-by=modelmesh-controller",
	} {
		if !strings.HasPrefix(calls[index], want) {
			t.Errorf("call %d is %q, want %q", index, calls[index], want)
		}
	}
	if !strings.Contains(calls[1], "/overlays/rhoai -l !"+keep+" --ignore-not-found") {
		t.Errorf("arguments of kubectl %q, want the overlay without objects with the label %s", calls[1], keep)
	}
	if strings.Contains(got.calls, "customresourcedefinition") || strings.Contains(got.calls, "namespace ") {
		t.Errorf("calls %s, want none for CRDs or namespaces", got.calls)
	}
}

// undeploy keeps the Service of existing runtimes.
func TestManageKeepsServiceOfRuntimes(t *testing.T) {
	got := manage(t, "undeploy", "OVERLAY=odh", "RUNTIMES=deployment.apps/modelmesh-serving-mlserver")
	if got.failed || strings.Contains(got.calls, "delete services") || !strings.Contains(got.output, "Removed the operator.") {
		t.Errorf("calls %s, want the Service kept: %s", got.calls, got.output)
	}
}

// undeploy keeps the Service of runtimes if it cannot list the runtimes.
func TestManageKeepsServiceIfRuntimesAreUnknown(t *testing.T) {
	got := manage(t, "undeploy", "OVERLAY=odh", "FAIL=deployments")
	if !got.failed || strings.Contains(got.calls, "delete services") || strings.Contains(got.output, "Removed the operator.") {
		t.Errorf("failed %t, calls %s, want a failure and the Service kept: %s", got.failed, got.calls, got.output)
	}
}

// Without IMG, a released checkout uses the image of the release.
func TestManageDeploysReleasedCheckout(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"manage", "overlays/kubernetes/kustomization.yaml", "overlays/kubernetes/params.env"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(content(t, "../../config/"+file), ":unreleased\n", ":v1.2.3\n", 1)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := runScript(t, filepath.Join(dir, "manage"), "deploy", "OVERLAY=kubernetes")
	if got.failed || !strings.Contains(got.params, "odh-platform-operator-image=ghcr.io/odh-platform/odh-platform-operator:v1.2.3\n") {
		t.Errorf("%s: want the image of v1.2.3 in the parameters:\n%s", got.output, got.params)
	}
}

// deploy creates a missing namespace, and does not change an existing one.
func TestManageCreatesNamespace(t *testing.T) {
	if got := manage(t, "deploy", "OVERLAY=rhoai", "IMG=a:1"); got.failed || strings.Contains(got.calls, "create") {
		t.Errorf("calls %s, want no create", got.calls)
	}
	got := manage(t, "deploy", "OVERLAY=rhoai", "IMG=a:1", "FAIL=get")
	if got.failed || !strings.Contains(got.calls, "create namespace redhat-ods-applications\n") {
		t.Errorf("calls %s, want the creation of the namespace: %s", got.calls, got.output)
	}
}
