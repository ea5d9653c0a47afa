//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

var (
	//go:embed testdata/envoy_gateway.yaml
	envoyGatewayValues string
	//go:embed testdata/gateway.yaml
	gatewayObjects string
)

const (
	gatewayHost      = "ai.example.org"
	gatewayNamespace = "gateways"
	// envoyNamespace is the namespace of Envoy Gateway and of its proxies.
	envoyNamespace = "envoy-gateway-system"
	proxyPods      = "--selector=gateway.envoyproxy.io/owning-gateway-name=public"
)

// gatewaySettings are variables of the operator that publish all servers through the Gateway.
var gatewaySettings = []string{
	"EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=" + gatewayNamespace, "GATEWAY_DOMAIN=" + gatewayHost,
	"MLFLOW_GATEWAY_NAME=public", "MLFLOW_GATEWAY_NAMESPACE=" + gatewayNamespace, "MLFLOW_URL=https://" + gatewayHost,
}

// configure sets variables of the operator and waits for its rollout.
func configure(ctx context.Context, settings ...string) {
	GinkgoHelper()
	kubectl(ctx, append([]string{"-n", operatorNamespace, "set", "env", managerDeployment}, settings...)...)
	waitRollout(ctx, operatorNamespace, managerDeployment)
}

// startGateway installs Envoy Gateway with its chart, creates a Gateway, and returns its proxy after the Gateway is programmed.
func startGateway(ctx context.Context) *externalProxy {
	GinkgoHelper()
	controller, err := cluster.BuildPeer(ctx, cluster.EnvoyGateway, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Program(store, controller, "/usr/local/bin/envoy-gateway", images.EnvoyGatewayImage)).To(Succeed())
	Expect(images.Envoy(ctx, store)).To(Succeed())
	files, err := cluster.PeerDir(ctx, cluster.EnvoyGateway)
	Expect(err).NotTo(HaveOccurred())
	chart := filepath.Join(files, "charts", "gateway-helm")
	for _, crds := range []string{filepath.Join(gatewayAPI(ctx), "config", "crd", "standard"), filepath.Join(chart, "charts", "crds", "crds", "generated")} {
		kubectl(ctx, "apply", "--server-side", "-f", crds)
	}
	kubectl(ctx, "wait", "crd", "--all", "--for=condition=Established", fmt.Sprint("--timeout=", podTimeout))
	for _, namespace := range []string{envoyNamespace, gatewayNamespace} {
		kubectl(ctx, "create", "namespace", namespace)
	}
	_, err = tryKubectl(ctx, envoyGatewayManifests(ctx, chart), "-n", envoyNamespace, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())

	e := newExternalProxy(gatewayHost)
	e.createSecret(ctx, gatewayNamespace, "public-tls")
	apply(ctx, "", gatewayObjects)
	waitRollout(ctx, envoyNamespace, "deployment/envoy-gateway")
	kubectl(ctx, "-n", gatewayNamespace, "wait", "gateway/public", "--for=condition=Programmed", fmt.Sprint("--timeout=", podTimeout))
	e.address = kubectl(ctx, "-n", envoyNamespace, "get", "service", proxyPods, "-o", "jsonpath={.items[*].spec.clusterIP}")
	return e
}

// envoyMetrics returns the metrics of the proxy of the Gateway.
func envoyMetrics(ctx context.Context) (string, error) {
	pod, err := tryKubectl(ctx, "", "-n", envoyNamespace, "get", "pods", proxyPods, "-o", "jsonpath={.items[0].status.podIP}")
	if err != nil {
		return "", err
	}
	return (&externalProxy{address: pod}).get(ctx, "http://envoy:19001/stats/prometheus")
}

// gatewayAPI returns the folder of the module of the Gateway API, in the version that go.mod requires.
func gatewayAPI(ctx context.Context) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	command.Dir, command.Stderr = checkout, GinkgoWriter
	output, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(output))
}

// envoyGatewayManifests returns the manifests of the chart, whose values file is a template with variables.
func envoyGatewayManifests(ctx context.Context, chart string) string {
	GinkgoHelper()
	helm, err := cluster.BuildPeer(ctx, cluster.Helm, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	template, err := os.ReadFile(filepath.Join(chart, "values.tmpl.yaml"))
	Expect(err).NotTo(HaveOccurred())
	values := strings.NewReplacer("${GatewayImage}", images.EnvoyGatewayImage, "${GatewayImagePullPolicy}", "IfNotPresent").Replace(string(template))
	args := []string{
		"template", "eg", chart, "--namespace", envoyNamespace,
		"--set", "crds.enabled=false,global.images.envoyProxy.image=" + images.EnvoyImage,
	}
	for i, content := range []string{values, envoyGatewayValues} {
		file := filepath.Join(GinkgoT().TempDir(), fmt.Sprintf("values-%d.yaml", i))
		Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		args = append(args, "--values", file)
	}
	command := exec.CommandContext(ctx, helm, args...)
	command.Stderr = GinkgoWriter
	rendered, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	return string(rendered)
}

// printGateway prints the state of the Gateway after a failure.
func printGateway(ctx context.Context) {
	printIfFailed(ctx, tryKubectl, [][]string{
		{"get", "gateways,httproutes,tlsroutes,backendtlspolicies", "-A", "-o", "yaml"},
		{"-n", envoyNamespace, "logs", "deployment/envoy-gateway", "--tail=60"},
		{"-n", envoyNamespace, "logs", proxyPods, "-c", "envoy", "--tail=60"},
	})
}
