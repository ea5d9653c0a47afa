//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// mlflowUpgrade is another tag of the same image.
const mlflowUpgrade = "quay.io/opendatahub/mlflow:upgrade"

// mlflowCronJobs configures CronJobs that are not due while the specs run.
const mlflowCronJobs = `{"spec": {
	"garbageCollection": {"schedule": "0 0 1 1 *"},
	"traceArchival": {"enabled": true, "schedule": "0 0 1 1 *", "location": "file:///mlflow/archive", "retention": "1h"}}}`

var _ = Describe("MLflow with SQLite on a volume", Ordered, func() {
	var (
		team mlflowTeam
		// run is the ID of a run whose artifact and model must survive all specs.
		run string
		// manifest is the sample with mlflowCronJobs.
		manifest string
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage, mlflowUpgrade)).To(Succeed())
		manifest = kubectl(ctx, "patch", "--local", "-f", filepath.Join(checkout, "config", "samples", "mlflow.yaml"),
			"--type=merge", "-p", mlflowCronJobs, "-o", "yaml")
		DeferCleanup(removeMLflow)
		apply(ctx, "", manifest)
		team = newMLflowTeam(ctx)
		startBrowser(ctx, team.namespace)
		waitMLflowReady(ctx)
		startThrottledServer(ctx)
		team.copyCA(ctx)
	}, NodeTimeout(startTimeout))

	It("migrates an empty database and starts the server on a volume that root owns", func(ctx SpecContext) {
		Expect(mlflowField(ctx, `.status.conditions[?(@.type=="Migration")].status`)).To(Equal("True"))
		Expect(mlflowField(ctx, ".status.version")).To(Equal(runInServer(ctx, `python3 -c 'from mlflow.version import VERSION; print(VERSION)'`)))
		Expect(runInServer(ctx, "stat -c %u:%g /mlflow; stat -c %U /mlflow/mlflow.db >/dev/null; id -u")).To(Equal("0:1001\n1001"))
	}, SpecTimeout(specTimeout))

	It("authenticates users by token, and authorizes them by their permissions in the namespace", func(ctx SpecContext) {
		const create = "/api/2.0/mlflow/experiments/create"
		ana, stranger, body := team.token(ctx, "ana"), team.token(ctx, "stranger"), `{"name": "login"}`
		Expect(team.status(ctx, "", create, body)).To(Equal("401"))
		Expect(team.status(ctx, "not-a-token", create, body)).To(Equal("401"))
		Expect(team.status(ctx, stranger, create, body)).To(Equal("403"))
		Expect(team.status(ctx, ana, create, body)).To(Equal("200"))
		Expect(team.status(ctx, stranger, "/api/2.0/mlflow/experiments/get-by-name?experiment_name=login")).To(Equal("403"))
		_, err := team.python(ctx, "default", mlflowWrite)
		Expect(err).To(MatchError(ContainSubstring("PERMISSION_DENIED")), "a workspace without permissions")
	}, SpecTimeout(specTimeout))

	It("keeps runs, artifacts and models of a client", func(ctx SpecContext) {
		run = team.write(ctx)
		Expect(team.read(ctx, run)).To(Equal(completeRun))
		Expect(runInServer(ctx, "find /mlflow/artifacts -path '*"+run+"*' -name weights.txt -exec cat {} +")).To(Equal("weights"))
	}, SpecTimeout(specTimeout))

	It("keeps every acknowledged write when its pod is deleted, with one server at a time on the file", func(ctx SpecContext) {
		replaceServer(ctx, team)
	}, SpecTimeout(specTimeout))

	It("shows a run in a browser that is logged in", func(ctx SpecContext) { team.expectRunPages(ctx) }, SpecTimeout(specTimeout))

	It("is reported as healthy by kubectl odh, next to unhealthy resources", func(ctx SpecContext) { expectStatus(ctx) }, SpecTimeout(specTimeout))

	It("removes deleted runs and their files permanently, and nothing else", func(ctx SpecContext) {
		deleted := team.write(ctx)
		const request = "/api/2.0/mlflow/runs/"
		ana := team.token(ctx, "ana")
		Expect(team.status(ctx, ana, request+"delete", `{"run_id": "`+deleted+`"}`)).To(Equal("200"))
		Expect(team.status(ctx, ana, request+"get?run_id="+deleted)).To(Equal("200"), "before garbage collection")

		log := runCronJob(ctx, "mlflow-gc")
		Expect(log).To(ContainSubstring(deleted))
		Expect(log).NotTo(ContainSubstring("Permission denied"))
		Expect(team.status(ctx, ana, request+"get?run_id="+deleted)).To(Equal("404"))
		Expect(runInServer(ctx, "find /mlflow/artifacts -path '*"+deleted+"*' -type f")).To(BeEmpty())
		Expect(team.read(ctx, run)).To(Equal(completeRun))
	}, SpecTimeout(specTimeout))

	It("archives an old trace [mlflow-97]", func(ctx SpecContext) {
		Expect(team.python(ctx, team.namespace, mlflowTrace)).To(Equal("200"))
		Expect(runCronJob(ctx, "mlflow-trace-archival")).To(ContainSubstring("archived 1 trace(s)"))
		Expect(runInServer(ctx, "find /mlflow/archive -type f")).NotTo(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("migrates with a new image and rolls it out", func(ctx SpecContext) {
		kubectl(ctx, "patch", "mlflow", "mlflow", "--type=merge", "-p",
			`{"spec": {"image": {"image": "`+mlflowUpgrade+`"}, "migration": {"mode": "Always"}}}`)
		waitMLflowReady(ctx)
		Expect(mlflowField(ctx, ".status.migration['outcome','image']")).To(Equal("Completed " + mlflowUpgrade))
		Expect(tryKubectl(ctx, "", "-n", operatorNamespace, "get", "pods", "--selector=app=mlflow", "--field-selector=status.phase=Running",
			"-o", "jsonpath={.items[*].spec.containers[0].image}")).To(Equal(mlflowUpgrade))
		Expect(team.read(ctx, run)).To(Equal(completeRun))
	}, SpecTimeout(specTimeout))

	It("starts with a low CPU limit", func(ctx SpecContext) {
		startup, restarts := expectThrottled(ctx)
		AddReportEntry("throttled server", fmt.Sprint("ready after ", startup))
		Expect(startup).To(BeNumerically(">", livenessLimit), "the server started too quickly for the spec to prove anything")
		Expect(restarts).To(BeZero())
	}, SpecTimeout(specTimeout))

	It("keeps its PersistentVolumeClaim when the MLflow is deleted, and uses the claim again", func(ctx SpecContext) {
		claim := func() string {
			return kubectl(ctx, "-n", operatorNamespace, "get", "pvc", mlflowClaim, "-o", "jsonpath={.metadata.uid} {.status.phase}")
		}
		before := claim()
		kubectl(ctx, "delete", "mlflow", "mlflow", "--timeout=2m")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "-n", operatorNamespace, "get", "deployments,pods", "--selector=app=mlflow", "-o", "name")
		}, podTimeout).Should(BeEmpty())
		Expect(claim()).To(Equal(before))

		apply(ctx, "", manifest)
		waitMLflowReady(ctx)
		team.copyCA(ctx)
		Expect(claim()).To(Equal(before))
		Expect(strings.Fields(before)).To(HaveExactElements(Not(BeEmpty()), Equal("Bound")))
		Expect(team.read(ctx, run)).To(Equal(completeRun))
	}, SpecTimeout(specTimeout))
})
