//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

//go:embed testdata/ray/tlsroute.yaml
var rayRoute string

const (
	// rayDomain is the domain of a listener with TLS passthrough.
	rayDomain = "ray.example.org"
	// slowJob prints for longer than 15 s, the default limit of Envoy for a response.
	slowJob = `python3 -uc "import time; [(print('line', i), time.sleep(4)) for i in range(6)]"`
)

// scriptPattern matches the URL of the script in the page of a dashboard.
var scriptPattern = regexp.MustCompile(`\./static/js/main\.[0-9a-f]+\.js`)

// startRay starts KubeRay and creates a RayCluster without workers in the namespace of the team. The certificate of its client port has a
// name in rayDomain.
func (t tenants) startRay(ctx context.Context) {
	GinkgoHelper()
	Expect(images.Ray(ctx, store)).To(Succeed())
	kubeRay := thirdPartyOperator{cluster.KubeRayOperator, "default", "kuberay-operator"}
	kubeRay.start(ctx)
	kubeRay.waitReady(ctx)
	kubectl(ctx, "-n", operatorNamespace, "create", "configmap", "codeflare-operator-config", "--from-literal=config.yaml=kuberay: {ingressDomain: "+rayDomain+"}")
	apply(ctx, t.team, readSample("raycluster.yaml", `requests: {cpu: "1", memory: 2Gi}`, "requests: {cpu: 200m, memory: 1Gi}",
		"replicas: 1\n      minReplicas: 1", "replicas: 0\n      minReplicas: 0"))
	kubectl(ctx, "-n", t.team, "wait", "raycluster/demo", "--for=condition=HeadPodReady", fmt.Sprint("--timeout=", podTimeout))
}

// expectDashboard expects that only users who may get pods reach a dashboard, including the script to which its page links.
func (t tenants) expectDashboard(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	ana := t.token(ctx, "ana")
	e.expect(ctx, []exchange{
		{call{url: url + "/", token: ana}, "200 "},
		{call{url: url + "/api/version", token: ana}, "200 "},
		{call{url: url + "/"}, "401 "},
		{call{url: url + "/", token: "not-a-token"}, "401 "},
		{call{url: url + "/", token: t.token(ctx, "eve")}, "403 "},
	})
	page, err := e.send(ctx, call{method: http.MethodGet, url: url + "/", token: ana})
	Expect(err).NotTo(HaveOccurred())
	asset := scriptPattern.FindString(page)
	Expect(asset).NotTo(BeEmpty(), page)
	Expect(e.send(ctx, call{method: http.MethodGet, url: url + strings.TrimPrefix(asset, "."), token: ana})).To(HavePrefix("200 "))
}

// expectLog submits a job and follows its log over a WebSocket, as `ray job logs --follow` does.
func (t tenants) expectLog(ctx context.Context, e *externalProxy, url string) {
	GinkgoHelper()
	ana := t.token(ctx, "ana")
	body, err := json.Marshal(map[string]string{"entrypoint": slowJob})
	Expect(err).NotTo(HaveOccurred())
	var submitted struct {
		ID string `json:"submission_id"`
	}
	Eventually(ctx, func(ctx context.Context) error {
		response, err := e.send(ctx, call{method: http.MethodPost, url: url + "/api/jobs/", token: ana, body: string(body)})
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(strings.TrimPrefix(response, "200 ")), &submitted)
	}, podTimeout).Should(Succeed())

	tail := url + "/api/jobs/" + submitted.ID + "/logs/tail"
	_, err = e.listen(ctx, call{url: tail})
	Expect(err).To(MatchError(ContainSubstring("401")))
	start := time.Now()
	Expect(e.listen(ctx, call{url: tail, token: ana})).To(SatisfyAll(ContainSubstring("line 0"), ContainSubstring("line 5")))
	Expect(time.Since(start)).To(BeNumerically(">", 15*time.Second), "the log ended before the limit of Envoy")
}

// expectRayClient runs a task through the client port over TLS, from the namespace of the other team.
func (t tenants) expectRayClient(ctx context.Context, e *externalProxy) {
	GinkgoHelper()
	host := "rayclient-demo-" + t.team + "." + rayDomain
	apply(ctx, t.team, os.Expand(rayRoute, func(string) string { return host }))
	demo := &unstructured.Unstructured{}
	demo.SetGroupVersionKind(raycluster.GVK)
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: t.team, Name: "demo"}, demo)).To(Succeed())
	caSecret := (&rayDemo{namespace: t.team}).secret(ctx, raycluster.View(demo.Object).Names().CASecret)
	Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.other, Name: "authority"}, Data: caSecret.Data})).To(Succeed())
	apply(ctx, t.other, strings.Replace(rayFile("client.yaml"), "spec:\n", fmt.Sprintf("spec:\n  hostAliases: [{ip: %s, hostnames: [%s, x%s]}]\n", e.address, host, host), 1))
	waitPodReady(ctx, t.other, "client")
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return runPython(ctx, t.other, "client", "main", "client.py", host+":443")
	}, podTimeout).Should(Equal("42"))
	Expect(runPython(ctx, t.other, "client", "main", "handshake.py", host+":443", "with")).To(Equal("talks"))
	Expect(runPython(ctx, t.other, "client", "main", "handshake.py", host+":443", "without")).To(BeElementOf("closes", "refuses"))
	Expect(runPython(ctx, t.other, "client", "main", "handshake.py", "x"+host+":443", "with")).To(BeElementOf("closes", "refuses"), "another name")
}
