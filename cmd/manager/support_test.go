package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

var widget = schema.GroupVersionKind{Group: "test.io", Version: "v1", Kind: "Widget"}

// syncBuffer is a buffer that a running manager writes to while the test reads.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *syncBuffer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *syncBuffer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// result is the result of a run of the program.
type result struct {
	code           int
	stdout, stderr *syncBuffer
}

// testProcess is the environment of a run of the program.
type testProcess struct {
	env   map[string]string
	stdin string
	specs func(*Env) []componentSpec
	kinds render.Kinds
}

// run executes the program to its end.
func (g testProcess) run(ctx context.Context, args ...string) result {
	s := result{stdout: &syncBuffer{}, stderr: &syncBuffer{}}
	s.code = run(ctx, g.process(args, s))
	return s
}

func (g testProcess) process(args []string, s result) process {
	specs := g.specs
	if specs == nil {
		specs = testSpecs
	}
	kinds := g.kinds
	if kinds == nil {
		kinds = testKinds
	}
	return process{
		args: args, stdin: strings.NewReader(g.stdin), stdout: s.stdout, stderr: s.stderr, specs: specs, kinds: kinds, installLogger: func(logr.Logger) {},
		load: func(p config.Program, args []string) (config.Config, error) {
			lookup := func(name string) (string, bool) { v, ok := g.env[name]; return v, ok }
			return config.Load(p, args, lookup, os.ReadFile)
		},
	}
}

// testSpecs returns one component without controllers.
func testSpecs(e *Env) []componentSpec {
	return []componentSpec{{Component: component.Component{Name: "widgets", Requires: []schema.GroupVersionKind{widget}}}}
}

// testKinds renders a ConfigMap for each Widget.
var testKinds = render.Kinds{widget: func(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	out.SetName(obj.GetName())
	out.SetNamespace(env.Config.Namespace)
	_ = unstructured.SetNestedField(out.Object, env.Capabilities.String(), "data", "platform")
	return render.Result{Objects: []*unstructured.Unstructured{out}}, nil
}}

func noSpecs(*Env) []componentSpec { return nil }

// setKubeconfig writes a kubeconfig for a server and sets KUBECONFIG.
func setKubeconfig(t *testing.T, server string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c,
  clusters: [{name: c, cluster: {server: "` + server + `"}}],
  contexts: [{name: c, context: {cluster: c, user: u}}],
  users: [{name: u, user: {token: secret}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// freeAddress returns a loopback address that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func eventually(t *testing.T, description string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out waiting until %s", description)
		case <-tick.C:
		}
	}
}

func responds(url string, status int) func() bool {
	return func() bool {
		response, err := http.Get(url) //nolint:gosec,noctx // a loopback address of the test
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == status
	}
}

// failingMapper returns a MapperProvider that sends to attempts and returns err each time a manager is built.
func failingMapper(attempts chan<- struct{}, err error) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		attempts <- struct{}{}
		return nil, err
	}
}
