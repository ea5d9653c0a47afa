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
var impostor string

// Requests arrive at Envoy from outside of all pods; Envoy Gateway configures it by the objects of the operator, and then Contour.
var _ = Describe("Through a Gateway", Ordered, ContinueOnFailure, func() {
	var (
		e *edge
		t tenants
	)

	BeforeAll(func(ctx SpecContext) {
		ownCluster(ctx, "gateway")
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		e = startGateway(ctx)
		configure(ctx, gatewaySettings...)
		t = newTenants(ctx)
		t.create(ctx)
		packModelMesh(ctx)
		startModelMesh(ctx)
		t.serve(ctx)
		t.startRay(ctx)
	}, NodeTimeout(startTimeout))

	AfterEach(func(ctx SpecContext) { describeGateway(ctx) }, NodeTimeout(time.Minute))

	It("MLflow is reached by those who may, and artifacts take as long as they need", func(ctx SpecContext) {
		url := gatewayURL + "/mlflow"
		Expect(mlflowField(ctx, ".status.url")).To(Equal(url))
		t.expectMLflow(ctx, e, url)
		e.expectStrangers(ctx, url+"/")
		t.expectArtifacts(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("a registry is reached by those who may", func(ctx SpecContext) {
		t.expectRegistry(ctx, e, registryURL)
		e.expectStrangers(ctx, registryURL)
		Expect(kubectl(ctx, "-n", t.team, "get", "modelregistry", sample, "-o", "jsonpath={.status.hosts[0]}")).To(Equal(gatewayHost + "/model-registry/" + sample))
	}, SpecTimeout(specTimeout))

	It("the catalog is reached by users of the cluster", func(ctx SpecContext) {
		t.expectCatalog(ctx, e, gatewayURL+"/catalog/")
		e.expectStrangers(ctx, gatewayURL+"/catalog/")
	}, SpecTimeout(specTimeout))

	It("a server with a certificate of another CA is not reached", func(ctx SpecContext) {
		apply(ctx, operatorNamespace, impostor)
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "-n", operatorNamespace, "delete", "pod", "impostor") }, NodeTimeout(podTimeout))
		podReady(ctx, operatorNamespace, "impostor")
		// Envoy repeats a request at the other pod if one has no valid certificate, and counts that.
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
		accepted := func(ctx context.Context) []string {
			const path = `jsonpath={.items[*].status.conditions[?(@.type=="RouteAccepted")].reason}`
			return []string{
				kubectl(ctx, "get", "mlflow", "-o", path),
				kubectl(ctx, "-n", t.team, "get", "modelregistry", "-o", path),
				kubectl(ctx, "-n", t.team, "get", "catalogs.aihub.opendatahub.io", "-o", path),
			}
		}
		Expect(accepted(ctx)).To(HaveEach(""))
		allow("Same")
		Eventually(ctx, accepted, podTimeout).Should(HaveEach("NotAllowedByListeners"))
		Expect(mlflowField(ctx, ".status.url")).NotTo(ContainSubstring(gatewayHost))
		Expect(kubectl(ctx, "-n", t.team, "get", "modelregistry", sample, "-o", "jsonpath={.status.hosts}")).NotTo(ContainSubstring(gatewayHost))
		Eventually(ctx, e.send).WithArguments(call{url: registryURL}).Should(HavePrefix("404 "))
		allow("All")
		Eventually(ctx, accepted, podTimeout).Should(HaveEach(""))
		t.expectRegistry(ctx, e, registryURL)
		Expect(mlflowField(ctx, ".status.url")).To(Equal(gatewayURL + "/mlflow"))
	}, SpecTimeout(specTimeout))

	It("the dashboard of a Ray cluster is reached by those who may, with the log of a job", func(ctx SpecContext) {
		url := gatewayURL + "/ray/" + t.team + "/demo"
		e.expect(ctx, []exchange{{call{url: url}, "302 " + url + "/"}})
		t.expectDashboard(ctx, e, url)
		e.expectStrangers(ctx, url+"/")
		t.expectLog(ctx, e, url)
	}, SpecTimeout(specTimeout))

	It("a Ray cluster is reached by clients with a certificate of its CA", func(ctx SpecContext) { t.expectRayClient(ctx, e) }, SpecTimeout(specTimeout))

	It("authorized clients reach a model over REST only", func(ctx SpecContext) {
		url := gatewayURL + "/modelmesh/" + t.models.name
		t.expectModel(ctx, e, url+"/v2/models/digits-isvc/infer")
		e.expectStrangers(ctx, url+"/v2/models/digits-isvc")
		By("sending gRPC requests, and requests for models that are not published")
		for _, path := range []string{gatewayURL + "/inference.GRPCInferenceService/ModelInfer", url + "/v2/models/other/infer"} {
			Expect(e.send(ctx, call{method: http.MethodPost, url: path, token: t.token(ctx, "ana"), body: modelMeshExamples()[0].request})).To(HavePrefix("404 "))
		}
	}, SpecTimeout(specTimeout))

	Describe("and through an Ingress controller", func() { describeIngress(&t) })
})
