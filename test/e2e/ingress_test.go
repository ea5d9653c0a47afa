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

// ingressSettings are variables of the operator that publish all servers through Ingresses. The annotations are those of docs/install.md
// for Contour.
var ingressSettings = []string{
	"EXPOSURE=ingress", "INGRESS_CLASS=contour", "INGRESS_DOMAIN=" + ingressDomain,
	"INGRESS_ANNOTATIONS=cert-manager.io/cluster-issuer=public,ingress.kubernetes.io/force-ssl-redirect=true," +
		"projectcontour.io/response-timeout=infinity,projectcontour.io/websocket-routes=/",
	"MLFLOW_URL=", "MLFLOW_GATEWAY_NAME=", "MLFLOW_GATEWAY_NAMESPACE=",
}

// startContour installs Contour with the manifests of its release, and returns its proxy.
func startContour(ctx context.Context) *externalProxy {
	GinkgoHelper()
	program, err := cluster.BuildPeer(ctx, cluster.Contour, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Program(store, program, "/bin/contour", images.ContourImage)).To(Succeed())
	files, err := cluster.PeerDir(ctx, cluster.Contour)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(files, "examples", "contour"))
	for _, workload := range []string{"deployment/contour", "daemonset/envoy"} {
		waitRollout(ctx, contourNamespace, workload)
	}
	e := newExternalProxy("*."+ingressDomain, "*."+rayDomain)
	e.wrongHostResponse, e.plainHTTPResponse = "421 ", "301 https://"
	e.address = kubectl(ctx, "-n", contourNamespace, "get", "service", "envoy", "-o", "jsonpath={.spec.clusterIP}")
	return e
}

// waitPublished waits for an Ingress, creates the Secret with its certificate, as cert-manager does, and returns its URL.
func (e *externalProxy) waitPublished(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	var host string
	Eventually(ctx, func(ctx context.Context) (err error) {
		host, err = tryKubectl(ctx, "", "-n", namespace, "get", "ingress", name, "-o", "jsonpath={.spec.rules[0].host}")
		return err
	}, podTimeout).Should(Succeed())
	e.createSecret(ctx, namespace, name+ingressSecret)
	return "https://" + host
}

// describeIngress describes the specs of an Ingress, with the servers that the specs of the Gateway have created.
func describeIngress(t *tenants) {
	var e *externalProxy

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

	It("authorized users reach MLflow, and transfers of artifacts have no time limit", func(ctx SpecContext) {
		url := e.waitPublished(ctx, operatorNamespace, "mlflow") + "/mlflow"
		Expect(url).To(Equal("https://mlflow." + ingressDomain + "/mlflow"))
		waitMLflowReady(ctx)
		Expect(mlflowField(ctx, ".status.url")).To(Equal(url))
		t.expectMLflow(ctx, e, url)
		e.expectHostAndTLS(ctx, url+"/")
		t.expectArtifacts(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("authorized users reach a registry", func(ctx SpecContext) {
		url := e.waitPublished(ctx, t.team, sample+"-https")
		Expect(url).To(Equal("https://" + sample + "-rest." + ingressDomain))
		t.expectRegistry(ctx, e, url+models)
		e.expectHostAndTLS(ctx, url+models)
	}, SpecTimeout(specTimeout))

	It("users of the cluster reach the catalog", func(ctx SpecContext) {
		url := e.waitPublished(ctx, t.team, "model-catalog-https")
		t.expectCatalog(ctx, e, url+"/")
		e.expectHostAndTLS(ctx, url+"/")
	}, SpecTimeout(specTimeout))

	It("authorized users reach the dashboard of a Ray cluster, and follow the log of a job", func(ctx SpecContext) {
		url := e.waitPublished(ctx, t.team, "ray-dashboard-demo")
		t.expectDashboard(ctx, e, url)
		e.expectHostAndTLS(ctx, url+"/")
		t.expectLog(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("authorized clients reach a model over REST", func(ctx SpecContext) {
		url := e.waitPublished(ctx, t.models.name, "digits-isvc")
		Expect(url).To(Equal(fmt.Sprintf("https://digits-isvc-%s.%s", t.models.name, ingressDomain)))
		t.expectModel(ctx, e, url+"/v2/models/digits-isvc/infer")
		e.expectHostAndTLS(ctx, url+"/v2/models/digits-isvc")
	}, SpecTimeout(specTimeout))

	It("the operator has deleted the objects that published the servers through the Gateway", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "get", "httproutes,backendtlspolicies,referencegrants", "-A", "-o", "name")
		}, podTimeout).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
}
