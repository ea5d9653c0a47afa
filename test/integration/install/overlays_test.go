package install_test

import (
	"context"
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const host = "gateway.apps.example.org"

// createGateway creates a Gateway in the namespace of the platform's Gateway, with the given addresses in its status.
func createGateway(ctx context.Context, name string, addresses ...any) {
	GinkgoHelper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"namespace": "openshift-ingress", "name": name},
		"spec": map[string]any{"gatewayClassName": "any", "listeners": []any{map[string]any{"name": "https", "port": int64(80), "protocol": "HTTP"}}},
	}}
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object))).To(Succeed()) }, NodeTimeout(specTimeout))
	if len(addresses) > 0 {
		Expect(unstructured.SetNestedSlice(object.Object, addresses, "status", "addresses")).To(Succeed())
		Expect(env.Admin.Status().Update(ctx, object)).To(Succeed())
	}
}

var _ = Describe("an overlay", func() {
	DescribeTable("is accepted by the API server, and the manager becomes ready with its arguments, environment and permissions",
		func(ctx SpecContext, overlay, namespace string, deploy ...string) {
			objects := renderOverlay(ctx, overlay)
			mustMake(ctx, deploy...)
			for _, object := range objects {
				Expect(live(ctx, object)).NotTo(BeNil(), "%s %s", object.GetKind(), object.GetName())
			}
			deployment := waitRolledOut(ctx, namespace)
			running := startManager(ctx, objects, deployment, map[string]string{"/etc/metrics-certs": certificateDir()})

			By("serving metrics with the mounted certificate")
			address, err := url.Parse(running.MetricsURL)
			Expect(err).NotTo(HaveOccurred())
			connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address.Host)
			Expect(err).NotTo(HaveOccurred())
			defer connection.Close()
			Expect(connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName).To(Equal("kube-apiserver"))

			By("calling the webhooks")
			var output string
			Eventually(func() (err error) {
				output, err = kubectlApply(ctx, namespace, sample("appwrapper_pod.yaml"))
				return err
			}).WithContext(ctx).Should(Succeed())
			Expect(output).NotTo(ContainSubstring("Warning"))
			mustKubectl(ctx, "-n", namespace, "delete", "appwrapper", "sample-pod", "--timeout=2m")
			running.Stop(ctx)

			By("removing all objects except data")
			mustMake(ctx, "undeploy", "OVERLAY="+overlay)
			mustMake(ctx, "uninstall")
			waitForUserDataOnly(ctx)
		},
		Entry("openshift", "openshift", "opendatahub", "deploy", "OVERLAY=openshift", "IMG="+image, SpecTimeout(specTimeout)),
		Entry("rhoai", "rhoai", "redhat-ods-applications", "deploy", "OVERLAY=rhoai", "IMG="+image, SpecTimeout(specTimeout)),
	)

	It("of a platform sets the URL from the address of its Gateway, and deletes objects of users only with FORCE=1", func(ctx SpecContext) {
		renderOverlay(ctx, "odh")
		createGateway(ctx, "bare")
		output, err := makeTarget(ctx, "deploy-to-platform", "PLATFORM=odh", "ODH_GATEWAY_NAME=bare")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("Gateway bare in namespace openshift-ingress has no address yet"))
		output, err = makeTarget(ctx, "deploy-to-platform", "PLATFORM=odh")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("Gateway data-science-gateway in namespace openshift-ingress cannot be read"))

		createGateway(ctx, "own", map[string]any{"type": "Hostname", "value": host}, map[string]any{"type": "Hostname", "value": "second.example.org"})
		mustMake(ctx, "deploy-to-platform", "PLATFORM=odh", "ODH_GATEWAY_NAME=own", "IMG="+image)
		container := waitRolledOut(ctx, namespace).Spec.Template.Spec.Containers[0]
		variables := map[string]string{}
		for _, variable := range container.Env {
			variables[variable.Name] = variable.Value
		}
		Expect(container.Image).To(Equal(image))
		Expect(variables).To(And(HaveKeyWithValue("MLFLOW_URL", "https://"+host), HaveKeyWithValue("MLFLOW_GATEWAY_NAME", "own"),
			HaveKeyWithValue("MLFLOW_GATEWAY_NAMESPACE", "openshift-ingress"), HaveKeyWithValue("GATEWAY_NAME", "data-science-gateway")))

		By("deleting objects of users only with FORCE=1")
		mustMake(ctx, "undeploy", "OVERLAY=odh")
		mustKubectl(ctx, "apply", "--server-side", "-f", "config/samples/mlflow_minimal.yaml")
		output, err = makeTarget(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("MLflow /mlflow"))
		mustKubectl(ctx, "get", "mlflow", "mlflow")
		mustMake(ctx, "uninstall", "FORCE=1")
		mustMake(ctx, "uninstall")
	}, SpecTimeout(specTimeout))
})

// certificateDir returns a folder with the certificate of the API server, instead of a mounted Secret of the service CA.
func certificateDir() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for from, to := range map[string]string{"apiserver.crt": "tls.crt", "apiserver.key": "tls.key"} {
		content, err := os.ReadFile(filepath.Join(env.Instance.Dir(), "certificates", from))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, to), content, 0o600)).To(Succeed())
	}
	return dir
}
