package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

// noon is the current time of the tests, which determines the ages of objects in testdata.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// outcome is the result of a run.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs the program with vision as the namespace of the kubeconfig context.
func run(t *testing.T, cluster *fakecluster.Cluster, line string) outcome {
	t.Helper()
	return runUntil(t.Context(), t, cluster, line)
}

// runUntil is run with a context that ends when the process gets a signal.
func runUntil(ctx context.Context, t *testing.T, cluster *fakecluster.Cluster, line string) outcome {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	var out, errors strings.Builder
	o := cli.NewOptions("0.1.0")
	o.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors}
	o.Clock = clocktesting.NewFakePassiveClock(noon)
	o.Lookup = func(string) (string, bool) { return "", false }
	code := cli.Run(ctx, o, append([]string{"--kubeconfig", cluster.Kubeconfig(t, "vision")}, strings.Fields(line)...), commands())
	return outcome{code, out.String(), errors.String()}
}

// fullCluster starts a cluster with the manager, its custom resources and their child objects.
func fullCluster(t *testing.T) *fakecluster.Cluster {
	t.Helper()
	objects := fakecluster.Objects(t, "testdata/manager.yaml", "testdata/resources.yaml", "testdata/parts.yaml")
	return fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), objects)
}

// has reports whether the output contains a part. It ignores alignment and line ends, except for a part that ends with a newline.
func (o outcome) has(part string) bool {
	text := o.stdout + o.stderr
	if !strings.HasSuffix(part, "\n") {
		text, part = strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(part), " ")
	}
	return strings.Contains(text, part)
}

// expect checks the exit code and parts of the output.
func (o outcome) expect(t *testing.T, code int, parts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; stderr: %s", o.code, code, o.stderr)
	}
	for _, part := range parts {
		if !o.has(part) {
			t.Errorf("%q is missing in\n%s%s", part, o.stdout, o.stderr)
		}
	}
}

// expectNot expects that parts are absent.
func (o outcome) expectNot(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if o.has(part) {
			t.Errorf("%q is in\n%s%s", part, o.stdout, o.stderr)
		}
	}
}
