//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	ingressDomain    = "apps.example.org"
	contourNamespace = "projectcontour"
	// ingressSecret is the suffix of the name of a Secret with the certificate of an Ingress.
	ingressSecret = "-ingress-tls"
)

// ingressSettings publish all servers by Ingresses, with the annotations that docs/install.md lists for Contour.
var ingressSettings = []string{
	"EXPOSURE=ingress", "INGRESS_CLASS=contour", "INGRESS_DOMAIN=" + ingressDomain,
	"INGRESS_ANNOTATIONS=cert-manager.io/cluster-issuer=public,ingress.kubernetes.io/force-ssl-redirect=true," +
		"projectcontour.io/response-timeout=infinity,projectcontour.io/websocket-routes=/",
	"MLFLOW_URL=", "MLFLOW_GATEWAY_NAME=", "MLFLOW_GATEWAY_NAMESPACE=",
}

// startContour installs Contour from the manifests of its release, and returns its proxy.
func startContour(ctx context.Context) *edge {
	GinkgoHelper()
	program, err := cluster.BuildPeer(ctx, cluster.Contour, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Program(store, program, "/bin/contour", images.ContourImage)).To(Succeed())
	files, err := cluster.PeerFiles(ctx, cluster.Contour)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(files, "examples", "contour"))
	for _, workload := range []string{"deployment/contour", "daemonset/envoy"} {
		rolledOut(ctx, contourNamespace, workload)
	}
	e := newEdge("*."+ingressDomain, "*."+rayDomain)
	e.otherHost, e.noTLS = "421 ", "301 https://"
	e.address = kubectl(ctx, "-n", contourNamespace, "get", "service", "envoy", "-o", "jsonpath={.spec.clusterIP}")
	return e
}

// published waits for an Ingress, stores its certificate, as cert-manager does, and returns its URL.
func (e *edge) published(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	var host string
	Eventually(ctx, func(ctx context.Context) (err error) {
		host, err = tryKubectl(ctx, "", "-n", namespace, "get", "ingress", name, "-o", "jsonpath={.spec.rules[0].host}")
		return err
	}, podTimeout).Should(Succeed())
	e.secret(ctx, namespace, name+ingressSecret)
	return "https://" + host
}

// describeIngress requires the servers that run for the specs of a Gateway.
func describeIngress(t *tenants) {
	var e *edge

	BeforeAll(func(ctx SpecContext) {
		e = startContour(ctx)
		configure(ctx, ingressSettings...)
	}, NodeTimeout(startTimeout))

	AfterEach(func(ctx SpecContext) {
		printIfFailed(ctx, tryKubectl, [][]string{
			{"get", "ingresses", "-A", "-o", "yaml"},
			{"-n", contourNamespace, "logs", "deployment/contour", "--tail=60"},
			{"-n", contourNamespace, "logs", "daemonset/envoy", "-c", "envoy", "--tail=60"},
		})
	}, NodeTimeout(podTimeout))

	It("MLflow is reached by those who may, and artifacts take as long as they need", func(ctx SpecContext) {
		url := e.published(ctx, operatorNamespace, "mlflow") + "/mlflow"
		Expect(url).To(Equal("https://mlflow." + ingressDomain + "/mlflow"))
		awaitMLflow(ctx)
		Expect(mlflowField(ctx, ".status.url")).To(Equal(url))
		t.expectMLflow(ctx, e, url)
		e.expectStrangers(ctx, url+"/")
		t.expectArtifacts(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("a registry is reached by those who may", func(ctx SpecContext) {
		url := e.published(ctx, t.team, sample+"-https")
		Expect(url).To(Equal("https://" + sample + "-rest." + ingressDomain))
		t.expectRegistry(ctx, e, url+models)
		e.expectStrangers(ctx, url+models)
	}, SpecTimeout(specTimeout))

	It("the catalog is reached by users of the cluster", func(ctx SpecContext) {
		url := e.published(ctx, t.team, "model-catalog-https")
		t.expectCatalog(ctx, e, url+"/")
		e.expectStrangers(ctx, url+"/")
	}, SpecTimeout(specTimeout))

	It("the dashboard of a Ray cluster is reached by those who may, with the log of a job", func(ctx SpecContext) {
		url := e.published(ctx, t.team, "ray-dashboard-demo")
		t.expectDashboard(ctx, e, url)
		e.expectStrangers(ctx, url+"/")
		t.expectLog(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("authorized clients reach a model over REST", func(ctx SpecContext) {
		url := e.published(ctx, t.models.name, "digits-isvc")
		Expect(url).To(Equal(fmt.Sprintf("https://digits-isvc-%s.%s", t.models.name, ingressDomain)))
		t.expectModel(ctx, e, url+"/v2/models/digits-isvc/infer")
		e.expectStrangers(ctx, url+"/v2/models/digits-isvc")
	}, SpecTimeout(specTimeout))

	It("the operator has removed what published the servers by the Gateway", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "get", "httproutes,backendtlspolicies,referencegrants", "-A", "-o", "name")
		}, podTimeout).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
}
