package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Start errors are reported in one line with exit code 1.
func TestStartErrors(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	usedAddress := occupied.Addr().String()
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("a: [\nb"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"unknown sub-command":          {[]string{"start"}, []string{`unknown sub-command "start"`, "run, render, version, modelregistry, catalog, aihub"}},
		"unknown flag":                 {[]string{"--metrics-bind-addres=:1"}, []string{"--metrics-bind-addres", "did you mean --metrics-bind-address?"}},
		"unknown component":            {[]string{"run", "--components=*,-gadgets"}, []string{`"gadgets"`, "known components: widgets"}},
		"unknown enable flag":          {[]string{"--enable-gadgets"}, []string{`"gadgets"`, "known components: widgets"}},
		"missing file":                 {[]string{"--config=" + broken + ".gone"}, []string{"broken.yaml.gone", "no such file", "--config"}},
		"invalid file":                 {[]string{"--config", broken}, []string{"broken.yaml is not valid YAML"}},
		"metrics port in use":          {[]string{"--metrics-bind-address=" + usedAddress}, []string{"--metrics-bind-address", usedAddress, "address already in use"}},
		"health port in use":           {[]string{"--health-probe-bind-address=" + usedAddress}, []string{"--health-probe-bind-address", usedAddress, "address already in use"}},
		"no kubeconfig":                {[]string{"--health-probe-bind-address=0"}, []string{"finding the API server", "KUBECONFIG", "--kubeconfig"}},
		"missing file of --kubeconfig": {[]string{"--health-probe-bind-address=0", "--kubeconfig=gone.conf"}, []string{"gone.conf"}},
		"version with arguments":       {[]string{"version", "-v"}, []string{"no arguments", `"-v"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testProcess{}.run(t.Context(), tc.args...)
			text := s.stderr.String()
			lines := strings.Split(strings.TrimSpace(text), "\n")
			last := lines[len(lines)-1]
			if s.code != 1 || !strings.HasPrefix(last, "manager: ") {
				t.Errorf("got exit code %d and last line %q, want 1 and an error of the manager", s.code, last)
			}
			for _, part := range tc.want {
				if !strings.Contains(last, part) {
					t.Errorf("%q does not contain %q", last, part)
				}
			}
			for _, line := range lines[:len(lines)-1] {
				if !strings.HasPrefix(line, "{") {
					t.Errorf("got line %q, want only log entries before the error", line)
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"run", "-h"}, {"render", "--help"}} {
		s := testProcess{}.run(t.Context(), args...)
		if s.code != 0 || !strings.Contains(s.stdout.String(), "Sub-commands") || !strings.Contains(s.stdout.String(), "--enable-widgets") {
			t.Errorf("%v: got exit code %d and output %q, want 0 and the help", args, s.code, s.stdout)
		}
	}
	s := testProcess{}.run(t.Context(), "version")
	for _, part := range []string{"version:  " + programVersion(), "go:       go1", "platform: ", "mlflow:   3.14.0", "revision: "} {
		if s.code != 0 || !strings.Contains(s.stdout.String(), part) {
			t.Errorf("got exit code %d and output %q, want it to contain %q", s.code, s.stdout, part)
		}
	}
}

// Without components and without an API server, the program starts, serves probes and stops when its context ends.
func TestRunsWithoutAPIServer(t *testing.T) {
	setKubeconfig(t, "http://"+freeAddress(t))
	health, metrics := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := result{stdout: &syncBuffer{}, stderr: &syncBuffer{}}
	done := make(chan int, 1)
	g := testProcess{specs: noSpecs}
	go func() {
		done <- run(ctx, g.process([]string{"-metrics-bind-address=" + metrics, "--metrics-secure=false", "--health-probe-bind-address=" + health}, s))
	}()
	eventually(t, "the manager is live", responds("http://"+health+"/healthz", http.StatusOK))
	eventually(t, "metrics are served", responds("http://"+metrics+"/metrics", http.StatusOK))
	if responds("http://"+health+"/readyz", http.StatusOK)() {
		t.Error("the manager is ready without an API server")
	}
	cancel()
	select {
	case code := <-done:
		if code != 0 {
			t.Errorf("got exit code %d, want 0: %s", code, s.stderr)
		}
	case <-time.After(stopTimeout + 10*time.Second):
		t.Fatal("the manager did not stop in time")
	}
}

// A missing permission is reported in one line with verb, resource and fix.
func TestMissingRBACStopsManager(t *testing.T) {
	group := metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "test.io",
		Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "test.io/v1", Version: "v1"}},
	}
	served := map[string]any{
		"/api":          metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}},
		"/apis":         metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}},
		"/apis/test.io": group,
		"/apis/test.io/v1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "test.io/v1",
			APIResources: []metav1.APIResource{{Name: "widgets", Kind: widget.Kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
		},
	}
	api := httptest.NewServer(withoutOpenShift(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if response, ok := served[r.URL.Path]; ok {
			_ = json.NewEncoder(w).Encode(response)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(forbiddenStatus("list", "widgets")))
	}))
	defer api.Close()
	s := startWithWidgets(t, api.URL, []schema.GroupVersionKind{widget}, func(ctx context.Context, mgr ctrl.Manager) error {
		widgets := &metav1.PartialObjectMetadata{}
		widgets.SetGroupVersionKind(widget)
		_, err := mgr.GetCache().GetInformer(ctx, widgets)
		return err
	})
	lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
	last := lines[len(lines)-1]
	for _, part := range []string{"manager: missing permission: widgets.test.io is forbidden", `cannot list resource "widgets"`, "apply the roles"} {
		if s.code != 1 || !strings.Contains(last, part) {
			t.Errorf("got exit code %d and last line %q, want it to contain %q", s.code, last, part)
		}
	}
}

// A write that an admission policy denies does not stop the manager, because a single tenant can cause it.
func TestForbiddenWriteDoesNotStopManager(t *testing.T) {
	api := httptest.NewServer(withoutOpenShift(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"admission webhook \"validation.gatekeeper.sh\" denied the request: you must provide labels"}`))
	}))
	defer api.Close()
	patchErr := make(chan error, 1)
	s := startWithWidgets(t, api.URL, nil, func(ctx context.Context, mgr ctrl.Manager) error {
		client, err := dynamic.NewForConfig(mgr.GetConfig())
		if err != nil {
			return err
		}
		widgets := client.Resource(schema.GroupVersionResource{Group: widget.Group, Version: widget.Version, Resource: "widgets"})
		_, err = widgets.Patch(ctx, "old", types.MergePatchType, []byte(`{"metadata":{"finalizers":["x"]}}`), metav1.PatchOptions{})
		patchErr <- err
		return nil
	})
	if err := <-patchErr; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "gatekeeper") {
		t.Errorf("got error %v from the patch, want the denial of the policy", err)
	}
	if s.code != 0 || strings.Contains(s.stderr.String(), "missing permission") {
		t.Errorf("got exit code %d, want 0 and no missing permission: %s", s.code, s.stderr)
	}
}

