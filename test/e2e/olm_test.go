//go:build e2e

package e2e_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	// kept is a namespace of users.
	kept = "kept"
	// registryPath is the path at which the API server proxies requests to the models of the registry.
	registryPath = "/api/v1/namespaces/" + kept + "/services/http:" + sample + ":8080/proxy" + models

	olmCertificate = "odh-platform-operator-controller-manager-service-cert"

	unfinishedRegistry = `{"apiVersion": "modelregistry.opendatahub.io/v1beta1", "kind": "ModelRegistry", "metadata": {"name": "bad"}, "spec": {"rest": {}}}`
	noDatabase         = "required one of `postgres` or `mysql` database"
	secondCatalog      = `{"apiVersion": "aihub.opendatahub.io/v1alpha1", "kind": "Catalog", "metadata": {"name": "other"}, "spec": {}}`
	emptyAppWrapper    = `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "empty"}, "spec": {"components": []}}`
)

// OLM installs, upgrades and removes the artifacts of `make release` as docs/olm.md describes. At first the cluster serves
// neither the APIs of OpenShift nor those of monitoring.
var _ = Describe("OLM", Ordered, func() {
	var o *olmCluster

	BeforeAll(func(ctx SpecContext) { o = newOLM(ctx) }, NodeTimeout(specTimeout))

	AfterEach(func(ctx SpecContext) { o.describeFailure(ctx) }, NodeTimeout(time.Minute))

	It("installs the bundle of a release from its catalog", func(ctx SpecContext) {
		o.page.Read(ctx)
		begin := time.Now()
		o.succeeds(ctx, operatorNamespace, csvName("0.2.0"))
		AddReportEntry("from the Subscription to the running operator", time.Since(begin).Round(time.Second))
		o.runsPacked(ctx, "0.2.0")

		By("reading the package through the aggregated API of OLM")
		Expect(o.kubectl(ctx, "-n", olmNamespace, "get", "packagemanifest", "odh-platform-operator", "-o", "jsonpath={.status.channels[*].currentCSV}")).
			To(Equal(csvName("0.2.0")))

		By("checking the settings of the Subscription")
		o.expectNoRay(ctx)
	}, SpecTimeout(specTimeout))

	It("has the webhooks of the operator called, with a certificate of OLM", func(ctx SpecContext) {
		o.kubectl(ctx, "create", "namespace", kept)
		o.refusesInvalid(ctx)

		By("checking the order of webhooks that Kueue relies on")
		for _, name := range []string{"mappwrapper", "mraycluster"} {
			configurations := o.kubectl(ctx, "get", "mutatingwebhookconfigurations", "-o",
				`jsonpath={range .items[*]}{.metadata.name} {.webhooks[*].name}{"\n"}{end}`)
			found := false
			for line := range strings.Lines(configurations) {
				if strings.Contains(line, name) {
					found = true
					Expect(line < "kueue-mutating-webhook-configuration").To(BeTrue(), line)
				}
			}
			Expect(found).To(BeTrue(), "%s in %s", name, configurations)
		}

		By("creating the examples of the CSV")
		var examples []json.RawMessage
		csv := o.csv(ctx, "0.2.0")
		Expect(json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples)).To(Succeed())
		Expect(examples).To(HaveLen(len(csv.Spec.CustomResourceDefinitions.Owned)))
		for _, example := range examples {
			_, err := o.Kubectl(ctx, string(example), "-n", kept, "create", "--dry-run=server", "--validate=strict", "-f", "-")
			Expect(err).NotTo(HaveOccurred(), string(example))
		}

		By("verifying the certificate as Prometheus does")
		o.expectCertificate(ctx)
	}, SpecTimeout(specTimeout))

	It("upgrades to the next version while servers run on", func(ctx SpecContext) {
		o.kubectl(ctx, "-n", kept, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		o.kubectl(ctx, "apply", "-f", filepath.Join(checkout, "config", "samples", "mlflow_minimal.yaml"))
		o.available(ctx)
		_, err := o.Kubectl(ctx, `{"name": "credit-risk"}`, "create", "--raw", registryPath, "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		before := o.operands(ctx)
		Expect(before).To(SatisfyAll(ContainSubstring(sample), ContainSubstring("mlflow"), Not(ContainSubstring("controller-manager"))))

		o.buildVersion(ctx, "0.3.0")
		stop := o.asks(ctx)
		o.offer(ctx, subscription, "0.3.0")
		o.succeeds(ctx, operatorNamespace, csvName("0.3.0"))
		Expect(o.csv(ctx, "0.3.0").Spec.Replaces).To(Equal(csvName("0.2.0")))
		o.runsPacked(ctx, "0.3.0")
		o.waitDeleted(ctx, "csv/"+csvName("0.2.0"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "-n", kept, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", sample, "-o", "jsonpath={.spec}")
		}, podTimeout).Should(ContainSubstring("grpc"), "the conversion adds it")
		o.refuses(ctx, unfinishedRegistry, noDatabase)
		o.repairs(ctx, kept)
		responses, err := stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(responses).To(BeNumerically(">", 10))
		AddReportEntry("answers of the registry during the upgrade", responses)
		Expect(o.operands(ctx)).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("leaves custom resources and their servers when the operator is uninstalled", func(ctx SpecContext) {
		before, pods := o.remainingObjects(ctx, kept), o.operands(ctx)
		stop := o.asks(ctx)
		o.kubectl(ctx, "-n", operatorNamespace, "delete", "subscription/odh-platform-operator", "csv/"+csvName("0.3.0"))
		Eventually(ctx, o.leftOver, podTimeout).Should(BeEmpty())
		Expect(o.kubectl(ctx, "get", "mlflow", "mlflow", "-o", "name")).NotTo(BeEmpty())
		Expect(o.remainingObjects(ctx, kept)).To(Equal(before))
		_, err := stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(o.operands(ctx)).To(Equal(pods))
	}, SpecTimeout(specTimeout))

	// The servers do not become ready: they require certificates, a proxy and the OpenSSL of OpenShift.
	It("installs the bundle again, with the APIs of OpenShift, and adopts the remaining objects", func(ctx SpecContext) {
		config, err := o.Config()
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.InstallPlatform(ctx, config, cluster.OpenShift)).To(Succeed())
		// OLM discovers the APIs of OpenShift only at startup.
		o.kubectl(ctx, "-n", olmNamespace, "rollout", "restart", "deployment/olm-operator", "deployment/catalog-operator")
		o.olmReady(ctx)
		o.serveStoredVersion(ctx)
		o.offer(ctx, subscription, "0.3.0")
		o.succeeds(ctx, operatorNamespace, csvName("0.3.0"))
		o.runsPacked(ctx, "0.3.0")
		o.repairs(ctx, kept)

		By("checking the objects that a bundle cannot contain")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "get", "consoleyamlsamples,servicemonitors,prometheusrules", "-n", operatorNamespace, "-o", "name")
		}, podTimeout).Should(SatisfyAll(
			ContainSubstring("consoleyamlsample.console.openshift.io/odh-platform-operator-mlflow-remote"),
			ContainSubstring("servicemonitor.monitoring.coreos.com/odh-platform-operator-metrics"),
			ContainSubstring("prometheusrule.monitoring.coreos.com/odh-platform-operator")))
	}, SpecTimeout(specTimeout))
})

