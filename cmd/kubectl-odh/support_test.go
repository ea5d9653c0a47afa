package main

import (
	"strings"
	"testing"
	"time"

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
	var out, told strings.Builder
	config := cluster.Kubeconfig(t, "vision")
	code := cli.Run(t.Context(), cli.Process{
		Args: strings.Fields(line), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &told, Version: "0.1.0",
		Clock: clocktesting.NewFakePassiveClock(noon),
		Lookup: func(name string) (string, bool) {
			value, found := s.variables[name]
			return value, found
		},
		Terminal: func() (int, bool) { return s.width, s.terminal },
		Connect: func(o cli.Options) (*cli.Cluster, error) {
			o.Kubeconfig = config
			return cli.Connect(o, "0.1.0")
		},
	}, commands())
	return outcome{code, out.String(), told.String()}
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
