package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node"
)

const stopTimeout = time.Minute

// TestDemo runs the demo like `make demo`, with its own control plane: first with broken samples, then with FORCE, then the recommended
// commands, and finally `demo down`.
func TestDemo(t *testing.T) {
	var out, progress bytes.Buffer
	d := &demo{
		name: fmt.Sprintf("demo-test-%d", os.Getpid()), samples: "test/demo/testdata/broken", ephemeral: true,
		timeout: 15 * time.Second, clock: clock.RealClock{}, out: &out, progress: &progress,
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
		defer cancel()
		if err := d.run(ctx, []string{"down"}); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("progress:\n%s\noutput:\n%s", &progress, &out)
		}
	})

	expectFailure(t, d.run(t.Context(), []string{"up"}))
	failedDemo, err := cluster.Open(d.name)
	if err != nil || !failedDemo.Running() {
		t.Fatalf("got error %v, want the failed demo running", err)
	}

	d.samples, d.timeout = samplesDir, samplesTimeout
	expectUnchanged(t, d, failedDemo, &out)
	progress.Reset()
	if err := d.run(t.Context(), []string{"up", forceFlag}); err != nil {
		t.Fatal(err)
	}
	for number := range stepCount {
		expectContains(t, "progress", progress.String(), fmt.Sprintf("step %d of %d: ", number+1, stepCount))
	}
	expectContains(t, "progress", progress.String(), "stopping the running demo", "ModelRegistry opendatahub/modelregistry-sample: Available is True", "Catalog opendatahub/catalog: Available is True",
		"MLflow mlflow: Available is True, DeploymentReady", "AppWrapper opendatahub/sample-deployment: PodsReady is True", "RayCluster opendatahub/demo: RayClusterProvisioned is True",
		"Predictor opendatahub/digits: available is true", "InferenceService opendatahub/digits-isvc: Ready is True", "Deployment opendatahub/modelmesh-serving-mlserver-1.x: 2/2 replicas ready", "Deployment opendatahub/mlflow: 1/1 replicas ready", "the manager created", "1 PersistentVolumeClaim",
		"Deployment opendatahub/"+deploymentName+" created with the settings of the manager process; its pod is a placeholder", "Deployment opendatahub/"+deploymentName+": 2/2 replicas ready")
	expectContains(t, "output", out.String(), "export KUBECONFIG=", "make demo-down", "testcluster.invalid/image-pull:1", "The manager is the process with pid ",
		"; the pod of Deployment "+deploymentName+" is only a placeholder.")
	expectContains(t, "table", strings.Join(strings.Fields(out.String()), " "), "MLflow mlflow Available True", "AppWrapper sample-deployment PodsReady True", "RayCluster demo RayClusterProvisioned True")
	if offered := strings.Contains(out.String(), "make demo REAL=1"); offered != (node.Check() == nil) {
		t.Errorf("got offer of a real node %t, want it only if node.Check returns nil: %v", offered, node.Check())
	}
	for _, command := range nextCommands("opendatahub", false) {
		expectContains(t, "output", out.String(), command)
		runPrintedCommand(t, d.name, command)
	}

	current, err := cluster.Open(d.name)
	if err != nil {
		t.Fatal(err)
	}
	expectManagerFound(t, d.name)
	expectServicesRouteToProcess(t, current)
	expectFailureDetails(t, d, current)
	processes := append(failedDemo.Processes(), current.Processes()...)
	out.Reset()
	for _, want := range []string{"The demo is stopped", "No demo is running"} {
		if err := d.run(t.Context(), []string{"down"}); err != nil {
			t.Fatal(err)
		}
		expectContains(t, "output", out.String(), want)
	}
	for _, process := range processes {
		if process.Running() {
			t.Errorf("%s is still running, pid %d", process.Name, process.PID)
		}
	}
	if _, err := os.Stat(current.Dir()); !os.IsNotExist(err) {
		t.Errorf("got error %v, want %s deleted", err, current.Dir())
	}
}

