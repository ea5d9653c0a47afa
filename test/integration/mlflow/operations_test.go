package mlflow_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// copyCRD returns a CRD that can be created again after its deletion.
func copyCRD(ctx context.Context, name string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	env.Get(ctx, crd)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: crd.Annotations}, Spec: crd.Spec,
	}
}

func servicePort(port int32) []corev1.ServicePort { return []corev1.ServicePort{{Port: port}} }

var _ = Describe("The manager", func() {
	It("keeps running during an outage of the API server, and continues afterwards", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		pid := manager.Process.PID
		DeferCleanup(env.Instance.Resume, cluster.APIServer, NodeTimeout(specTimeout))
		Expect(env.Instance.Process(cluster.APIServer).Kill(ctx)).To(Succeed())
		Consistently(manager.Process.Running).WithContext(ctx).WithTimeout(5 * time.Second).Should(BeTrue())
		Expect(env.Instance.Resume(ctx, cluster.APIServer)).To(Succeed())
		Expect(env.Admin.Delete(ctx, networkPolicy("mlflow"))).To(Succeed())
		Eventually(func() error {
			policy := networkPolicy("mlflow")
			return env.Admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
		waitAvailable(ctx, m)
		Expect(manager.Process.PID).To(Equal(pid))
	}, NodeTimeout(2*specTimeout))

	It("serves its metrics only to users with permission to read them [mlflow-80] [appwrapper-49]", func(ctx SpecContext) {
		createReady(ctx, newMLflow())
		Expect(scrapeStatus(ctx, "")).To(Equal(http.StatusUnauthorized))
		scraper := serviceAccount("scraper")
		create(ctx, scraper)
		request := &authenticationv1.TokenRequest{}
		Expect(env.Admin.SubResource("token").Create(ctx, scraper, request)).To(Succeed())
		Expect(scrapeStatus(ctx, request.Status.Token)).To(Equal(http.StatusForbidden))
		create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlflow-operator-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "scraper"}},
		})
		Eventually(func() int { return scrapeStatus(ctx, request.Status.Token) }).WithContext(ctx).Should(Equal(http.StatusOK))
		text := scrapeBody(ctx, request.Status.Token)
		Expect(text).To(ContainSubstring(`controller_runtime_reconcile_total{controller="appwrapper"`))
		Expect(text).To(ContainSubstring(`odh_platform_apply_skipped_total{component="mlflow",kind="Deployment"}`))
		Expect(text).To(ContainSubstring(`odh_platform_conditions{component="mlflow",condition="Available",kind="MLflow",status="True"} 1`))
	}, NodeTimeout(specTimeout))

	DescribeTable("exits with code 1 and names the invalid setting",
		func(ctx SpecContext, want string, args ...string) {
			output := runUntilExit1(ctx, manager.Kubeconfig, append([]string{"--health-probe-bind-address=0", "--metrics-bind-address=0"}, args...)...)
			Expect(output).To(ContainSubstring(want))
		},
		Entry("unknown flag", "--nonsense", "--nonsense"),
		Entry("unknown component", "nonsense", "--components=mlflow,nonsense"),
		Entry("missing configuration file", "/does/not/exist", "--config=/does/not/exist"),
		Entry("invalid namespace name", "NOT_A_NAME", "--namespace=NOT_A_NAME"),
	)
})

var _ = Describe("A manager that cannot start", func() {
	It("exits with code 1 and names the missing permission", func(ctx SpecContext) {
		unprivileged := serviceAccount("unprivileged")
		create(ctx, unprivileged)
		request := &authenticationv1.TokenRequest{}
		Expect(env.Admin.SubResource("token").Create(ctx, unprivileged, request)).To(Succeed())
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(env.Instance.WriteTokenKubeconfig(kubeconfig, request.Status.Token, namespace)).To(Succeed())
		// With more components, any of them could be the first to fail.
		output := runUntilExit1(ctx, kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0", "--components=mlflow")
		Expect(output).To(ContainSubstring("mlflows"))
		Expect(output).To(ContainSubstring("system:serviceaccount:opendatahub:unprivileged"))
	}, NodeTimeout(specTimeout))

	It("exits with code 1 and names the address that is in use", func(ctx SpecContext) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		output := runUntilExit1(ctx, manager.Kubeconfig, "--health-probe-bind-address="+listener.Addr().String(), "--metrics-bind-address=0")
		Expect(output).To(ContainSubstring("--health-probe-bind-address"))
		Expect(output).To(ContainSubstring(listener.Addr().String()))
	}, NodeTimeout(specTimeout))
})

// runUntilExit1 runs the manager until it exits with code 1, and returns its output.
func runUntilExit1(ctx context.Context, kubeconfig string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, manager.Process.Path, append([]string{"run", "--namespace=opendatahub", "--leader-elect=false"}, args...)...)
	command.Env = []string{"KUBECONFIG=" + kubeconfig, "MLFLOW_IMAGE=" + image}
	output, err := command.CombinedOutput()
	Expect(err).To(MatchError("exit status 1"), "%s", output)
	return string(output)
}

// scrapeStatus returns the status code of the metrics endpoint.
func scrapeStatus(ctx context.Context, token string) int {
	GinkgoHelper()
	response := metrics(ctx, token)
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// scrapeBody returns the body of the metrics endpoint.
func scrapeBody(ctx context.Context, token string) string {
	GinkgoHelper()
	response := metrics(ctx, token)
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return string(text)
}

func metrics(ctx context.Context, token string) *http.Response {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, manager.MetricsURL+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager creates the certificate at its start, with its own CA.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := insecure.Do(request)
	Expect(err).NotTo(HaveOccurred())
	return response
}
