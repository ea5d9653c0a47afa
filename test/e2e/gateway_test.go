//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	gatewayURL  = "https://" + gatewayHost
	searchBody  = `{"max_results": 10}`
	searchPath  = "/api/2.0/mlflow/experiments/search"
	createPath  = "/api/2.0/mlflow/experiments/create"
	registryURL = gatewayURL + "/model-registry/" + sample + models
)

// Requests arrive at Envoy from outside of all pods; Envoy Gateway configures it by the objects of the operator.
var _ = Describe("Through a Gateway", Ordered, func() {
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
		url := gatewayURL + "/catalog"
		e.expect(ctx, []exchange{
			{call{url: url + "/"}, "401 "},
			{call{url: url + "/", token: "not-a-token"}, "401 "},
			{call{url: url + "/", token: t.token(ctx, "eve")}, "200 "},
		})
		e.expectStrangers(ctx, url+"/")
	}, SpecTimeout(specTimeout))

	It("nothing is reached that it refuses, which the operator reports, and all is again that it takes", func(ctx SpecContext) {
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

	It("the dashboard of a Ray cluster is reached by those who may", func(ctx SpecContext) {
		t.startRay(ctx)
		url := gatewayURL + "/ray/" + t.team + "/demo"
		e.expect(ctx, []exchange{{call{url: url}, "302 " + url + "/"}})
		t.expectDashboard(ctx, e, url)
		e.expectStrangers(ctx, url+"/")
	}, SpecTimeout(specTimeout))

	It("a Ray cluster is reached by clients with a certificate of its CA", func(ctx SpecContext) { t.expectRayClient(ctx, e) }, SpecTimeout(specTimeout))
})

// exchange is a request with the beginning of its response.
type exchange struct {
	call
	want string
}

// expect sends requests. The first ones are retried, because proxies learn of servers later.
func (e *edge) expect(ctx context.Context, exchanges []exchange) {
	GinkgoHelper()
	for _, x := range exchanges {
		if x.method == "" {
			x.method = http.MethodGet
		}
		Eventually(ctx, e.send, podTimeout).WithArguments(x.call).Should(HavePrefix(x.want), "%s %s %s, token: %t", x.method, x.url, x.host, x.token != "")
	}
}

// expectStrangers expects that a URL is reached by its name only, and by clients that trust the CA of the proxy.
func (e *edge) expectStrangers(ctx context.Context, url string) {
	GinkgoHelper()
	Expect(e.send(ctx, call{method: http.MethodGet, url: url, host: "other.example.org"})).To(HavePrefix("404 "))
	_, err := e.send(ctx, call{method: http.MethodGet, url: strings.Replace(url, "https://", "https://other.", 1)})
	Expect(err).To(HaveOccurred(), "another server name")
	_, err = e.send(ctx, call{method: http.MethodGet, url: strings.Replace(url, "https://", "http://", 1)})
	Expect(err).To(HaveOccurred(), "without TLS")
	_, err = (&edge{address: e.address, certificates: newEdge(gatewayHost).certificates}).send(ctx, call{method: http.MethodGet, url: url})
	Expect(err).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
}

// tenants are a team with a user, and another one.
type tenants struct{ team, other string }

func newTenants(ctx context.Context) tenants {
	GinkgoHelper()
	t := tenants{team: env.Namespace(ctx, "team"), other: env.Namespace(ctx, "other")}
	for account, namespace := range map[string]string{"ana": t.team, "eve": t.other} {
		kubectl(ctx, "-n", namespace, "create", "serviceaccount", account)
		for _, role := range []string{"view", "mlflow-operator-mlflow-view", "mlflow-operator-mlflow-edit"} {
			kubectl(ctx, "-n", namespace, "create", "rolebinding", role, "--clusterrole="+role, "--serviceaccount="+namespace+":"+account)
		}
	}
	return t
}

