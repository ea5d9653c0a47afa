package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

// unpackArchive returns the files of an archive.
func unpackArchive(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for files := tar.NewReader(zip); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(header.Name, "odh-gather/")] = string(text)
	}
}

func TestGatherWritesArchive(t *testing.T) {
	objects := fakecluster.Objects(t, "testdata/manager.yaml", "testdata/resources.yaml", "testdata/parts.yaml", "testdata/secrets.yaml")
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), objects)
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	run(t, cluster, "gather --file "+path).expect(t, 0, path+": ", " files, ")
	files := unpackArchive(t, path)
	for file, parts := range map[string][]string{
		"cluster/mlflows.mlflow.opendatahub.io.yaml":          {"reason: DeploymentNotReady"},
		"namespaces/opendatahub/pods.yaml":                    {"name: mlflow-2-x2x4z"},
		"namespaces/opendatahub/deployments.apps.yaml":        {"name: mlflow\n", "name: odh-platform-operator-controller-manager"},
		"namespaces/opendatahub/configmaps.yaml":              {"platform: \"true\""},
		"namespaces/opendatahub/secrets.yaml":                 {"name: mlflow-tls", "password: '[redacted]'"},
		"namespaces/vision/events.yaml":                       {"name: noise"},
		"namespaces/vision/logs/train-0/main.log":             {"log of vision/train-0/main", "password=[redacted]"},
		"namespaces/vision/predictors.serving.kserve.io.yaml": {"name: digits", "said [redacted] once"},
		"status.yaml": {"kind: Status", "name: train"},
		"doctor.yaml": {"kind: Diagnosis"},
	} {
		for _, part := range parts {
			if !strings.Contains(files[file], part) {
				t.Errorf("%s does not contain %q:\n%s", file, part, files[file])
			}
		}
	}
	for name, text := range files {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s contains the password", name)
		}
		if strings.Contains(text, "name: stranger") || strings.Contains(text, "name: unrelated") {
			t.Errorf("%s contains objects that belong to no resource of the operator", name)
		}
	}
	if _, found := files["gaps.txt"]; found {
		t.Error("gaps.txt exists, although all objects were readable")
	}
	run(t, cluster, "gather --file "+path).expect(t, 2, "exists")
	path = filepath.Join(t.TempDir(), "elsewhere.tar.gz")
	run(t, cluster, "gather --manager-namespace elsewhere --file "+path).expect(t, 0)
	if doctor := unpackArchive(t, path)["doctor.yaml"]; !strings.Contains(doctor, "does not exist in any namespace") {
		t.Errorf("doctor.yaml is not about the namespace of --manager-namespace:\n%s", doctor)
	}

	cluster.Forbid(func(r fakecluster.Request) bool { return r.Resource == "secrets" || r.Resource == "leases" })
	path = filepath.Join(t.TempDir(), "b.tar.gz")
	run(t, cluster, "gather --file "+path).expect(t, 3, "Note: not allowed to list ", "secrets in namespace opendatahub")
	if gaps := unpackArchive(t, path)["gaps.txt"]; !strings.Contains(gaps, "secrets in namespace opendatahub") {
		t.Errorf("gaps.txt: %s, want it to contain %q", gaps, "secrets in namespace opendatahub")
	}
}

// A signal ends the requests, and the archive reports that it is incomplete.
func TestInterruptedGather(t *testing.T) {
	cluster, path := fullCluster(t), filepath.Join(t.TempDir(), "a.tar.gz")
	ctx, interrupt := context.WithCancel(t.Context())
	cluster.Forbid(func(r fakecluster.Request) bool {
		if r.Resource == "events" {
			interrupt()
		}
		return false
	})
	const note = "stopped before everything was read, by a signal or because of --timeout"
	runUntil(ctx, t, cluster, "gather --file "+path).expect(t, 3, note)
	if gaps := unpackArchive(t, path)["gaps.txt"]; !strings.Contains(gaps, note) {
		t.Errorf("gaps.txt does not contain %q:\n%s", note, gaps)
	}
}

