package foundation

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// The specs of whole managers use mlflow as the example of a component.
const (
	operatorNamespace = "opendatahub"
	mlflowCRD         = "mlflows.mlflow.opendatahub.io"
	defaultEnv        = "MLFLOW_IMAGE=quay.io/example/mlflow:v3"
	specTimeout       = 5 * time.Minute
	idlePeriod        = 5 * time.Second // time for which an idle manager must send no write and no live read
)

// onlyMLflow contains the flags that disable TLS for metrics and all components except mlflow.
var onlyMLflow = []string{
	"--metrics-secure=false", "--enable-appwrapper=false", "--enable-modelcatalog=false", "--enable-modelmesh=false", "--enable-modelregistry=false",
	"--enable-raycluster=false",
}

// installation is the installed operator. The first spec that needs it installs it.
var installation *operator.Installed

func install(ctx context.Context) {
	GinkgoHelper()
	if installation == nil {
		Expect(mlflowv1.AddToScheme(env.Scheme)).To(Succeed())
		installation = env.InstallOperator(ctx, "config/default")
		Eventually(func() error { return env.Admin.List(ctx, &mlflowv1.MLflowList{}) }).Should(Succeed(), "discovery lists a new CRD with a delay")
	}
}

func startManager(ctx context.Context, options framework.ManagerOptions) *framework.Manager {
	GinkgoHelper()
	install(ctx)
	options.ServiceAccount = installation.ServiceAccount
	options.Env = append([]string{defaultEnv}, options.Env...)
	options.Args = append(slices.Clone(onlyMLflow), options.Args...)
	return env.StartManager(ctx, options)
}

// createMLflow creates an MLflow without volumes, and deletes it and its children at the end of the spec.
func createMLflow(ctx context.Context) *mlflowv1.MLflow {
	GinkgoHelper()
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	m.Spec.BackendStoreURI, m.Spec.ArtifactsDestination, m.Spec.ServeArtifacts = "postgresql://db/mlflow", "s3://bucket", true
	Expect(env.Admin.Create(ctx, m)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed())
		env.WaitDeleted(ctx, m, server(), policy())
	}, NodeTimeout(specTimeout))
	return m
}

// waitAvailable waits until an MLflow is available and the manager is idle.
func waitAvailable(ctx context.Context, manager *framework.Manager, m *mlflowv1.MLflow) {
	GinkgoHelper()
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
}

func server() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "mlflow"}}
}

func policy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "mlflow"}}
}

func httpGet(ctx context.Context, url string) (status int, body string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(text)
}

func metricsOf(ctx context.Context, m *framework.Manager) string {
	GinkgoHelper()
	status, text := httpGet(ctx, strings.Replace(m.MetricsURL, "https:", "http:", 1)+"/metrics")
	Expect(status).To(Equal(http.StatusOK))
	return text
}
