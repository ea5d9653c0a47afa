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
	searchBody = `{"max_results": 10}`
	searchPath = "/api/2.0/mlflow/experiments/search"
	createPath = "/api/2.0/mlflow/experiments/create"
)

// exchange is a request with the expected prefix of its response.
type exchange struct {
	call
	want string
}

// expect sends requests and compares the responses. It retries, because proxies learn of new servers with a delay.
func (e *externalProxy) expect(ctx context.Context, exchanges []exchange) {
	GinkgoHelper()
	for _, x := range exchanges {
		if x.method == "" {
			x.method = http.MethodGet
		}
		Eventually(ctx, e.send, podTimeout).WithArguments(x.call).Should(HavePrefix(x.want), "%s %s %s, token: %t", x.method, x.url, x.host, x.token != "")
	}
}

// expectHostAndTLS expects that clients reach a URL only by its host name, only over TLS, and only if they trust the CA of the proxy.
func (e *externalProxy) expectHostAndTLS(ctx context.Context, url string) {
	GinkgoHelper()
	Expect(e.send(ctx, call{method: http.MethodGet, url: url, host: "other.example.org"})).To(HavePrefix(e.wrongHostResponse))
	_, err := e.send(ctx, call{method: http.MethodGet, url: strings.Replace(url, "https://", "https://other.", 1)})
	Expect(err).To(HaveOccurred(), "another server name")
	response, err := e.send(ctx, call{method: http.MethodGet, url: strings.Replace(url, "https://", "http://", 1)})
	if e.plainHTTPResponse == "" {
		Expect(err).To(HaveOccurred(), "without TLS")
	} else {
		Expect(response, err).To(HavePrefix(e.plainHTTPResponse), "without TLS")
	}
	_, err = (&externalProxy{address: e.address, certificates: newExternalProxy(gatewayHost).certificates}).send(ctx, call{method: http.MethodGet, url: url})
	Expect(err).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
}

// tenants are the namespaces of two teams with one user each, and the namespace of a model of the first team.
type tenants struct {
	team, other string
	models      servedNamespace
}

func newTenants(ctx context.Context) tenants {
	GinkgoHelper()
	t := tenants{team: env.Namespace(ctx, "team"), other: env.Namespace(ctx, "other")}
	for account, namespace := range map[string]string{"ana": t.team, "eve": t.other} {
		kubectl(ctx, "-n", namespace, "create", "serviceaccount", account)
		for _, role := range []string{"edit", "mlflow-operator-mlflow-view", "mlflow-operator-mlflow-edit"} {
			kubectl(ctx, "-n", namespace, "create", "rolebinding", role, "--clusterrole="+role, "--serviceaccount="+namespace+":"+account)
		}
	}
	return t
}

// create creates the servers of the first team, and waits until they are available.
func (t tenants) create(ctx context.Context) {
	GinkgoHelper()
	samples := filepath.Join(checkout, "config", "samples")
	DeferCleanup(removeMLflow)
	kubectl(ctx, "apply", "-f", filepath.Join(samples, "mlflow_minimal.yaml"))
	apply(ctx, t.team, catalogSource)
	for _, file := range []string{"modelregistry_proxy.yaml", "aihub_catalog.yaml"} {
		kubectl(ctx, "-n", t.team, "apply", "-f", filepath.Join(samples, file))
	}
	waitMLflowReady(ctx)
	for _, resource := range []string{"modelregistry/" + sample, "catalogs.aihub.opendatahub.io/catalog"} {
		kubectl(ctx, "-n", t.team, "wait", resource, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
	}
	kubectl(ctx, "-n", t.team, "create", "rolebinding", "registry", "--role=registry-user-"+sample, "--serviceaccount="+t.team+":ana")
}

// token returns a token of a user: ana of the first team, or eve of the other team.
func (t tenants) token(ctx context.Context, account string) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", map[string]string{"ana": t.team, "eve": t.other}[account], "create", "token", account)
}

func (t tenants) expectMLflow(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	ana, eve, name := t.token(ctx, "ana"), t.token(ctx, "eve"), uniqueName("first")
	e.expect(ctx, []exchange{
		{call{url: url + "/"}, "200 "},
		{call{url: url}, "308 "},
		{call{method: http.MethodPost, url: url + createPath, body: fmt.Sprintf(`{"name": %q}`, name), token: ana, workspace: t.team}, "200 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: ana, workspace: t.team}, "200 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, workspace: t.team}, "401 "},
		{call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: "not-a-token", workspace: t.team}, "401 "},
		{call{method: http.MethodPost, url: url + createPath, body: `{"name": "second"}`, token: eve, workspace: t.team}, "403 "},
	})
	Expect(e.send(ctx, call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: ana, workspace: t.team})).To(ContainSubstring(name))
	Expect(e.send(ctx, call{method: http.MethodPost, url: url + searchPath, body: searchBody, token: eve, workspace: t.team})).NotTo(ContainSubstring(name))
}

