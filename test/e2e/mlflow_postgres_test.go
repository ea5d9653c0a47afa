//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/kind"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

//go:embed testdata/mlflow_earlier.yaml
var mlflowEarlier string

// readEarlier prints data that the pod of mlflow_earlier.yaml wrote: the loss of the run argv[1], and the name of the model.
const readEarlier = `
import sys
import mlflow
client = mlflow.MlflowClient()
print(client.get_run(sys.argv[1]).data.metrics["loss"], client.get_registered_model("earlier").name)
`

// runInDatabase executes a statement in the database that make apply-kind deploys, and returns the output.
func runInDatabase(ctx context.Context, statement string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", operatorNamespace, "exec", "deployment/postgres-deployment", "--", "sh", "-c",
		`psql -h /run/postgresql -U "$POSTGRESQL_USER" -d "$POSTGRESQL_DATABASE" -Atc '`+statement+`'`)
}

// removeDatabase deletes the database that make apply-kind deploys, and the pod of mlflow_earlier.yaml.
func removeDatabase(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "-n", operatorNamespace, "delete", "--ignore-not-found", "deployment/postgres-deployment", "service/postgres-service",
		"pvc/postgres-data", "secret/postgres-credentials", "secret/mlflow-db-credentials", "pod/mlflow-earlier")
}

var _ = Describe("MLflow with PostgreSQL, as make apply-kind deploys it", Ordered, func() {
	const revision = "SELECT version_num FROM alembic_version"
	var (
		team mlflowTeam
		// oldRevision is the revision of the database before the migration.
		oldRevision string
		// run is the ID of a run in the database before the migration.
		run string
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		Expect(images.EarlierMLflow(ctx, store, checkout)).To(Succeed())
		team = newMLflowTeam(ctx)

		options := kind.Defaults()
		options.BackendStore = kind.Postgres
		deployer := kind.Deployer{Client: env.Admin, Clock: clock.RealClock{}, Out: GinkgoWriter}
		objects, err := deployer.Objects(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(removeDatabase)
		var server client.Object
		for _, object := range objects {
			if object.GetObjectKind().GroupVersionKind().Kind == "MLflow" {
				server = object // applied after the database has data to migrate
				continue
			}
			Expect(deployer.Apply(ctx, object)).To(Succeed())
		}
		waitRollout(ctx, operatorNamespace, "deployment/postgres-deployment")
		apply(ctx, operatorNamespace, mlflowEarlier)
		kubectl(ctx, "-n", operatorNamespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/mlflow-earlier", fmt.Sprint("--timeout=", podTimeout))
		written := strings.Fields(kubectl(ctx, "-n", operatorNamespace, "logs", "mlflow-earlier"))
		run = written[len(written)-1]
		Expect(written[len(written)-2]).To(Equal("3.12.0"))
		oldRevision = runInDatabase(ctx, revision)

		DeferCleanup(removeMLflow)
		Expect(deployer.Apply(ctx, server)).To(Succeed())
		waitMLflowReady(ctx)
		team.copyCA(ctx)
	}, NodeTimeout(startTimeout))

	It("migrates a database of an earlier release and keeps its data", func(ctx SpecContext) {
		Expect(oldRevision).NotTo(BeEmpty())
		Expect(runInDatabase(ctx, revision)).NotTo(Equal(oldRevision))
		Expect(mlflowField(ctx, ".status['version','migration.outcome']")).To(Equal("3.14.0 Completed"))
		// The migration assigns data without a workspace to the workspace default.
		for _, role := range []string{"view", "edit"} {
			kubectl(ctx, "-n", "default", "create", "rolebinding", "ana-"+role, "--clusterrole=mlflow-operator-mlflow-"+role,
				"--serviceaccount="+team.namespace+":ana")
			DeferCleanup(func(ctx context.Context) { kubectl(ctx, "-n", "default", "delete", "rolebinding", "ana-"+role) })
		}
		Expect(team.python(ctx, "default", readEarlier, run)).To(Equal("0.5 earlier"))
	}, SpecTimeout(specTimeout))

	It("keeps runs, artifacts and models of a client", func(ctx SpecContext) {
		written := team.write(ctx)
		Expect(team.read(ctx, written)).To(Equal(completeRun))
		Expect(runInDatabase(ctx, "SELECT run_uuid FROM runs")).To(ContainSubstring(written))
	}, SpecTimeout(specTimeout))
})