// A container without a log does not stop the collection, and only restarted containers have a previous log.
func TestGatherLogs(t *testing.T) {
	objects := fakecluster.Objects(t, "testdata/resources.yaml", "testdata/parts.yaml")
	i := slices.IndexFunc(objects, func(u unstructured.Unstructured) bool { return u.GetName() == "train-0" })
	containers := []any{map[string]any{"name": "waiting"}, map[string]any{"name": "main"}}
	statuses := []any{map[string]any{"name": "waiting"}, map[string]any{"name": "main", "restartCount": int64(2)}}
	if err := errors.Join(
		unstructured.SetNestedSlice(objects[i].Object, containers, "spec", "containers"),
		unstructured.SetNestedSlice(objects[i].Object, statuses, "status", "containerStatuses"),
	); err != nil {
		t.Fatal(err)
	}
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), objects)
	collected := func(file string, parts ...string) map[string]string {
		path := filepath.Join(t.TempDir(), file)
		run(t, cluster, "gather --log-lines 5 --file "+path).expect(t, 3, parts...)
		return unpackArchive(t, path)
	}
	files := collected("a.tar.gz", "Note: ", "container waiting is waiting to start")
	for name, want := range map[string]string{
		"train-0/main.log": "log of vision/train-0/main previous= tail=5\n", "train-0/main.previous.log": "log of vision/train-0/main previous=true tail=5\n",
		"train-helper/main.log": "log of vision/train-helper/main previous= ", "train-helper/main.previous.log": "", "train-0/waiting.log": "",
	} {
		if got := files["namespaces/vision/logs/"+name]; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Resource == "pods/log" })
	files = collected("b.tar.gz", "not allowed to read ", "the log of pod vision/train-0, container main")
	if _, found := files["namespaces/vision/logs/train-0/main.log"]; found || files["namespaces/vision/pods.yaml"] == "" {
		t.Error("without permission for logs, want the pods and no log")
	}
}

// render rejects the same objects as the webhooks of the manager.
func TestRenderRejectsInvalidResources(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cluster := fullCluster(t)
	for name, c := range map[string]struct {
		document string
		code     int
		parts    []string
	}{
		"valid registry": {"{apiVersion: modelregistry.opendatahub.io/v1beta1, kind: ModelRegistry, metadata: {name: a}, spec: {rest: {}, grpc: {}, postgres: {generateDeployment: true}}}",
			0, []string{"kind: "}},
		"registry without a database": {"{apiVersion: modelregistry.opendatahub.io/v1beta1, kind: ModelRegistry, metadata: {name: a}, spec: {rest: {}, grpc: {}}}",
			2, []string{"would be refused: "}},
		"Catalog with another name":                {"{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: mine}}", 2, []string{"would be refused: ", "name must be"}},
		"privileged MLflow":                        {"{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow}, spec: {securityContext: {privileged: true}}}", 2, []string{"would be refused: ", "baseline"}},
		"RayCluster with enableIngress":            {"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {enableIngress: true, template: {spec: {containers: [{name: head, image: x}]}}}}}", 2, []string{"would be refused: ", "enableIngress"}},
		"runtime with an unknown autoscaler class": {"{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: r, annotations: {serving.kserve.io/autoscalerClass: external}}, spec: {multiModel: true, containers: [{name: a, image: x}]}}", 2, []string{"would be refused: unknown autoscaler class"}},
		"AppWrapper without components":            {"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w}, spec: {components: []}}", 2, []string{"would be refused: ", "components contains no podspecs"}},
		"ClusterRole in an AppWrapper": {"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w}, spec: {components: [{template: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}}]}}",
			2, []string{"would be refused: ", "objects that grant permissions"}},
		"Job in an AppWrapper": {"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w}, spec: {components: [{template: {apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {containers: [{name: a, image: x}]}}}}}]}}",
			0, []string{"kind: "}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, cluster, "render -f "+write(c.document)).expect(t, c.code, c.parts...)
		})
	}
	run(t, cluster, "render").expect(t, 2, `required flag(s) "filename" not set`)
	run(t, cluster, "render -f /nowhere").expect(t, 2, "no such file")
	run(t, cluster, "render --cluster -f "+write("{apiVersion: v1, kind: Secret, metadata: {name: s}}")+" -- --namespace=x").expect(t, 2, "takes the settings from the cluster")
}
