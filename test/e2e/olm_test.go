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
	// userNamespace is a namespace of users, not of the operator.
	userNamespace = "kept"
	// registryPath is the path at which the API server proxies requests to the models of the registry.
	registryPath = "/api/v1/namespaces/" + userNamespace + "/services/http:" + sample + ":8080/proxy" + models

	// olmCertificate is the Secret that OLM creates for the webhook Service.
	olmCertificate = "odh-platform-operator-controller-manager-service-cert"

	registryWithoutDatabase = `{"apiVersion": "modelregistry.opendatahub.io/v1beta1", "kind": "ModelRegistry", "metadata": {"name": "bad"}, "spec": {"rest": {}}}`
	noDatabaseMessage       = "required one of `postgres` or `mysql` database"
	secondCatalog           = `{"apiVersion": "aihub.opendatahub.io/v1alpha1", "kind": "Catalog", "metadata": {"name": "other"}, "spec": {}}`
	emptyAppWrapper         = `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "empty"}, "spec": {"components": []}}`
)

// OLM installs, upgrades and removes the artifacts of `make release` as docs/olm.md describes. The cluster serves the APIs of
// OpenShift and of monitoring only after the uninstallation.
var _ = Describe("OLM", Ordered, func() {
	var o *olmCluster

	BeforeAll(func(ctx SpecContext) { o = newOLM(ctx) }, NodeTimeout(specTimeout))

	AfterEach(func(ctx SpecContext) { o.describeFailure(ctx) }, NodeTimeout(time.Minute))

	It("installs the bundle of a release from its catalog", func(ctx SpecContext) {
		o.page.Read(ctx)
		start := time.Now()
		o.waitSucceeded(ctx, operatorNamespace, csvName("0.2.0"))
		AddReportEntry("from the Subscription to the running operator", time.Since(start).Round(time.Second))
		o.expectImage(ctx, "0.2.0")

		By("reading the package through the aggregated API of OLM")
		Expect(o.kubectl(ctx, "-n", olmNamespace, "get", "packagemanifest", "odh-platform-operator", "-o", "jsonpath={.status.channels[*].currentCSV}")).
			To(Equal(csvName("0.2.0")))

		By("checking the settings of the Subscription")
		o.expectNoRay(ctx)
	}, SpecTimeout(specTimeout))

	It("calls the webhooks of the operator, whose certificate OLM issues", func(ctx SpecContext) {
		o.kubectl(ctx, "create", "namespace", userNamespace)
		o.expectInvalidRejected(ctx)

		By("checking that the webhooks precede those of Kueue")
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
			_, err := o.Kubectl(ctx, string(example), "-n", userNamespace, "create", "--dry-run=server", "--validate=strict", "-f", "-")
			Expect(err).NotTo(HaveOccurred(), string(example))
		}

		By("verifying the certificate as Prometheus does")
		o.expectCertificate(ctx)
	}, SpecTimeout(specTimeout))

	It("upgrades to the next version while servers keep running", func(ctx SpecContext) {
		o.kubectl(ctx, "-n", userNamespace, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		o.kubectl(ctx, "apply", "-f", filepath.Join(checkout, "config", "samples", "mlflow_minimal.yaml"))
		o.waitAvailable(ctx)
		_, err := o.Kubectl(ctx, `{"name": "credit-risk"}`, "create", "--raw", registryPath, "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		before := o.listOperands(ctx)
		Expect(before).To(SatisfyAll(ContainSubstring(sample), ContainSubstring("mlflow"), Not(ContainSubstring("controller-manager"))))

		o.buildVersion(ctx, "0.3.0")
		stop := o.startRequests(ctx)
		o.applyVersion(ctx, subscription, "0.3.0")
		o.waitSucceeded(ctx, operatorNamespace, csvName("0.3.0"))
		Expect(o.csv(ctx, "0.3.0").Spec.Replaces).To(Equal(csvName("0.2.0")))
		o.expectImage(ctx, "0.3.0")
		o.waitDeleted(ctx, "csv/"+csvName("0.2.0"))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "-n", userNamespace, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", sample, "-o", "jsonpath={.spec}")
		}, podTimeout).Should(ContainSubstring("grpc"), "the conversion webhook adds grpc")
		o.expectRejected(ctx, registryWithoutDatabase, noDatabaseMessage)
		o.expectRepair(ctx, userNamespace)
		responses, err := stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(responses).To(BeNumerically(">", 10))
		AddReportEntry("responses of the registry during the upgrade", responses)
		Expect(o.listOperands(ctx)).To(Equal(before))
	}, SpecTimeout(specTimeout))

	It("keeps custom resources and their servers when the operator is uninstalled", func(ctx SpecContext) {
		before, pods := o.remainingObjects(ctx, userNamespace), o.listOperands(ctx)
		stop := o.startRequests(ctx)
		o.kubectl(ctx, "-n", operatorNamespace, "delete", "subscription/odh-platform-operator", "csv/"+csvName("0.3.0"))
		Eventually(ctx, o.listOLMObjects, podTimeout).Should(BeEmpty())
		Expect(o.kubectl(ctx, "get", "mlflow", "mlflow", "-o", "name")).NotTo(BeEmpty())
		Expect(o.remainingObjects(ctx, userNamespace)).To(Equal(before))
		_, err := stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(o.listOperands(ctx)).To(Equal(pods))
	}, SpecTimeout(specTimeout))

	// The servers do not become ready: they require certificates, a proxy and the OpenSSL of OpenShift.
	It("installs the bundle again, with the APIs of OpenShift, and adopts the remaining objects", func(ctx SpecContext) {
		config, err := o.Config()
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.InstallPlatform(ctx, config, cluster.OpenShift)).To(Succeed())
		// OLM discovers the APIs of OpenShift only at startup.
		o.kubectl(ctx, "-n", olmNamespace, "rollout", "restart", "deployment/olm-operator", "deployment/catalog-operator")
		o.waitOLMReady(ctx)
		o.serveStoredVersion(ctx)
		o.applyVersion(ctx, subscription, "0.3.0")
		o.waitSucceeded(ctx, operatorNamespace, csvName("0.3.0"))
		o.expectImage(ctx, "0.3.0")
		o.expectRepair(ctx, userNamespace)

		By("checking the objects that a bundle cannot contain")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return o.Kubectl(ctx, "", "get", "consoleyamlsamples,servicemonitors,prometheusrules", "-n", operatorNamespace, "-o", "name")
		}, podTimeout).Should(SatisfyAll(
			ContainSubstring("consoleyamlsample.console.openshift.io/odh-platform-operator-mlflow-remote"),
			ContainSubstring("servicemonitor.monitoring.coreos.com/odh-platform-operator-metrics"),
			ContainSubstring("prometheusrule.monitoring.coreos.com/odh-platform-operator")))
	}, SpecTimeout(specTimeout))
})