// withoutOpenShift returns a handler that serves no TLS profile, which the manager reads first.
func withoutOpenShift(next http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle("/apis/config.openshift.io/", http.NotFoundHandler())
	return mux
}

// startWithWidgets runs a manager with one component, which requires kinds and adds the runnable, until the runnable returns or the manager
// stops.
func startWithWidgets(t *testing.T, server string, requires []schema.GroupVersionKind, runnable func(context.Context, ctrl.Manager) error) result {
	t.Helper()
	setKubeconfig(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	widgetSpecs := func(e *Env) []componentSpec {
		specs := testSpecs(e)
		specs[0].Requires = requires
		specs[0].Controllers = func(_ context.Context, mgr ctrl.Manager) error {
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				defer cancel()
				return runnable(ctx, mgr)
			}))
		}
		return specs
	}
	return testProcess{specs: widgetSpecs}.run(ctx, "--health-probe-bind-address=0", "--metrics-bind-address=0", "--leader-elect=false", "--namespace=here")
}

// The shipped binary contains no templates, because they disable the linker's dead code elimination. It also contains no Helm, KServe types,
// Kueue, API server library, code of the kubectl plugin or test framework.
func TestImportGraph(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", ".").Output()
	if err != nil {
		t.Fatalf("listing imports: %v", err)
	}
	banned := regexp.MustCompile(`^(text/template|html/template|helm\.sh/.*|github\.com/kserve/kserve/pkg/apis.*|sigs\.k8s\.io/kueue.*|k8s\.io/apiserver.*|k8s\.io/cli-runtime.*|github\.com/spf13/cobra|github\.com/fluxcd/.*|testing|.*/ginkgo.*)$`)
	count := 0
	for line := range strings.Lines(string(out)) {
		count++
		if path := strings.TrimSpace(line); banned.MatchString(path) {
			t.Errorf("%s is part of the program", path)
		}
	}
	if count < 100 {
		t.Errorf("got %d packages, want at least 100", count)
	}
}
