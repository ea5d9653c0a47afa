package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func failingRunner(context.Context, string, ...string) ([]byte, error) {
	return nil, errors.New("no engine")
}

func TestRunRenders(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-artifact-storage=s3", "-namespace=test", "render"}, &out, &progress, failingRunner); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: MLflow\n", "kind: CustomResourceDefinition\n", "name: minio-service\n", "namespace: test\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the manifests do not contain %q", want)
		}
	}
}

func TestRunReturnsErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                            "usage: deploykind",
		"render twice":                "usage: deploykind",
		"start":                       `unknown command "start"`,
		"-backend-store=mysql render": `BACKEND_STORE is "mysql"`,
		"-unknown render":             "flag provided but not defined",
		"-image=a:1 up":               "no engine",
		"up":                          "IMG is not set",
		"apply":                       "IMG is not set",
		"down":                        "no engine",
	} {
		var out, progress bytes.Buffer
		err := run(t.Context(), strings.Fields(args), &out, &progress, failingRunner)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", args, err, want)
		}
	}
}

func TestRunReportsIgnoredServeArtifacts(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-serve-artifacts=false", "down"}, &out, &progress, failingRunner); err == nil {
		t.Error("want an error of the failing runner")
	}
	if !strings.Contains(progress.String(), "SERVE_ARTIFACTS has no effect") {
		t.Errorf("got output %q, want a warning", progress.String())
	}
}

func TestUpRejectsInvalidKubeconfig(t *testing.T) {
	invalidKubeconfig := func(context.Context, string, ...string) ([]byte, error) { return []byte("odh-platform-operator"), nil }
	var out, progress bytes.Buffer
	if err := run(t.Context(), []string{"-image=a:1", "up"}, &out, &progress, invalidKubeconfig); err == nil || !strings.Contains(err.Error(), "reading the kubeconfig") {
		t.Errorf("got error %v, want one containing 'reading the kubeconfig'", err)
	}
}