// available waits until the ModelRegistry and the MLflow are Available.
func (o *olmCluster) available(ctx context.Context) {
	GinkgoHelper()
	o.kubectl(ctx, "-n", kept, "wait", "modelregistry/"+sample, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
	o.kubectl(ctx, "wait", "mlflow/mlflow", "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
}

func (o *olmCluster) waitDeleted(ctx context.Context, object string) {
	GinkgoHelper()
	o.kubectl(ctx, "-n", operatorNamespace, "wait", object, "--for=delete", fmt.Sprint("--timeout=", podTimeout))
}

// expectCertificate expects that the certificate of OLM is valid for the name and certificate that the manager writes into
// its ServiceMonitor, that the CRD trusts that CA, and that the manager has not created its own.
func (o *olmCluster) expectCertificate(ctx context.Context) {
	GinkgoHelper()
	// OLM may execute its InstallPlan twice, which removes the CA from the CRD until OLM injects it again.
	Eventually(ctx, func(g Gomega) {
		secret := o.expectTrusted(ctx, g)
		trusted, err := o.Kubectl(ctx, "", "get", "crd", "modelregistries.modelregistry.opendatahub.io", "-o", "jsonpath={.spec.conversion.webhook.clientConfig.caBundle}")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(base64.StdEncoding.DecodeString(trusted)).To(Equal(secret["olmCAKey"]))
	}, podTimeout).Should(Succeed())
	Expect(o.kubectl(ctx, "-n", operatorNamespace, "get", "secrets", "-o", "name")).NotTo(ContainSubstring("odh-platform-operator-webhook-cert"))
}

// expectNoRay expects that the setting of the page disables the component.
func (r *release) expectNoRay(ctx context.Context) {
	GinkgoHelper()
	Expect(r.kubectl(ctx, "-n", operatorNamespace, "get", managerDeployment, "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="ENABLE_RAYCLUSTER")].value}`)).To(Equal("false"))
}

// expectTrusted expects that clients that trust the certificate of the webhook Service accept it for the name of that Service, and returns
// its Secret.
func (r *release) expectTrusted(ctx context.Context, g Gomega) map[string][]byte {
	var secret struct{ Data map[string][]byte }
	text, err := r.Kubectl(ctx, "", "-n", operatorNamespace, "get", "secret", olmCertificate, "-o", "json")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal([]byte(text), &secret)).To(Succeed())
	pool := x509.NewCertPool()
	g.Expect(pool.AppendCertsFromPEM(secret.Data["tls.crt"])).To(BeTrue())
	block, _ := pem.Decode(secret.Data["tls.crt"])
	g.Expect(block).NotTo(BeNil())
	certificate, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = certificate.Verify(x509.VerifyOptions{Roots: pool, DNSName: strings.TrimSuffix(olmCertificate, "-cert") + "." + operatorNamespace + ".svc"})
	g.Expect(err).NotTo(HaveOccurred())
	return secret.Data
}