// expectArtifacts uploads an artifact slowly, and downloads it quickly and slowly. A proxy with a time limit would end a slow response.
func (t tenants) expectArtifacts(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	artifact := call{url: url + "/api/2.0/mlflow-artifacts/artifacts/" + t.artifacts(ctx, e, url) + "/weights.bin", token: t.token(ctx, "ana"), workspace: t.team}
	Expect(e.upload(ctx, artifact, artifactMiB, slowMiBPerSecond)).To(Equal(http.StatusOK))
	Expect(e.download(ctx, artifact, 0)).To(BeEquivalentTo(artifactMiB * mebibyte))
	start := time.Now()
	Expect(e.download(ctx, artifact, slowMiBPerSecond)).To(BeEquivalentTo(artifactMiB * mebibyte))
	AddReportEntry("slow download", time.Since(start).Round(time.Second))
}

// artifacts creates a run and returns the path of its artifacts on the server.
func (t tenants) artifacts(ctx context.Context, e *externalProxy, url string) string {
	GinkgoHelper()
	ana := t.token(ctx, "ana")
	field := func(response, name string) string {
		GinkgoHelper()
		_, after, found := strings.Cut(response, `"`+name+`": "`)
		Expect(found).To(BeTrue(), response)
		value, _, _ := strings.Cut(after, `"`)
		return value
	}
	response, err := e.send(ctx, call{method: http.MethodPost, url: url + createPath, body: fmt.Sprintf(`{"name": %q}`, uniqueName("weights")), token: ana, workspace: t.team})
	Expect(err).NotTo(HaveOccurred())
	response, err = e.send(ctx, call{
		method: http.MethodPost, url: url + "/api/2.0/mlflow/runs/create", body: fmt.Sprintf(`{"experiment_id": %q}`, field(response, "experiment_id")), token: ana, workspace: t.team,
	})
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimPrefix(field(response, "artifact_uri"), "mlflow-artifacts:/")
}

// serve creates a model in a new namespace. Its runtime publishes models and requires tokens.
func (t *tenants) serve(ctx context.Context) {
	GinkgoHelper()
	name, tag, _ := strings.Cut(images.KubeRBACProxyImage, ":")
	kubectl(ctx, "-n", operatorNamespace, "create", "configmap", "model-serving-config",
		fmt.Sprintf("--from-literal=config.yaml=authProxy: {mode: always, rbacImage: {name: %s, tag: %q}}", name, tag))
	kubectl(ctx, "annotate", "clusterservingruntime", "mlserver-1.x", "enable-route=true", "enable-auth=true")
	t.models = newServedNamespace(ctx)
	kubectl(ctx, t.models.in("create", "rolebinding", "ana", "--clusterrole=edit", "--serviceaccount="+t.team+":ana")...)
	t.models.applySample(ctx, "samples/modelmesh_inferenceservice.yaml")
	kubectl(ctx, t.models.in("wait", "inferenceservice/digits-isvc", "--for=condition=Ready", fmt.Sprint("--timeout=", podTimeout))...)
}

func (t tenants) expectModel(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	request := modelMeshExamples()[0].request
	ana := call{method: http.MethodPost, url: url, token: t.token(ctx, "ana"), body: request}
	e.expect(ctx, []exchange{
		{ana, "200 "},
		{call{method: http.MethodPost, url: url, body: request}, "401 "},
		{call{method: http.MethodPost, url: url, body: request, token: "not-a-token"}, "401 "},
		{call{method: http.MethodPost, url: url, body: request, token: t.token(ctx, "eve")}, "403 "},
	})
	Expect(e.send(ctx, ana)).To(SatisfyAll(ContainSubstring("digits-isvc__isvc-"), ContainSubstring(`"data": [0]`)))
}

func (t tenants) expectRegistry(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	ana, name := t.token(ctx, "ana"), uniqueName("model")
	e.expect(ctx, []exchange{
		{call{method: http.MethodPost, url: url, body: fmt.Sprintf(`{"name": %q, "customProperties": {}}`, name), token: ana}, "201 "},
		{call{url: url, token: ana}, "200 "},
		{call{url: url}, "401 "},
		{call{url: url, token: "not-a-token"}, "401 "},
		{call{url: url, token: t.token(ctx, "eve")}, "403 "},
	})
	Expect(e.send(ctx, call{method: http.MethodGet, url: url, token: ana})).To(ContainSubstring(name))
}

// expectCatalog expects that only users of the cluster read the catalog.
func (t tenants) expectCatalog(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	e.expect(ctx, []exchange{
		{call{url: url}, "401 "},
		{call{url: url, token: "not-a-token"}, "401 "},
		{call{url: url, token: t.token(ctx, "eve")}, "200 "},
	})
}

// uniqueName returns a name with the prefix that no other call returns.
func uniqueName(prefix string) string { return fmt.Sprintf("%s-%d", prefix, time.Now().UnixNano()) }