// waitAvailable waits until the ModelRegistry and the MLflow are Available.
func (o *olmCluster) waitAvailable(ctx context.Context) {
	GinkgoHelper()
	o.kubectl(ctx, "-n", userNamespace, "wait", "modelregistry/"+sample, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
	o.kubectl(ctx, "wait", "mlflow/mlflow", "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
}

func (o *olmCluster) waitDeleted(ctx context.Context, object string) {
	GinkgoHelper()
	o.kubectl(ctx, "-n", operatorNamespace, "wait", object, "--for=delete", fmt.Sprint("--timeout=", podTimeout))
}

// expectCertificate expects that the certificate of OLM is valid for the name of the webhook Service, that the CRD of registries trusts the
// CA of OLM, and that the manager has created no certificate.
func (o *olmCluster) expectCertificate(ctx context.Context) {
	GinkgoHelper()
	// OLM may execute its InstallPlan twice. The second execution removes the CA from the CRD until OLM injects it again.
	Eventually(ctx, func(g Gomega) {
		secret := o.expectTrusted(ctx, g)
		trusted, err := o.Kubectl(ctx, "", "get", "crd", "modelregistries.modelregistry.opendatahub.io", "-o", "jsonpath={.spec.conversion.webhook.clientConfig.caBundle}")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(base64.StdEncoding.DecodeString(trusted)).To(Equal(secret["olmCAKey"]))
	}, podTimeout).Should(Succeed())
	Expect(o.kubectl(ctx, "-n", operatorNamespace, "get", "secrets", "-o", "name")).NotTo(ContainSubstring("odh-platform-operator-webhook-cert"))
}

// expectNoRay expects that the Deployment has the setting from docs/olm.md that disables the component raycluster.
func (r *release) expectNoRay(ctx context.Context) {
	GinkgoHelper()
	Expect(r.kubectl(ctx, "-n", operatorNamespace, "get", managerDeployment, "-o",
		`jsonpath={.spec.template.spec.containers[0].env[?(@.name=="ENABLE_RAYCLUSTER")].value}`)).To(Equal("false"))
}

// expectTrusted expects that a client which trusts the certificate of the webhook Service accepts it for the name of the Service, and
// returns the data of its Secret.
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
