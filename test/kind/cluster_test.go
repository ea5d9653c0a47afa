package kind

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fake is kind without a container engine.
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
		return nil, errors.New("refused")
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
		there, image string
		want         []string
	}{
		"again": {"kind\nother-dev\n", "", []string{"get clusters", "create cluster --name dev", "get kubeconfig --name dev"}},
		"again, with an image": {
			"other\ndev\n", "a/b:c", []string{"get clusters", "load docker-image a/b:c --name dev", "get kubeconfig --name dev"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{clusters: c.there}
			kubeconfig, err := Cluster{Program: "k", Name: "dev", Run: f.run}.Up(t.Context(), c.image)
			if err != nil || string(kubeconfig) != "a kubeconfig" {
				t.Errorf("unexpected kubeconfig %q, error %v", kubeconfig, err)
			}
			for i := range c.want {
				c.want[i] = "k " + c.want[i]
			}
			if !slices.Equal(f.calls, c.want) {
				t.Errorf("calls %q, want %q", f.calls, c.want)
			}
		})
	}
}

func TestDown(t *testing.T) {
	for found, want := range map[string]int{"dev\n": 2, "": 1, "dev2\n": 1} {
		f := &fake{clusters: found}
		if err := (Cluster{Program: "k", Name: "dev", Run: f.run}).Down(t.Context()); err != nil || len(f.calls) != want {
			t.Errorf("with clusters %q, Down returned error %v after the calls %q", found, err, f.calls)
		}
	}
}

func TestFailingStepsEndIt(t *testing.T) {
	for step, found := range map[string]string{"get clusters": "", "create": "", "load": "dev", "get kubeconfig": "dev"} {
		f := &fake{clusters: found, fail: step}
		_, err := Cluster{Program: "k", Name: "dev", Run: f.run}.Up(t.Context(), "i")
		if err == nil || !strings.Contains(f.calls[len(f.calls)-1], step) {
			t.Errorf("%s: %v after %q", step, err, f.calls)
		}
	}
	f := &fake{fail: "get clusters"}
	if err := (Cluster{Program: "k", Name: "dev", Run: f.run}).Down(t.Context()); err == nil {
		t.Error("want an error for down without an answer of kind")
	}
}

func TestExec(t *testing.T) {
	var progress bytes.Buffer
	run := Exec(&progress)
	output, err := run(t.Context(), "sh", "-c", "echo out; echo err >&2")
	if err != nil || string(output) != "out\n" || progress.String() != "err\n" {
		t.Errorf("got stdout %q, progress %q and error %v", output, progress.String(), err)
	}
	if _, err := run(t.Context(), "sh", "-c", "exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a failure: %v", err)
	}
	if _, err := run(t.Context(), "no-such-program-at-all"); err == nil || !strings.Contains(err.Error(), "name it with KIND=") {
		t.Errorf("nothing there: %v", err)
	}
}