// create creates the servers of the team, and waits until they are available.
func (t tenants) create(ctx context.Context) {
	GinkgoHelper()
	samples := filepath.Join(checkout, "config", "samples")
	DeferCleanup(removeMLflow)
	kubectl(ctx, "apply", "-f", filepath.Join(samples, "mlflow_minimal.yaml"))
	apply(ctx, t.team, catalogSource)
	for _, file := range []string{"modelregistry_proxy.yaml", "aihub_catalog.yaml"} {
		kubectl(ctx, "-n", t.team, "apply", "-f", filepath.Join(samples, file))
	}
	awaitMLflow(ctx)
	for _, one := range []string{"modelregistry/" + sample, "catalogs.aihub.opendatahub.io/catalog"} {
		kubectl(ctx, "-n", t.team, "wait", one, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
	}
	kubectl(ctx, "-n", t.team, "create", "rolebinding", "registry", "--role=registry-user-"+sample, "--serviceaccount="+t.team+":ana")
}

// token returns a token of ana of the team or eve of the other one.
func (t tenants) token(ctx context.Context, account string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", map[string]string{"ana": t.team, "eve": t.other}[account], "create", "token", account)
}

func (t tenants) expectMLflow(ctx context.Context, e *edge, url string) {
	GinkgoHelper()
	ana, eve := t.token(ctx, "ana"), t.token(ctx, "eve")
	e.expect(ctx, []exchange{
		{call{url: url + "/"}, "200 "},
		{call{url: url}, "308 "},
		{call{method: http.MethodPost, url: url + createPath, body: `{"name": "first"}`, token: ana, workspace: t.team}, "200 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: ana, workspace: t.team}, "200 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, workspace: t.team}, "401 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: "not-a-token", workspace: t.team}, "401 "},
		{call{method: http.MethodPost, url: url + createPath, body: `{"name": "second"}`, token: eve, workspace: t.team}, "403 "},
	})
	Expect(e.send(ctx, call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: ana, workspace: t.team})).To(ContainSubstring(`"first"`))
	Expect(e.send(ctx, call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: eve, workspace: t.team})).NotTo(ContainSubstring(`"first"`))
}

// expectArtifacts uploads an artifact, and downloads it as quickly as possible and so slowly that proxies with a limit would end the response.
func (t tenants) expectArtifacts(ctx context.Context, e *edge, url string) {
	GinkgoHelper()
	c := call{url: url + "/api/2.0/mlflow-artifacts/artifacts/" + t.artifacts(ctx, e, url) + "/weights.bin", token: t.token(ctx, "ana"), workspace: t.team}
	Expect(e.upload(ctx, c, artifactSize, slowRate)).To(Equal(http.StatusOK))
	Expect(e.download(ctx, c, 0)).To(BeEquivalentTo(artifactSize * mebibyte))
	begin := time.Now()
	Expect(e.download(ctx, c, slowRate)).To(BeEquivalentTo(artifactSize * mebibyte))
	AddReportEntry("a slow download took", time.Since(begin).Round(time.Second))
}

// artifacts creates a run and returns the path of its artifacts at the server.
func (t tenants) artifacts(ctx context.Context, e *edge, url string) string {
	GinkgoHelper()
	ana := t.token(ctx, "ana")
	field := func(answer, name string) string {
		GinkgoHelper()
		_, after, found := strings.Cut(answer, `"`+name+`": "`)
		Expect(found).To(BeTrue(), answer)
		value, _, _ := strings.Cut(after, `"`)
		return value
	}
	answer, err := e.send(ctx, call{method: http.MethodPost, url: url + createPath, body: `{"name": "weights"}`, token: ana, workspace: t.team})
	Expect(err).NotTo(HaveOccurred())
	answer, err = e.send(ctx, call{
		method: http.MethodPost, url: url + "/api/2.0/mlflow/runs/create", body: fmt.Sprintf(`{"experiment_id": %q}`, field(answer, "experiment_id")), token: ana, workspace: t.team,
	})
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimPrefix(field(answer, "artifact_uri"), "mlflow-artifacts:/")
}

func (t tenants) expectRegistry(ctx context.Context, e *edge, url string) {
	GinkgoHelper()
	ana, name := t.token(ctx, "ana"), fmt.Sprintf("model-%d", time.Now().UnixNano())
	e.expect(ctx, []exchange{
		{call{method: http.MethodPost, url: url, body: fmt.Sprintf(`{"name": %q, "customProperties": {}}`, name), token: ana}, "201 "},
		{call{url: url, token: ana}, "200 "},
		{call{url: url}, "401 "},
		{call{url: url, token: "not-a-token"}, "401 "},
		{call{url: url, token: t.token(ctx, "eve")}, "403 "},
	})
	Expect(e.send(ctx, call{method: http.MethodGet, url: url, token: ana})).To(ContainSubstring(name))
}
