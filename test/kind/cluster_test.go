package kind

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fake is a fake of kind, which records its calls.
type fake struct {
	clusters string
	fail     string
	calls    []string
}

func (f *fake) run(_ context.Context, name string, args ...string) ([]byte, error) {
	call := name + " " + strings.Join(args, " ")
	f.calls = append(f.calls, call)
	switch {
	case f.fail != "" && strings.Contains(call, f.fail):
		return nil, errors.New("failed")
	case strings.Contains(call, "get clusters"):
		return []byte(f.clusters), nil
	case strings.Contains(call, "get kubeconfig"):
		return []byte("a kubeconfig"), nil
	default:
		return nil, nil
	}
}

func TestUp(t *testing.T) {
	for name, c := range map[string]struct {
		clusters, image string
		want            []string
	}{
		"new cluster": {"kind\nother-dev\n", "", []string{"get clusters", "create cluster --name dev", "get kubeconfig --name dev"}},
		"existing cluster, with an image": {
			"other\ndev\n", "a/b:c", []string{"get clusters", "load docker-image a/b:c --name dev", "get kubeconfig --name dev"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{clusters: c.clusters}
			kubeconfig, err := Cluster{Program: "k", Name: "dev", Run: f.run}.Up(t.Context(), c.image)
			if err != nil || string(kubeconfig) != "a kubeconfig" {
				t.Errorf("got kubeconfig %q, error %v, want that of kind", kubeconfig, err)
			}
			for i := range c.want {
				c.want[i] = "k " + c.want[i]
			}
			if !slices.Equal(f.calls, c.want) {
				t.Errorf("got calls %q, want %q", f.calls, c.want)
			}
		})
	}
}

func TestDown(t *testing.T) {
	for clusters, want := range map[string]int{"dev\n": 2, "": 1, "dev2\n": 1} {
		f := &fake{clusters: clusters}
		if err := (Cluster{Program: "k", Name: "dev", Run: f.run}).Down(t.Context()); err != nil || len(f.calls) != want {
			t.Errorf("clusters %q: got error %v, calls %q, want %d calls", clusters, err, f.calls, want)
		}
	}
}

func TestUpStopsAfterFailure(t *testing.T) {
	for step, clusters := range map[string]string{"get clusters": "", "create": "", "load": "dev", "get kubeconfig": "dev"} {
		f := &fake{clusters: clusters, fail: step}
		_, err := Cluster{Program: "k", Name: "dev", Run: f.run}.Up(t.Context(), "i")
		if err == nil || !strings.Contains(f.calls[len(f.calls)-1], step) {
			t.Errorf("%s: got error %v, calls %q, want an error after this call", step, err, f.calls)
		}
	}
	f := &fake{fail: "get clusters"}
	if err := (Cluster{Program: "k", Name: "dev", Run: f.run}).Down(t.Context()); err == nil {
		t.Error("want an error for Down if kind fails")
	}
}

func TestExec(t *testing.T) {
	var progress bytes.Buffer
	run := Exec(&progress)
	output, err := run(t.Context(), "sh", "-c", "echo out; echo err >&2")
	if err != nil || string(output) != "out\n" || progress.String() != "err\n" {
		t.Errorf("got stdout %q, progress %q, error %v, want out and err", output, progress.String(), err)
	}
	if _, err := run(t.Context(), "sh", "-c", "exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got error %v, want the exit status in it", err)
	}
	if _, err := run(t.Context(), "no-such-program-at-all"); err == nil || !strings.Contains(err.Error(), "set its path with KIND=") {
		t.Errorf("got error %v for a missing program, want the variable KIND in it", err)
	}
}
