package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// emptyCache sets an empty cache directory and returns its folder of instances.
func emptyCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	return filepath.Join(dir, "odh-platform-operator", "instances")
}

func call(ctx context.Context, args ...string) (out, progress string, err error) {
	var stdout, stderr bytes.Buffer
	err = run(ctx, args, &stdout, &stderr)
	return stdout.String(), stderr.String(), err
}

func TestWrongUsage(t *testing.T) {
	emptyCache(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":                       {nil, `unknown command ""`},
		"unknown command":                  {[]string{"frobnicate"}, `unknown command "frobnicate"`},
		"unknown flag":                     {[]string{"up", "--fast"}, "unknown flag: --fast"},
		"up without name":                  {[]string{"up"}, "up takes one name"},
		"up with two names":                {[]string{"up", "a", "b"}, "up takes one name"},
		"down without name":                {[]string{"down"}, "down takes names or --all"},
		"down with name and --all":         {[]string{"down", "a", "--all"}, "down takes names or --all"},
		"kubeconfig without name":          {[]string{"kubeconfig"}, "kubeconfig takes one name"},
		"kubeconfig of a missing instance": {[]string{"kubeconfig", "absent"}, "no such instance"},
		"kubectl with arguments":           {[]string{"kubectl", "get", "pods"}, "run $(testcluster kubectl) get pods"},
		"unknown platform":                 {[]string{"up", "a", "--platform", "vanilla"}, "known are bare, plain and openshift"},
		"invalid name":                     {[]string{"kubeconfig", "../a"}, "lower-case letters"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := call(t.Context(), c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestHelpListsCommands(t *testing.T) {
	_, progress, err := call(t.Context(), "--help")
	if err != nil || !strings.Contains(progress, "testcluster up NAME") || !strings.Contains(progress, "--platform") {
		t.Errorf("got help %q, error %v, want commands and flags", progress, err)
	}
}

func TestListDownAndClean(t *testing.T) {
	instances := emptyCache(t)
	if err := os.MkdirAll(filepath.Join(instances, "one"), 0o755); err != nil {
		t.Fatal(err)
	}
	state := `{"name":"one","platform":"plain","ports":[1,2,3,4,5],"processes":[{"name":"etcd","pid":1,"start":"1","log":"x"}]}`
	if err := os.WriteFile(filepath.Join(instances, "one", "state.json"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := call(t.Context(), "list")
	if err != nil || !strings.Contains(out, "one") || !strings.Contains(out, "etcd(1) exited") || !strings.Contains(out, "plain") {
		t.Errorf("got list %q, error %v, want the instance with its exited process", out, err)
	}
	out, _, err = call(t.Context(), "kubeconfig", "one")
	if err != nil || strings.TrimSpace(out) != filepath.Join(instances, "one", "kubeconfig") {
		t.Errorf("got kubeconfig %q, error %v, want that of the instance", out, err)
	}
	if _, _, err := call(t.Context(), "clean"); err == nil || !strings.Contains(err.Error(), "in use by one") {
		t.Errorf("got error %v of clean, want one that names the instance", err)
	}
	if _, _, err := call(t.Context(), "down", "--all"); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Open("one"); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("got error %v after down, want ErrNotFound", err)
	}
	if _, progress, err := call(t.Context(), "down", "one"); err != nil || !strings.Contains(progress, "is not running") {
		t.Errorf("got output %q, error %v of a second down, want a notice and no error", progress, err)
	}
	if out, _, err := call(t.Context(), "clean"); err != nil || !strings.Contains(out, "freed") {
		t.Errorf("got output %q, error %v of clean, want the freed bytes", out, err)
	}
	if _, err := os.Stat(filepath.Dir(instances)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want a deleted cache", err)
	}
}
