//go:build e2e

package e2e_test

import (
	"context"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// expectStatus expects that kubectl odh status reports healthy and failed resources.
func expectStatus(ctx context.Context) {
	GinkgoHelper()
	plugin, err := cluster.BuildProgram(ctx, "./cmd/kubectl-odh", []string{"grpcnotrace"}, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	namespace := env.Namespace(ctx, "vision")
	for _, sample := range []string{"appwrapper_deployment.yaml", "modelregistry_postgres.yaml"} {
		args := []string{"-n", namespace, "-f", filepath.Join(checkout, "config", "samples", sample)}
		kubectl(ctx, append([]string{"apply"}, args...)...)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, append([]string{"delete"}, args...)...) }, NodeTimeout(podTimeout))
	}
	Eventually(ctx, func(ctx context.Context) (string, error) {
		command := exec.CommandContext(ctx, plugin, "status", "--kubeconfig", env.KubeconfigPath)
		output, err := command.Output()
		if command.ProcessState.ExitCode() == 1 { // a resource is not healthy
			err = nil
		}
		return string(output), err
	}, podTimeout).Should(And(
		MatchRegexp(`Healthy +MLflow/mlflow`), MatchRegexp(`Healthy +\S+ +AppWrapper/sample-deployment`),
		MatchRegexp(`Failed +\S+ +ModelRegistry/modelregistry-sample`), ContainSubstring("Secret model-registry-db"),
	))
}
