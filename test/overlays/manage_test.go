package overlays

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeKubectl records its arguments and the applied params.env, and responds as the variables set it. FAIL is a substring of
// the calls that fail.
const fakeKubectl = `#!/usr/bin/env bash
echo "$*" >>"$CALLS"
for word in "$@"; do [ "$word" != "${FAIL:-}" ] || { echo "no answer" >&2; exit 1; }; done
for word in "$@"; do if [ -f "$word/params.env" ]; then cat "$word/params.env" >"$CALLS.params"; fi; done
case "$*" in
  *gateways*) printf %s "${ADDRESS:-}" ;;
  *"get customresourcedefinitions"*) printf '%b' "${CRDS:-}" ;;
  *--all-namespaces*) printf '%b' "${OBJECTS:-}" ;;
  *"get deployments"*) printf %s "${RUNTIMES:-}" ;;
  *"go-template=apiVersion"*) echo "the copy" ;;
  *"get secret storage-config --ignore-not-found"*) printf %s "${STORED:-}" ;;
  *"create -f -"*) cat >>"$CALLS" ;;
esac
`

// call is a run of config/manage with fakeKubectl.
type call struct {
	output, calls, params string
	failed                bool
}

func manage(t *testing.T, target string, env ...string) call {
	t.Helper()
	return manageBy(t, "../../config/manage", target, env...)
}

// manageBy runs the script of another checkout.
func manageBy(t *testing.T, script, target string, env ...string) call {
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
		t.Errorf("the copy was left behind: %v, %v", left, globErr)
	}
	return call{output: string(output), calls: content(t, calls), params: content(t, calls+".params"), failed: err != nil}
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

// The applied manifests differ from the checkout only in the requested values, regardless of their content.
func TestManageSetsParameters(t *testing.T) {
	const plain, gateway = "odh-platform-operator-image=", "mlflow-url=https://gate.example.org"
	for name, tc := range map[string]struct {
		target string
		env    []string
		want   []string // lines that are added to the checkout
	}{
		"an image":                      {"deploy", []string{"OVERLAY=rhoai", "IMG=a:1"}, []string{plain + "a:1"}},
		"image with special characters": {"deploy", []string{"OVERLAY=odh", `IMG=a&b\1 "c" $(d) 'e'`}, []string{plain + `a&b\1 "c" $(d) 'e'`}},
		"the usual Gateway":             {"deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org", "IMG=c"}, []string{gateway, plain + "c"}},
		"another Gateway": {"deploy-to-platform", []string{"PLATFORM=rhoai", "ADDRESS=gate.example.org", "ODH_GATEWAY_NAME=g", "ODH_GATEWAY_NAMESPACE=n", "IMG=b"},
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
				t.Errorf("changed are %q, want %q", changed, tc.want)
			}
			if !strings.Contains(got.calls, "apply --server-side --force-conflicts --field-manager=odh-platform-operator-install -k ") {
				t.Errorf("calls %s", got.calls)
			}
		})
	}
}

// Namespaces for models are labelled after everything else exists, and keep a Secret of their own.
func TestManageServesModels(t *testing.T) {
	const label, copied = " modelmesh-enabled=true --overwrite\n", "-n team create -f -\nthe copy\n"
	for name, tc := range map[string]struct {
		env  []string
		want []string // in this order
		not  string
	}{
		"label only":            {nil, []string{"get namespace team", "label namespace team" + label, "label namespace other" + label}, "storage-config"},
		"storage":               {[]string{"STORAGE=1"}, []string{copied, "label namespace team" + label, "-n other create -f -", "label namespace other" + label}, "create namespace"},
		"storage Secret exists": {[]string{"STORAGE=1", "STORED=secret/storage-config"}, []string{"label namespace team" + label}, "the copy"},
		"another overlay":       {[]string{"STORAGE=1", "OVERLAY=rhoai"}, []string{"-n redhat-ods-applications get secret model-serving-etcd", copied}, "-n opendatahub"},
		"a new namespace":       {[]string{"FAIL=namespace"}, []string{"get namespace team", "create namespace team"}, "label"},
		"no word but 1 copies":  {[]string{"STORAGE=true"}, []string{"label namespace team" + label}, "storage-config"},
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
					t.Fatalf("no %q in its place in\n%s", want, got.calls)
				}
				rest = after
			}
			if strings.Contains(got.calls, tc.not) {
				t.Errorf("%q in\n%s", tc.not, got.calls)
			}
		})
	}
}

