package main

import (
	"os"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// TestPageShowsRealOutput compares the documentation with the real output.
func TestPageShowsRealOutput(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubectl-odh.md")
	if err != nil {
		t.Fatal(err)
	}
	cluster := fullCluster(t)
	for _, command := range []string{"status", "tree mlflow/mlflow aw/train"} {
		got := run(t, cluster, command)
		if !strings.Contains(string(page), "```text\n$ kubectl odh "+command+"\n"+got.stdout+"```\n") {
			t.Errorf("docs/kubectl-odh.md does not show what `kubectl odh %s` prints:\n%s", command, got.stdout)
		}
	}
	for _, command := range commands() {
		if name := command(cli.NewOptions("")).Name(); !strings.Contains(string(page), "kubectl odh "+name) {
			t.Errorf("docs/kubectl-odh.md does not describe %s", name)
		}
	}
}
