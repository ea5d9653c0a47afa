//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	//go:embed testdata/mlflow_user.yaml
	mlflowUser string
	//go:embed testdata/mlflow_write.py
	mlflowWrite string
	//go:embed testdata/mlflow_read.py
	mlflowRead string
	//go:embed testdata/mlflow_request.py
	mlflowRequest string
	//go:embed testdata/mlflow_trace.py
	mlflowTrace string
)

const (
	mlflowClaim = "mlflow-pvc"
	// completeRun is the output of mlflow_read.py for a complete run.
	completeRun = "0.1 0.25 weights weights True"
)

// mlflowTeam is a namespace with users and a pod with the client of MLflow.
type mlflowTeam struct{ namespace string }

func newMLflowTeam(ctx context.Context) mlflowTeam {
	GinkgoHelper()
	team := mlflowTeam{createRestrictedNamespace(ctx, "team")}
	apply(ctx, team.namespace, mlflowUser)
	return team
}

// python runs a script for a workspace in the client pod, and returns the output.
func (t mlflowTeam) python(ctx context.Context, workspace, script string, args ...string) (string, error) {
	command := append([]string{"-n", t.namespace, "exec", "-i", "client", "--", "env", "MLFLOW_WORKSPACE=" + workspace, "python3", "-"}, args...)
	return tryKubectl(ctx, script, command...)
}

// copyCA copies the CA certificate of the server to the client pod. Each MLflow has its own CA.
func (t mlflowTeam) copyCA(ctx context.Context) {
	GinkgoHelper()
	waitPodReady(ctx, t.namespace, "client")
	_, err := tryKubectl(ctx, mlflowCA(ctx), "-n", t.namespace, "exec", "-i", "client", "--", "sh", "-c", "cat > /tmp/ca.crt")
	Expect(err).NotTo(HaveOccurred())
}

// mlflowCA returns the CA certificate of the server.
func mlflowCA(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", operatorNamespace, "get", "secret", "mlflow-tls", "-o", `go-template={{index .data "ca.crt" | base64decode}}`)
}

// write logs a run and registers a model, and returns the ID of the run.
func (t mlflowTeam) write(ctx context.Context) string {
	GinkgoHelper()
	output, err := t.python(ctx, t.namespace, mlflowWrite)
	Expect(err).NotTo(HaveOccurred())
	lines := strings.Fields(output)
	return lines[len(lines)-1]
}

func (t mlflowTeam) read(ctx context.Context, run string) string {
	GinkgoHelper()
	output, err := t.python(ctx, t.namespace, mlflowRead, run)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// status sends a request, without a token if token is empty, and returns the status code.
func (t mlflowTeam) status(ctx context.Context, token, path string, body ...string) string {
	GinkgoHelper()
	output, err := t.python(ctx, t.namespace, mlflowRequest, append([]string{path, token}, body...)...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

func (t mlflowTeam) token(ctx context.Context, account string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", t.namespace, "create", "token", account)
}

// mlflowField returns the value of a JSONPath in the MLflow.
func mlflowField(ctx context.Context, path string) (string, error) {
	return tryKubectl(ctx, "", "get", "mlflow", "mlflow", "-o", "jsonpath={"+path+"}")
}

// waitMLflowReady waits until the MLflow is Ready in its current generation. Available does not suffice: it stays True until the
// migration starts.
func waitMLflowReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return mlflowField(ctx, `.metadata.generation},{.status.conditions[?(@.type=="Ready")]['observedGeneration','status']`)
	}, podTimeout).Should(Satisfy(func(state string) bool {
		generation, ready, _ := strings.Cut(state, ",")
		return ready == generation+" True"
	}), "the MLflow did not become ready")
}

func runInServer(ctx context.Context, script string) string {
	GinkgoHelper()
	output, err := runInPod(ctx, operatorNamespace, "deployment/mlflow", script)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// runCronJob creates a Job from a CronJob of the MLflow and returns its log.
func runCronJob(ctx context.Context, cronJob string) string {
	GinkgoHelper()
	inNamespace := func(args ...string) []string { return append([]string{"-n", operatorNamespace}, args...) }
	job := "job/" + cronJob + "-now"
	kubectl(ctx, inNamespace("create", "job", cronJob+"-now", "--from=cronjob/"+cronJob)...)
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, inNamespace("delete", job)...) })
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return tryKubectl(ctx, "", inNamespace("get", job, "-o", `jsonpath={.status.succeeded}/{.status.failed}`)...)
	}, podTimeout).Should(SatisfyAny(Equal("1/"), HaveSuffix("/1")))
	log := kubectl(ctx, inNamespace("logs", job)...)
	Expect(tryKubectl(ctx, "", inNamespace("get", job, "-o", `jsonpath={.status.succeeded}`)...)).To(Equal("1"), log)
	return log
}

// removeMLflow deletes the MLflow and its data.
func removeMLflow(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "mlflow", "mlflow", "--ignore-not-found", "--timeout=2m")
	kubectl(ctx, "-n", operatorNamespace, "delete", "pvc", mlflowClaim, "--ignore-not-found", "--timeout=2m")
}