// Mistakes are reported with their fix, before anything is changed.
func TestManageRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		env    []string
		want   string
	}{
		"no target":                          {"", nil, "usage:"},
		"a wrong target":                     {"destroy", nil, "usage:"},
		"a wrong overlay":                    {"deploy", []string{"OVERLAY=vanilla"}, `there is no overlay "vanilla": set OVERLAY to one of kubernetes odh openshift rhoai`},
		"an image that is not published":     {"deploy", []string{"OVERLAY=kubernetes"}, "ghcr.io/odh-platform/odh-platform-operator:unreleased is not published: set IMG"},
		"no image for a platform":            {"deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org"}, "IMG is not set"},
		"a path":                             {"install", []string{"OVERLAY=../default"}, "there is no overlay"},
		"no platform":                        {"deploy-to-platform", nil, `PLATFORM is "": set it to odh or rhoai`},
		"that of test clusters":              {"deploy-to-platform", []string{"PLATFORM=plain"}, `PLATFORM is "plain"`},
		"no Gateway":                         {"deploy-to-platform", []string{"PLATFORM=odh", "FAIL=data-science-gateway"}, "Gateway data-science-gateway in namespace openshift-ingress cannot be read: name one"},
		"a Gateway without host":             {"deploy-to-platform", []string{"PLATFORM=odh", "ODH_GATEWAY_NAME=g"}, "Gateway g in namespace openshift-ingress has no address yet"},
		"an API server that does not answer": {"uninstall", []string{"FAIL=customresourcedefinitions"}, "the CRDs cannot be listed"},
		"objects":                            {"uninstall", []string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`}, "A n/x\n\nNothing was removed."},
		"objects that cannot be listed":      {"uninstall", []string{`CRDS=a.b\nc.d\n`, "FAIL=c.d"}, "objects of c.d, which cannot be listed\n\nNothing was removed."},
		"no namespaces for models":           {"serve-models", nil, "NAMESPACES is not set"},
		"no etcd for models":                 {"serve-models", []string{"NAMESPACES=a", "FAIL=model-serving-etcd"}, "create the Secret model-serving-etcd in namespace opendatahub"},
		"no storage to copy":                 {"serve-models", []string{"NAMESPACES=a", "STORAGE=1", "FAIL=storage-config"}, "cannot be copied: create it"},
		"another word than 1":                {"uninstall", []string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`, "FORCE=yes"}, "Nothing was removed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := manage(t, tc.target, tc.env...)
			if !got.failed || !strings.Contains(got.output, tc.want) {
				t.Errorf("failed %t, output %q, want %q", got.failed, got.output, tc.want)
			}
			for _, verb := range []string{"apply", "delete", "create"} {
				if strings.Contains(got.calls, verb) {
					t.Errorf("calls %s", got.calls)
				}
			}
		})
	}
}

