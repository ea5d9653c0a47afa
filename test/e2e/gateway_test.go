//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	gatewayURL  = "https://" + gatewayHost
	registryURL = gatewayURL + "/model-registry/" + sample + models
)

//go:embed testdata/impostor.yaml
var impostorPod string

// The specs send requests to Envoy from outside the pods. First Envoy Gateway, then Contour configures Envoy with the objects of the operator.
var _ = Describe("Through a Gateway", Ordered, ContinueOnFailure, func() {
	var (
		e *externalProxy
		t tenants
	)

	BeforeAll(func(ctx SpecContext) {
		startOwnCluster(ctx, "gateway")
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		e = startGateway(ctx)
		configure(ctx, gatewaySettings...)
		t = newTenants(ctx)
		t.create(ctx)
		buildModelMeshImages(ctx)
		startModelMesh(ctx)
		t.serve(ctx)
		t.startRay(ctx)
	}, NodeTimeout(startTimeout))

	AfterEach(func(ctx SpecContext) { printGateway(ctx) }, NodeTimeout(time.Minute))

	It("authorized users reach MLflow, and transfers of artifacts have no time limit", func(ctx SpecContext) {
		url := gatewayURL + "/mlflow"
		Expect(mlflowField(ctx, ".status.url")).To(Equal(url))
		t.expectMLflow(ctx, e, url)
		e.expectHostAndTLS(ctx, url+"/")
		t.expectArtifacts(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("authorized users reach a registry", func(ctx SpecContext) {
		t.expectRegistry(ctx, e, registryURL)
		e.expectHostAndTLS(ctx, registryURL)
		Expect(kubectl(ctx, "-n", t.team, "get", "modelregistry", sample, "-o", "jsonpath={.status.hosts[0]}")).To(Equal(gatewayHost + "/model-registry/" + sample))
	}, SpecTimeout(specTimeout))

	It("users of the cluster reach the catalog", func(ctx SpecContext) {
		t.expectCatalog(ctx, e, gatewayURL+"/catalog/")
		e.expectHostAndTLS(ctx, gatewayURL+"/catalog/")
	}, SpecTimeout(specTimeout))

	It("a server with a self-signed certificate is not reached", func(ctx SpecContext) {
		apply(ctx, operatorNamespace, impostorPod)
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "-n", operatorNamespace, "delete", "pod", "impostor") }, NodeTimeout(podTimeout))
		waitPodReady(ctx, operatorNamespace, "impostor")
		// Envoy retries a request at the other pod if the certificate of one is invalid, and counts the error.
		Eventually(ctx, func(ctx context.Context) (string, error) {
			Expect(e.send(ctx, call{method: http.MethodGet, url: gatewayURL + "/mlflow/health"})).NotTo(ContainSubstring("impostor"))
			return envoyMetrics(ctx)
		}, podTimeout).Should(MatchRegexp(`envoy_cluster_ssl_fail_verify_error\{[^}]*mlflow[^}]*\} [1-9]`))
	}, SpecTimeout(specTimeout))

	It("a rejected HTTPRoute is reported and not served, and is served again when it is accepted", func(ctx SpecContext) {
		allow := func(from string) {
			GinkgoHelper()
			kubectl(ctx, "-n", gatewayNamespace, "patch", "gateway", "public", "--type=json", "-p",
				fmt.Sprintf(`[{"op": "replace", "path": "/spec/listeners/0/allowedRoutes/namespaces/from", "value": %q}]`, from))
		}
		routeReasons := func(ctx context.Context) []string {
			const path = `jsonpath={.items[*].status.conditions[?(@.type=="RouteAccepted")].reason}`
			return []string{
				kubectl(ctx, "get", "mlflow", "-o", path),
				kubectl(ctx, "-n", t.team, "get", "modelregistry", "-o", path),
				kubectl(ctx, "-n", t.team, "get", "catalogs.aihub.opendatahub.io", "-o", path),
			}
		}
		Expect(routeReasons(ctx)).To(HaveEach(""))
		allow("Same")
		Eventually(ctx, routeReasons, podTimeout).Should(HaveEach("NotAllowedByListeners"))
		Expect(mlflowField(ctx, ".status.url")).NotTo(ContainSubstring(gatewayHost))
		Expect(kubectl(ctx, "-n", t.team, "get", "modelregistry", sample, "-o", "jsonpath={.status.hosts}")).NotTo(ContainSubstring(gatewayHost))
		Eventually(ctx, e.send).WithArguments(call{url: registryURL}).Should(HavePrefix("404 "))
		allow("All")
		Eventually(ctx, routeReasons, podTimeout).Should(HaveEach(""))
		t.expectRegistry(ctx, e, registryURL)
		Expect(mlflowField(ctx, ".status.url")).To(Equal(gatewayURL + "/mlflow"))
	}, SpecTimeout(specTimeout))

	It("authorized users reach the dashboard of a Ray cluster, and follow the log of a job", func(ctx SpecContext) {
		url := gatewayURL + "/ray/" + t.team + "/demo"
		e.expect(ctx, []exchange{{call{url: url}, "302 " + url + "/"}})
		t.expectDashboard(ctx, e, url)
		e.expectHostAndTLS(ctx, url+"/")
		t.expectLog(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("clients with a certificate of the CA of a Ray cluster reach its client port", func(ctx SpecContext) { t.expectRayClient(ctx, e) }, SpecTimeout(specTimeout))

	It("authorized clients reach a model over REST only", func(ctx SpecContext) {
		url := gatewayURL + "/modelmesh/" + t.models.name
		t.expectModel(ctx, e, url+"/v2/models/digits-isvc/infer")
		e.expectHostAndTLS(ctx, url+"/v2/models/digits-isvc")
		By("sending requests to the path of the gRPC API, and requests for models that are not published")
		for _, path := range []string{gatewayURL + "/inference.GRPCInferenceService/ModelInfer", url + "/v2/models/other/infer"} {
			Expect(e.send(ctx, call{method: http.MethodPost, url: path, token: t.token(ctx, "ana"), body: modelMeshExamples()[0].request})).To(HavePrefix("404 "))
		}
	}, SpecTimeout(specTimeout))

	Describe("and through an Ingress controller", func() { describeIngress(&t) })
})
