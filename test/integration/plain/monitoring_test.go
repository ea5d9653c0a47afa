package plain_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// installMonitoring installs config/prometheus, and returns the token of the ServiceAccount that is allowed to read metrics.
func installMonitoring(ctx context.Context) string {
	GinkgoHelper()
	objects, err := operator.Kustomize("config/prometheus")
	Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		create(ctx, o)
	}
	return string(waitForSecretKey(ctx, "odh-platform-operator-metrics-reader", "token"))
}

// waitForSecretKey waits until a Secret has a key, and returns its value.
func waitForSecretKey(ctx context.Context, name, key string) []byte {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: objectMeta(name)}
	env.WaitFor(ctx, secret, func(g Gomega) { g.Expect(secret.Data[key]).NotTo(BeEmpty()) })
	return secret.Data[key]
}

// requestMetricsPort sends a GET request to the metrics port of a manager, and verifies its certificate with the CA of the manager.
func requestMetricsPort(ctx context.Context, from *framework.Manager, path, token string) (status int, text string) {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(waitForSecretKey(ctx, "odh-platform-operator-webhook-cert", "ca.crt"))).To(BeTrue())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "odh-platform-operator-metrics", MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.MetricsURL+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode, string(body)
}

var (
	rowPattern    = regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| (gauge|counter|histogram) \\| ([^|]*) \\|")
	typePattern   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
	samplePattern = regexp.MustCompile(`(?m)^([a-z_0-9]+)(?:\{(.*)\})? \S+$`)
	labelPattern  = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
)

type metric struct {
	kind   string
	labels []string
}

// parseDocumentedMetrics returns the metrics in a section of docs/metrics.md.
func parseDocumentedMetrics(section string) map[string]metric {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(page), "\n## "+section+"\n")
	Expect(found).To(BeTrue(), section)
	text, _, _ := strings.Cut(rest, "\n## ")
	out := map[string]metric{}
	for _, r := range rowPattern.FindAllStringSubmatch(text, -1) {
		d := metric{kind: r[2]}
		if names := strings.ReplaceAll(r[3], "`", ""); names != "" {
			d.labels = strings.Split(names, ", ")
		}
		slices.Sort(d.labels)
		out[r[1]] = d
	}
	return out
}

// parseMetrics returns the metrics in a response.
func parseMetrics(text string) map[string]metric {
	out := map[string]metric{}
	for _, t := range typePattern.FindAllStringSubmatch(text, -1) {
		out[t[1]] = metric{kind: t[2]}
	}
	for _, s := range samplePattern.FindAllStringSubmatch(text, -1) {
		d, found := out[s[1]]
		if !found {
			continue // a series of a histogram
		}
		d.labels = nil
		for _, l := range labelPattern.FindAllStringSubmatch(s[2], -1) {
			d.labels = append(d.labels, l[1])
		}
		slices.Sort(d.labels)
		out[s[1]] = d
	}
	return out
}

// unavailableMetrics are documented, but require a leader election or a webhook request, which this suite does not have.
var unavailableMetrics = []string{"leader_election_master_status", "controller_runtime_webhook_latency_seconds"}

var _ = Describe("Monitoring", func() {
	// In test/e2e, Prometheus scrapes the metrics as the ServiceMonitor specifies.
	It("serves metrics as documented, to users with permission", func(ctx SpecContext) {
		createReady(ctx, newMLflow())
		token := installMonitoring(ctx)
		var text string
		Eventually(func() int {
			var status int
			status, text = requestMetricsPort(ctx, manager, "/metrics", token)
			return status
		}).WithContext(ctx).WithTimeout(specTimeout).Should(Equal(http.StatusOK))
		status, _ := requestMetricsPort(ctx, manager, "/metrics", "invalid")
		Expect(status).To(Equal(http.StatusUnauthorized))

		live, documented := parseMetrics(text), parseDocumentedMetrics("Metrics of the operator")
		for name, served := range live {
			if strings.HasPrefix(name, "odh_platform_") || strings.HasPrefix(name, "appwrapper_") {
				Expect(documented).To(HaveKeyWithValue(name, served))
			}
		}
		for _, name := range []string{
			"odh_platform_build_info", "odh_platform_component_enabled", "odh_platform_component_running", "odh_platform_component_failures_total",
			"odh_platform_api_served", "odh_platform_conditions", "odh_platform_apply_writes_total", "odh_platform_certificate_expiry_timestamp_seconds",
			"odh_platform_webhook_decisions_total", "odh_platform_mlflow_migrations_total", "odh_platform_modelmesh_clients",
		} {
			Expect(live).To(HaveKey(name))
		}
		for name, want := range parseDocumentedMetrics("Metrics of libraries") {
			if slices.Contains(unavailableMetrics, name) {
				continue
			}
			Expect(live).To(HaveKey(name))
			if want.kind != "histogram" {
				Expect(live[name]).To(Equal(want), name)
			}
		}
		Expect(text).To(ContainSubstring(`odh_platform_component_running{component="mlflow"} 1`))
		Expect(text).To(ContainSubstring(`odh_platform_api_served{group="monitoring.coreos.com",kind="ServiceMonitor",version="v1"} 1`))
		Expect(text).To(ContainSubstring(`odh_platform_mlflow_migrations_total{result="failed"} 0`))
	}, NodeTimeout(2*specTimeout))

	It("serves profiles to users with permission, if a flag enables them [M8]", Serial, func(ctx SpecContext) {
		token := installMonitoring(ctx)
		paths := []string{"/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1"}
		Eventually(func() int {
			status, _ := requestMetricsPort(ctx, manager, "/metrics", token)
			return status
		}).WithContext(ctx).WithTimeout(specTimeout).Should(Equal(http.StatusOK))
		for _, path := range paths {
			status, _ := requestMetricsPort(ctx, manager, path, token)
			Expect(status).To(Equal(http.StatusNotFound))
		}

		manager.StopTemporarily(ctx)
		options := managerOptions()
		options.Name, options.Args = "profiled", append(options.Args, "--pprof")
		profiled := env.StartManager(ctx, options)
		for _, path := range paths {
			status, _ := requestMetricsPort(ctx, profiled, path, "invalid")
			Expect(status).To(Equal(http.StatusUnauthorized))
			status, _ = requestMetricsPort(ctx, profiled, path, token)
			Expect(status).To(Equal(http.StatusForbidden), "reading metrics is another permission")
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "profiler"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/debug/pprof/*"}, Verbs: []string{"get"}}}}
		create(ctx, role)
		create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "profiler"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "odh-platform-operator-metrics-reader"}},
		})
		for _, path := range paths {
			var text string
			Eventually(func() (status int) {
				status, text = requestMetricsPort(ctx, profiled, path, token)
				return status
			}).WithContext(ctx).Should(Equal(http.StatusOK))
			Expect(text).To(Or(HavePrefix("\x1f\x8b"), HavePrefix("go 1.")), "a profile, or a trace")
		}
		profiled.Stop(ctx)
	}, NodeTimeout(specTimeout))

	It("provides dashboards as ConfigMaps with the label that the sidecar of Grafana selects", func(ctx SpecContext) {
		objects, err := operator.Kustomize("config/dashboards")
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(2))
		for _, o := range objects {
			o.SetNamespace(namespace)
			create(ctx, o)
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(o.GroupVersionKind())
			stored.SetNamespace(namespace)
			stored.SetName(o.GetName())
			env.Get(ctx, stored)
			Expect(stored.GetLabels()).To(HaveKeyWithValue("grafana_dashboard", "1"))
		}
	}, NodeTimeout(specTimeout))
})
