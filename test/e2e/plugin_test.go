//go:build e2e

package e2e_test

import (
	"context"
	"encoding/base64"
	"html"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// terminal is a page that shows what a command prints.
func terminal(command, output string) string {
	const style = "background:#1b1d23;color:#e6e6e6;margin:1.2em;font:19px/1.4 'DejaVu Sans Mono',monospace"
	page := `<meta charset="utf-8"><body style="` + style + `"><pre>$ ` + html.EscapeString(command+"\n"+output) + `</pre>`
	return "data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(page))
}

// expectStatus asks the plugin for the state of what runs and of what cannot.
func (t mlflowTeam) expectStatus(ctx context.Context) {
	GinkgoHelper()
	plugin, err := cluster.BuildProgram(ctx, "./cmd/kubectl-odh", []string{"grpcnotrace"}, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	namespace := env.Namespace(ctx, "vision")
	for _, sample := range []string{"appwrapper_deployment.yaml", "modelregistry_postgres.yaml"} {
		args := []string{"-n", namespace, "-f", filepath.Join(checkout, "config", "samples", sample)}
		kubectl(ctx, append([]string{"apply"}, args...)...)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, append([]string{"delete"}, args...)...) }, NodeTimeout(podTimeout))
	}
	var output []byte
	Eventually(ctx, func(ctx context.Context) (string, error) {
		command := exec.CommandContext(ctx, plugin, "status", "--kubeconfig", env.KubeconfigPath)
		var err error
		output, err = command.Output()
		if command.ProcessState.ExitCode() == 1 { // something is not healthy
			err = nil
		}
		return string(output), err
	}, podTimeout).Should(And(
		MatchRegexp(`Healthy +MLflow/mlflow`), MatchRegexp(`Healthy +\S+ +AppWrapper/sample-deployment`),
		MatchRegexp(`Failed +\S+ +ModelRegistry/modelregistry-sample`), ContainSubstring("Secret model-registry-db"),
	))
	page := webPage{url: terminal("kubectl odh status", string(output)), authority: mlflowAuthority(ctx), picture: "status.png"}
	page.open(ctx, t.namespace, "MANAGER", "MLflow/mlflow")
}
