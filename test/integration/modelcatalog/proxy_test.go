package modelcatalog_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// proxyVariables returns the proxy variables of the server as NAME=value.
func (env *controlPlane) proxyVariables(ctx context.Context, namespace string) []string {
	d := deployment(namespace, "model-catalog")
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return []string{err.Error()}
	}
	found := []string{}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		if strings.HasSuffix(v.Name, "_PROXY") {
			found = append(found, v.Name+"="+v.Value)
		}
	}
	return found
}

var _ = Describe("The egress proxy of the server", func() {
	It("is the proxy of the cluster on OpenShift, unless the Catalog sets another one or none [modelregistry-116]", func(ctx SpecContext) {
		env := onOpenShift
		ns := env.namespace(ctx)
		clusterProxy := framework.Unstructured(capability.OpenShiftProxy, "", "cluster")
		setStatus := func(ctx context.Context, status map[string]any) {
			GinkgoHelper()
			env.Get(ctx, clusterProxy)
			clusterProxy.Object["status"] = status
			Expect(env.Admin.Status().Update(ctx, clusterProxy)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { setStatus(ctx, map[string]any{}) }, NodeTimeout(specTimeout))
		setStatus(ctx, map[string]any{"httpsProxy": "http://cluster:3128", "noProxy": ".svc"})
		waitForVariables := func(want ...string) {
			GinkgoHelper()
			Eventually(env.proxyVariables).WithArguments(ctx, ns).WithContext(ctx).WithTimeout(waitTimeout).Should(HaveExactElements(want))
		}

		By("using the proxy of the cluster")
		c := env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) { // mode is the legacy name of authProxy.mode
			s.Proxy = &aihubv1alpha1.CatalogProxy{Mode: server.Enabled}
		}))
		waitForVariables("HTTPS_PROXY=http://cluster:3128", "NO_PROXY=.svc")
		setStatus(ctx, map[string]any{"httpsProxy": "http://cluster:3129"})
		waitForVariables("HTTPS_PROXY=http://cluster:3129")

		By("setting a proxy in the Catalog")
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{"proxy": map[string]any{"httpProxy": "http://mine:8080"}}})
		waitForVariables("HTTP_PROXY=http://mine:8080")

		By("setting no proxy")
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{"proxy": map[string]any{"httpProxy": nil, "mode": nil}}})
		waitForVariables()
		env.waitAvailable(ctx, c)
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	DescribeTable("is validated [modelregistry-120]", func(ctx SpecContext, field, value, message string) {
		c := catalog(registries)
		invalid := framework.Unstructured(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), c.Namespace, c.Name)
		invalid.Object["spec"] = map[string]any{"proxy": map[string]any{field: value}}
		err := onKubernetes.Admin.Create(ctx, invalid, client.DryRunAll)
		if message == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(And(ContainSubstring("spec.proxy."+field), ContainSubstring(message))))
	},
		Entry("a path", "httpProxy", "http://proxy:3128/path", "must be the address of a proxy without a path"),
		Entry("a space", "httpsProxy", "http://proxy 3128", "must be the address of a proxy without a path"),
		Entry("another scheme", "httpsProxy", "ftp://proxy:21", "must be the address of a proxy without a path"),
		Entry("only a host and a port", "httpProxy", "proxy:3128", ""),
		Entry("a user", "httpsProxy", "https://ana:p%40ss@proxy.example.com:3128/", ""),
		Entry("an IPv6 address", "httpsProxy", "http://[fd00::1]:3128", ""),
		Entry("an empty value", "httpProxy", "", ""),
		Entry("an unknown mode", "mode", "On", "Unsupported value"),
	)
})
