package raycluster_kuberay_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// installOpenShiftAPIs installs the CRDs of OpenShift, and deletes them after the spec.
func installOpenShiftAPIs(ctx context.Context) {
	GinkgoHelper()
	Expect(cluster.InstallSet(ctx, env.Config, cluster.OpenShiftAPI)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		var all apiextensionsv1.CustomResourceDefinitionList
		Expect(env.Admin.List(ctx, &all)).To(Succeed())
		for i := range all.Items {
			if strings.HasSuffix(all.Items[i].Spec.Group, ".openshift.io") {
				Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, &all.Items[i]))).To(Succeed())
				env.WaitDeleted(ctx, &all.Items[i]) // another spec may install it again
			}
		}
		waitForInjection(ctx, "", raycluster.InitCertificate)
	}, NodeTimeout(specTimeout))
}

var _ = Describe("A RayCluster with other settings", func() {
	It("is published by a Route with OAuth on OpenShift, whose status the operator does not change [raycluster-28]", func(ctx SpecContext) {
		installOpenShiftAPIs(ctx)
		changeSettings(ctx, strings.Replace(settings, "rayDashboardOAuthEnabled: false", "rayDashboardOAuthEnabled: true", 1), string(raycluster.AuthOAuth), raycluster.InitCertificate)
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "oauth")))
		Expect(containerNames(live, "containers")).To(Equal("ray-head,oauth-proxy"))
		waitForCertificates(ctx, live, 3)
		route := &unstructured.Unstructured{}
		route.SetGroupVersionKind(capability.Route)
		route.SetNamespace(live.GetNamespace())
		route.SetName("ray-dashboard-oauth")
		env.WaitFor(ctx, route, nil)
		host := "ray-dashboard-oauth-" + live.GetNamespace() + ".apps.example.org"
		env.Patch(ctx, route, map[string]any{"status": map[string]any{"ingress": []any{map[string]any{
			"host": host, "routerName": "default", "conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
		}}}}, "status")
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.Get(ctx, route)
		ingresses, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress")
		Expect(ingresses).To(HaveLen(1))
		Expect(ingresses[0].(map[string]any)["host"]).To(Equal(host), "the operator does not change the status of the router")
		Expect(env.Admin.Get(ctx, client.ObjectKey{Name: namesOf(live).ClusterRoleBinding}, &rbacv1.ClusterRoleBinding{})).To(Succeed())
		deleteCompletely(ctx, live)
		env.WaitDeleted(ctx, route)
	}, SpecTimeout(specTimeout))

	It("has a sidecar with a certificate on plain Kubernetes if OAuth is enabled", func(ctx SpecContext) {
		changeSettings(ctx, strings.Replace(settings, "rayDashboardOAuthEnabled: false", "rayDashboardOAuthEnabled: true", 1), string(raycluster.AuthProxy), raycluster.InitCertificate)
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "guarded")))
		Expect(containerNames(live, "containers")).To(Equal("ray-head,kube-rbac-proxy"))
		waitForCertificates(ctx, live, 3)
		eventually(ctx, func(g Gomega) {
			var secret corev1.Secret
			g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: live.GetNamespace(), Name: namesOf(live).ProxyTLS}, &secret)).To(Succeed())
			g.Expect(secret.Type).To(Equal(corev1.SecretTypeTLS))
		})
		deleteCompletely(ctx, live)
	}, SpecTimeout(specTimeout))

	It("has no certificates if mutual TLS is disabled", func(ctx SpecContext) {
		changeSettings(ctx, strings.Replace(settings, "mTLSEnabled: true", "mTLSEnabled: false", 1), "", "")
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "open")))
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		var secrets corev1.SecretList
		Expect(env.Admin.List(ctx, &secrets, client.InNamespace(live.GetNamespace()), client.MatchingLabels{raycluster.LabelClusterName: "open"})).To(Succeed())
		Expect(secrets.Items).To(BeEmpty())
		deleteCompletely(ctx, live)
	}, SpecTimeout(specTimeout))

	It("is unchanged after a restart of the manager, as is the ConfigMap of the CodeFlare operator [raycluster-29]", func(ctx SpecContext) {
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "kept")))
		waitForCertificates(ctx, live, 3)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.Get(ctx, live)
		version, ca := live.GetResourceVersion(), &corev1.Secret{}
		ca.SetNamespace(live.GetNamespace())
		ca.SetName(namesOf(live).CASecret)
		env.Get(ctx, ca)
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		writes := env.Since(start).ObjectWrites(manager.User)
		Expect(writes.Where(func(e entry) bool { return e.Namespace == live.GetNamespace() })).To(BeEmpty(), "%s", writes)
		before := ca.ResourceVersion
		env.Get(ctx, ca)
		env.Get(ctx, live)
		Expect(ca.ResourceVersion).To(Equal(before))
		Expect(live.GetResourceVersion()).To(Equal(version))
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: settingsName}}
		env.Get(ctx, config)
		Expect(config.Data).To(Equal(map[string]string{"config.yaml": settings}))
		waitForInjection(ctx, "", raycluster.InitCertificate)
	}, SpecTimeout(specTimeout))
})
