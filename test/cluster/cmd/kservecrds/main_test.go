package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestInvalidArgumentsReturnErrUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"write"}, {"install", "x"}, {"other"}, {"write", "a", "b"}} {
		if err := run(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: got error %v, want errUsage", args, err)
		}
	}
	if err := run(t.Context(), []string{"--unknown"}); err == nil || errors.Is(err, errUsage) {
		t.Errorf("got error %v for an unknown flag, want one other than errUsage", err)
	}
}

func TestWriteWritesKustomization(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"--namespaced", "write", dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kustomization.yaml")); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"write", "/dev/null/x"}); err == nil {
		t.Error("want an error for a folder that cannot be created")
	}
}
