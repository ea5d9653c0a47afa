//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed testdata/catalog_source.yaml
var catalogSource string

// The catalog server in the test image uses no database. Therefore, test/registrytest/cmd/catalog is ready only while the database
// responds.
var _ = Describe("A Catalog", Ordered, func() {
	var namespace string
	in := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	waitAvailable := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, in("wait", "catalogs.aihub.opendatahub.io/catalog", "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))...)
	}
	// podOf returns the only pod of the server or of the database.
	podOf := func(ctx context.Context, name string) *corev1.Pod {
		GinkgoHelper()
		return waitSinglePod(ctx, namespace, client.MatchingLabels{"app.kubernetes.io/name": name})
	}
	request := func(ctx context.Context, account, path string) (string, error) {
		token := ""
		if account != "" {
			token = kubectl(ctx, in("create", "token", account)...)
		}
		return tryKubectl(ctx, "", in("exec", "client", "--", "python3", "-c", requestScript, http.MethodGet, "https://model-catalog."+namespace+".svc:8443"+path, token, "")...)
	}
	// getModels returns the response with the models of a source.
	getModels := func(ctx context.Context, source string) (string, error) {
		return request(ctx, "default", "/api/model_catalog/v1alpha1/models?source="+source)
	}

	BeforeAll(func(ctx SpecContext) {
		namespace = createRestrictedNamespace(ctx, "catalog")
		apply(ctx, namespace, catalogSource)
		kubectl(ctx, in("apply", "-f", filepath.Join(checkout, "config", "samples", "aihub_catalog.yaml"))...)
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, in("delete", "catalogs.aihub.opendatahub.io/catalog", "--timeout=60s")...)
		}, NodeTimeout(podTimeout))
		startPod(ctx, namespace, "client", map[string]string{})
		waitAvailable(ctx)
		authority := kubectl(ctx, in("get", "secret", "model-catalog-kube-rbac-proxy", "-o", `go-template={{index .data "ca.crt" | base64decode}}`)...)
		_, err := tryKubectl(ctx, authority, in("exec", "-i", "client", "--", "sh", "-c", "cat > /data/tls.crt")...)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(startTimeout))

	It("lists the models of its data image and of its sources to authenticated users only", func(ctx SpecContext) {
		Expect(request(ctx, "", "/")).To(HavePrefix("401\n"))
		Expect(request(ctx, "default", "/")).To(SatisfyAll(HavePrefix("200\n"), ContainSubstring("/shared-benchmark-data/figures.ndjson")))
		Expect(getModels(ctx, "redhat_ai_models")).To(SatisfyAll(HavePrefix("200\n"), ContainSubstring(`"name":"sentiment"`)))
		Expect(getModels(ctx, "team")).To(SatisfyAll(HavePrefix("200\n"), ContainSubstring(`"name":"digits"`)))
		kubectl(ctx, in("patch", "catalogs.aihub.opendatahub.io/catalog", "--type=merge", "-p", `{"spec": {"access": {"authenticated": "Disabled"}}}`)...)
		Eventually(ctx, getModels).WithArguments("team").Should(HavePrefix("403\n"))
		kubectl(ctx, in("patch", "catalogs.aihub.opendatahub.io/catalog", "--type=merge", "-p", `{"spec": {"access": null}}`)...)
		Eventually(ctx, getModels).WithArguments("team").Should(HavePrefix("200\n"))
	}, SpecTimeout(specTimeout))

	It("allows only the connections of its NetworkPolicies", func(ctx SpecContext) {
		for _, test := range []struct {
			pod  string
			port int
			want string
		}{{"model-catalog", 8443, "open"}, {"model-catalog", 8080, "closed"}, {"model-catalog-postgres", 5432, "closed"}} {
			Expect(runPython(ctx, namespace, "client", "main", "connect.py", podOf(ctx, test.pod).Status.PodIP, fmt.Sprint(test.port))).To(Equal(test.want), "%+v", test)
		}
	}, SpecTimeout(specTimeout))

	It("restarts its server when its database has lost its data, and serves changed sources", func(ctx SpecContext) {
		previous := podOf(ctx, "model-catalog").UID
		kubectl(ctx, in("delete", "pod", podOf(ctx, "model-catalog-postgres").Name, "--wait=false")...)
		Eventually(ctx, func(ctx context.Context) bool {
			server := podOf(ctx, "model-catalog")
			return server.UID != previous && !readySince(server).IsZero()
		}, podTimeout).Should(BeTrue(), "no new server became ready")
		waitAvailable(ctx)

		const otherModel = `{"data": {"team.yaml": "source: Team\nmodels: [{name: faces}]\n"}}`
		kubectl(ctx, in("patch", "configmap", "team-models", "--type=merge", "-p", otherModel)...)
		kubectl(ctx, in("annotate", "pod", podOf(ctx, "model-catalog").Name, "e2e/changed=true")...) // makes its kubelet update the volumes
		Eventually(ctx, getModels, podTimeout).WithArguments("team").Should(SatisfyAll(ContainSubstring(`"name":"faces"`), Not(ContainSubstring("digits"))))
	}, SpecTimeout(specTimeout))
})
