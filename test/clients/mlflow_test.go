//go:build clients

package clients_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// serverPackages are the oldest supported MLflow and the plugins in the images of the platform.
var serverPackages = []string{"mlflow==3.14.0", "mlflow-kubernetes-plugins==1.7.1"}

// installMLflow creates a Python environment with packages. The environment inherits the dependencies of MLflow from that of
// test/operands.
func installMLflow(ctx context.Context, name string, packages ...string) *machine.Python {
	GinkgoHelper()
	requirements, err := os.ReadFile(filepath.Join("..", "operands", "requirements.txt"))
	Expect(err).NotTo(HaveOccurred())
	operands, err := machine.InstallPython(ctx, "operands", "python", requirements)
	Expect(err).NotTo(HaveOccurred())
	python, err := operands.Extend(ctx, name, packages...)
	Expect(err).NotTo(HaveOccurred())
	return python
}

// The server runs with the rendered command and environment, and requests namespaces and access reviews from the API server.
var _ = Describe("MLflow", Ordered, ContinueOnFailure, func() {
	const namespace = "team-a" // the namespace in mlflow.md
	var t task

	BeforeAll(func(ctx SpecContext) {
		python := installMLflow(ctx, "mlflow-3.14.0-plugins-1.7.1", serverPackages...)
		Expect(env.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}, Spec: mlflowv1.MLflowSpec{
			BackendStoreURI: "sqlite:////mlflow/mlflow.db", ArtifactsDestination: "file:///mlflow/artifacts", ServeArtifacts: true,
			Storage: &corev1.PersistentVolumeClaimSpec{},
		}}
		Expect(env.Admin.Create(ctx, m)).To(Succeed())
		ports, portTexts := reservePorts(ctx, 1)
		p := newPodProcesses(ctx, operatorNamespace, "mlflow", "sqlite:////mlflow/", "sqlite:///{dir}/mlflow/", "file:///mlflow/", "file://{dir}/mlflow/",
			"/mlflow/.mlflow", "{dir}/mlflow/.mlflow", "/etc/tls/", "{dir}/etc/tls/", "--expose-prometheus=", "--expose-prometheus={dir}",
			"--host=0.0.0.0", "--host=127.0.0.1", "--port=8443", "--port="+portTexts[0])
		p.start(ctx, "mlflow", "", python)
		ca := secret(ctx, operatorNamespace, "mlflow-tls")["ca.crt"]
		waitReady(ctx, ports[0], "/mlflow/health", ca, "localhost")
		t = task{
			script: "mlflow_runs.py", namespace: namespace, kubeconfig: createUser(ctx, namespace, "edit"), env: []string{"OTHER=" + env.Namespace(ctx, "other")},
			files: map[string]string{"ca.crt": string(ca), "snippet.py": snippet("mlflow.md")}, services: map[string]int{"localhost:8443": ports[0]},
		}
	}, NodeTimeout(startTimeout))

	eachRelease("logs a run, an artifact and a model in a workspace", releases("mlflow", "3.18.0", "3.14.0"), func(ctx SpecContext, c client) {
		c.run(ctx, installMLflow(ctx, c.name+"-"+c.version, c.name+"=="+c.version), t)
	})
})