// expectUnchanged expects that a second start does not change a running demo, and prints how to connect to it.
func expectUnchanged(t *testing.T, d *demo, running *cluster.Instance, out *bytes.Buffer) {
	t.Helper()
	if err := d.run(t.Context(), []string{"up"}); err != nil {
		t.Fatal(err)
	}
	expectContains(t, "output", out.String(), "A demo is already running", "export KUBECONFIG=", running.Kubeconfig(), "make demo FORCE=1")
	for _, process := range running.Processes() {
		if !process.Running() {
			t.Errorf("%s was stopped", process.Name)
		}
	}
	out.Reset()
}

// expectFailure expects an error with all details.
func expectFailure(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("want an error for a server whose image cannot be pulled")
	}
	expectContains(t, "failure", err.Error(), "not ready: after 15s", "MLflow mlflow: Available is False, MigrationRunning",
		"MLflow         mlflow   Progressing       True", "MLflowConfig   mlflow   ReferencesReady   False", // its Secret does not exist, which is not a failure
		`Pending   0/1     image "testcluster.invalid/image-pull:1"`, "The manager is running, pid", "manager.log:",
		"The demo keeps running for inspection; `make demo-down` stops it", "export KUBECONFIG=")
	if strings.Contains(err.Error(), "MLflowConfig opendatahub/mlflow:") {
		t.Errorf("got a problem of an MLflowConfig, which only has to exist:\n%v", err)
	}
}

// expectFailureDetails expects errors after an interrupted wait and after the exit of the manager.
func expectFailureDetails(t *testing.T, d *demo, instance *cluster.Instance) {
	t.Helper()
	config, err := instance.Config()
	if err != nil {
		t.Fatal(err)
	}
	env := &environment{instance: instance, reported: map[string]bool{}, namespace: "opendatahub", manager: instance.Process("manager")}
	if env.client, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if env.samples, err = readSamples("test/demo/testdata/broken"); err != nil {
		t.Fatal(err)
	}
	for _, sample := range env.samples {
		if sample.GetKind() == "MLflowConfig" {
			sample.SetNamespace("nowhere") // the sample does not exist in this namespace
		}
	}
	interruptedCtx, cancel := context.WithCancel(t.Context())
	cancel()
	expectContains(t, "failure", fmt.Sprint(d.waitReady(interruptedCtx, env)), "not ready: context canceled", "MLflow         mlflow   Available        True",
		"MLflowConfig   mlflow   does not exist", "The manager is running")
	if err := env.manager.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectContains(t, "failure", fmt.Sprint(d.waitReady(t.Context(), env)), "not ready: the manager has exited", "The manager has exited. Last lines of")
}

func expectContains(t *testing.T, description, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the %s lacks %q:\n%s", description, part, text)
		}
	}
}

// runPrintedCommand runs a recommended command, whose output must contain mlflow.
func runPrintedCommand(t *testing.T, name, command string) {
	t.Helper()
	if output := shell(t, name, command); !strings.Contains(string(output), "mlflow") {
		t.Errorf("the output of %s does not contain mlflow:\n%s", command, output)
	}
}

// shell runs a command with the environment that the demo prints, and returns its standard output. A failing command fails the
// test.
func shell(t *testing.T, name, command string) []byte {
	t.Helper()
	instance, err := cluster.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	bash := exec.CommandContext(t.Context(), "bash", "-ec", command)
	folders := []string{toolsDir(instance), os.Getenv("PATH")}
	var stderr bytes.Buffer
	bash.Stderr = &stderr
	bash.Env = append(os.Environ(), "KUBECONFIG="+instance.Kubeconfig(), "PATH="+strings.Join(folders, string(os.PathListSeparator)))
	output, err := bash.Output()
	if err != nil {
		t.Errorf("%s: unexpected error: %v\n%s%s", command, err, output, &stderr)
	}
	return output
}
