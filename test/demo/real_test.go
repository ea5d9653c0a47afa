//go:build e2e

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node"
)

// TestRealDemo runs the demo on a real node until all samples are ready. It requests the printed pages with the token of the printed
// command, and runs the recommended commands.
func TestRealDemo(t *testing.T) {
	var out, progress bytes.Buffer
	d := &demo{
		name: fmt.Sprintf("demo-real-%d", os.Getpid()), samples: samplesDir, ephemeral: true, clock: clock.RealClock{}, out: &out, progress: &progress,
	}
	err := d.run(t.Context(), []string{"up", realFlag})
	if errors.Is(err, node.ErrUnsupported) {
		t.Skip(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
		defer cancel()
		if err := d.run(ctx, []string{"down"}); err != nil {
			t.Error(err)
		}
		t.Logf("progress:\n%s\noutput:\n%s", &progress, &out)
	})
	if err != nil {
		t.Fatal(err)
	}
	expectContains(t, "progress", progress.String(), "MLflow mlflow: Available is True", "ModelRegistry opendatahub/modelregistry-sample: Available is True",
		"AppWrapper opendatahub/sample-deployment: PodsReady is True", "RayCluster opendatahub/demo: RayClusterProvisioned is True")
	expectPages(t, d.name, out.String())
	for _, command := range nextCommands("opendatahub", true) {
		expectContains(t, "output", out.String(), command)
		runPrintedCommand(t, d.name, command)
	}
	expectStopped(t, d)
}

// expectPages requests the pages like a browser.
func expectPages(t *testing.T, name, output string) {
	t.Helper()
	command := fmt.Sprintf(createToken, "opendatahub")
	expectContains(t, "output", output, command)
	token := strings.TrimSpace(string(shell(t, name, command)))
	found := regexp.MustCompile(`(http://127\.0\.0\.1:\d+\S*)/#/\S+`).FindAllStringSubmatch(output, -1)
	if len(found) != pageCount {
		t.Fatalf("got %d pages, want %d:\n%s", len(found), pageCount, output)
	}
	headers := map[string]string{"X-MLFLOW-WORKSPACE": "opendatahub"}
	for i, page := range []struct{ title, data string }{
		{"<title>MLflow</title>", "/api/2.0/mlflow/experiments/get?experiment_id=0"}, {"<title>Ray Dashboard</title>", "/api/version"},
	} {
		base := found[i][1]
		content, err := send(t.Context(), http.MethodGet, base+"/", token, nil, nil)
		if err != nil || !strings.Contains(string(content), page.title) {
			t.Errorf("got page %s with error %v, want the title %s:\n%s", base, err, page.title, content)
		}
		for _, wrong := range []string{"", "wrong"} {
			if _, err := send(t.Context(), http.MethodGet, base+page.data, wrong, headers, nil); err == nil || !strings.Contains(err.Error(), ": 401 Unauthorized:") {
				t.Errorf("%s with the password %q: got error %v, want 401", base, wrong, err)
			}
		}
	}
}

// expectStopped stops the demo and expects that no process or file remains.
func expectStopped(t *testing.T, d *demo) {
	t.Helper()
	instance, err := cluster.Open(d.name)
	if err != nil {
		t.Fatal(err)
	}
	processes := instance.Processes()
	if err := d.run(t.Context(), []string{"down"}); err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		if process.Running() {
			t.Errorf("%s is still running, pid %d", process.Name, process.PID)
		}
	}
	if _, err := os.Stat(instance.Dir()); !os.IsNotExist(err) {
		t.Errorf("got error %v, want %s deleted", err, instance.Dir())
	}
}
