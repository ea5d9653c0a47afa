package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

// noon is the time of the tests, at which the objects in testdata have their ages.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sight is how the screen of a user is.
type sight struct {
	terminal bool
	width    int
	// variables of the environment.
	variables map[string]string
}

// outcome is what a call of the program leaves behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// run calls the program as a user in the namespace vision of a cluster.
func run(t *testing.T, cluster *fakecluster.Cluster, s sight, line string) outcome {
	t.Helper()
	var out, errors strings.Builder
	code := cli.Run(t.Context(), options(t, s, &out, &errors), append([]string{"--kubeconfig", cluster.Kubeconfig(t, "vision")}, strings.Fields(line)...), commands())
	return outcome{code, out.String(), errors.String()}
}

// options of a program that prints to writers.
func options(t *testing.T, s sight, out, errors io.Writer) *cli.Options {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	o := cli.NewOptions("0.1.0")
	o.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errors}
	o.Clock = clocktesting.NewFakePassiveClock(noon)
	o.Lookup = func(name string) (string, bool) {
		value, found := s.variables[name]
		return value, found
	}
	o.Terminal = func() (int, bool) { return s.width, s.terminal }
	o.Interval = time.Millisecond
	return o
}

// whole is a cluster with everything in testdata.
func whole(t *testing.T) *fakecluster.Cluster {
	t.Helper()
	objects := fakecluster.Objects(t, "testdata/manager.yaml", "testdata/resources.yaml", "testdata/parts.yaml")
	return fakecluster.Start(t, append(fakecluster.Kubernetes(), fakecluster.Ours()...), objects)
}

// expect wants an exit code and parts of what is printed.
func (o outcome) expect(t *testing.T, code int, parts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; stderr: %s", o.code, code, o.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(o.stdout+o.stderr, part) {
			t.Errorf("%q is missing in\n%s%s", part, o.stdout, o.stderr)
		}
	}
}

// lacks wants parts not to be printed.
func (o outcome) lacks(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(o.stdout+o.stderr, part) {
			t.Errorf("%q is in\n%s%s", part, o.stdout, o.stderr)
		}
	}
}