// A removed key cannot be set, and nothing is deployed in that case. Removed keys that are not set are ignored.
func TestManageMissesKeys(t *testing.T) {
	const image, url = "odh-platform-operator-image", "mlflow-url"
	for name, tc := range map[string]struct {
		removed, target string
		env             []string
		want            string // the reported key
	}{
		"of the image":   {image, "deploy", []string{"OVERLAY=odh", "IMG=a:1"}, image},
		"of the address": {url, "deploy-to-platform", []string{"PLATFORM=odh", "ADDRESS=gate.example.org", "IMG=a:3"}, url},
		"not requested":  {url, "deploy", []string{"OVERLAY=odh", "IMG=a:2"}, ""},
		"of another use": {url, "deploy", []string{"OVERLAY=odh", "IMG=a:1"}, ""},
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
			got := manageBy(t, filepath.Join(dir, "manage"), tc.target, tc.env...)
			want := filepath.Join(dir, "overlays/odh/params.env") + " has no key " + tc.want + ","
			switch reported := strings.Contains(got.output, want) && strings.Contains(got.output, "add the line "+tc.want+"= to the file again"); {
			case got.failed != (tc.want != ""), got.failed && !reported:
				t.Errorf("failed %t, output %q", got.failed, got.output)
			case got.failed && (strings.Contains(got.calls, "apply") || strings.Contains(got.calls, "create")):
				t.Errorf("calls %s", got.calls)
			}
		})
	}
}

// Our CRDs are deleted if they have no objects, or with force together with their objects.
func TestManageUninstalls(t *testing.T) {
	for name, tc := range map[string]struct {
		env  []string
		want string
	}{
		"not installed": {nil, ""},
		"no objects":    {[]string{`CRDS=a.b\nc.d\n`}, "delete customresourcedefinition --timeout=2m a.b c.d\n"},
		"by force":      {[]string{`CRDS=a.b\n`, `OBJECTS=A n/x\n`, "FORCE=1"}, "delete customresourcedefinition --timeout=2m a.b\n"},
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
		t.Errorf("a deletion that waits: %q", got.output)
	}
}

// The manager is deleted before its roles, and objects with the label are kept.
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
		t.Errorf("unexpected arguments of kubectl: %q", calls[1])
	}
	if strings.Contains(got.calls, "customresourcedefinition") || strings.Contains(got.calls, "namespace ") {
		t.Errorf("calls %s", got.calls)
	}
}

// A Service that still selects runtimes is kept.
func TestManageLeavesTheServiceOfRuntimes(t *testing.T) {
	got := manage(t, "undeploy", "OVERLAY=odh", "RUNTIMES=deployment.apps/modelmesh-serving-mlserver")
	if got.failed || strings.Contains(got.calls, "delete services") || !strings.Contains(got.output, "Removed the operator.") {
		t.Errorf("calls %s: %s", got.calls, got.output)
	}
}

// The Service of runtimes is kept while the API server cannot list runtimes.
func TestManageLeavesTheServiceOfRuntimesItCannotList(t *testing.T) {
	got := manage(t, "undeploy", "OVERLAY=odh", "FAIL=deployments")
	if !got.failed || strings.Contains(got.calls, "delete services") || strings.Contains(got.output, "Removed the operator.") {
		t.Errorf("failed %t, calls %s: %s", got.failed, got.calls, got.output)
	}
}

// A checkout with a tag of a release uses the image of that release without IMG.
func TestManageDeploysAReleasedCheckout(t *testing.T) {
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
	got := manageBy(t, filepath.Join(dir, "manage"), "deploy", "OVERLAY=kubernetes")
	if got.failed || !strings.Contains(got.params, "odh-platform-operator-image=ghcr.io/odh-platform/odh-platform-operator:v1.2.3\n") {
		t.Errorf("%s: the parameters name another image:\n%s", got.output, got.params)
	}
}

// A missing namespace of a platform is created; an existing one is not changed.
func TestManageCreatesTheNamespace(t *testing.T) {
	if got := manage(t, "deploy", "OVERLAY=rhoai", "IMG=a:1"); got.failed || strings.Contains(got.calls, "create") {
		t.Errorf("calls %s", got.calls)
	}
	got := manage(t, "deploy", "OVERLAY=rhoai", "IMG=a:1", "FAIL=get")
	if got.failed || !strings.Contains(got.calls, "create namespace redhat-ods-applications\n") {
		t.Errorf("calls %s: %s", got.calls, got.output)
	}
}
