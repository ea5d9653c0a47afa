package raycluster_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// getRouteTarget returns the name of the Service of a Route.
func getRouteTarget(ctx context.Context, r *unstructured.Unstructured) (service string, err error) {
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
		return "", err
	}
	service, _, err = unstructured.NestedString(r.Object, "spec", "to", "name")
	return service, err
}

var _ = Describe("The settings of Ray", Serial, func() {
	It("take effect without a restart: objects of disabled features are deleted, and recreated afterwards [R16] [R24] [R28]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "settings")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion))
		objects := proxyObjects(rayCluster)
		env.WaitExists(ctx, objects...)
		dashboard := objects[3].(*unstructured.Unstructured)
		foreign := &corev1.Secret{ObjectMeta: objectMeta(rayCluster, "theirs")}
		foreign.Labels = map[string]string{raycluster.LabelClusterName: "demo"}
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())

		By("disabling OAuth")
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false}")
		env.WaitDeleted(ctx, objects...) // a dashboard without authentication allows remote code execution
		env.WaitFor(ctx, rayCluster, func(g Gomega) { g.Expect(rayCluster.GetFinalizers()).To(BeEmpty()) })
		env.Get(ctx, foreign)

		By("setting an invalid value")
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: perhaps}")
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(operatorNamespace))).To(Succeed())
			g.Expect(slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Reason == "ConfigurationRefused" && strings.Contains(e.Note, `kuberay.rayDashboardOAuthEnabled "perhaps": must be true or false`)
			})).To(BeTrue(), "the error is reported")
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectAbsent(ctx, objects[0])

		By("enabling OAuth")
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: true}")
		env.WaitExists(ctx, proxyObjects(rayCluster)...)
		Eventually(getRouteTarget).WithContext(ctx).WithArguments(ctx, dashboard).WithTimeout(waitTimeout).Should(Equal(namesOf(rayCluster).ProxyService))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))

	It("do not block the deletion of a cluster that was secured while OAuth was enabled [R6] [R7]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "endoff")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, withInjectedFields))
		b := bindingOf(rayCluster)
		env.WaitExists(ctx, b)
		waitSecured(ctx, rayCluster)
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false}")
		Expect(env.Admin.Delete(ctx, rayCluster)).To(Succeed())
		env.WaitDeleted(ctx, b, rayCluster)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The policies of a RayCluster", Serial, func() {
	getAdmittedNamespaces := func(ctx context.Context, rayCluster *unstructured.Unstructured) string {
		p := policyOf(rayCluster, namesOf(rayCluster).HeadPolicy)
		if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		return admittedNamespaces(p)
	}

	It("admit KubeRay from its own namespace, but no pod that only has its labels [R2] [R18]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "kuberay")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "impostor", Labels: map[string]string{"app.kubernetes.io/component": "kuberay-operator"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}}}
		Expect(env.Admin.Create(ctx, pod)).To(Succeed())
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion))
		waitSecured(ctx, rayCluster)
		Expect(getAdmittedNamespaces(ctx, rayCluster)).NotTo(Or(ContainSubstring(ns), ContainSubstring("ray-system"), ContainSubstring("opendatahub")), "KubeRay is not installed")
		Expect(env.WaitForEvent(ctx, rayCluster, "KubeRayNotFound", "")).To(ContainSubstring("raycluster.kubeRayNamespaces"))

		By("installing KubeRay with Helm in another namespace")
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kuberay-operator"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kuberay-operator"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "kuberay-operator", Namespace: "default"}}}
		Expect(env.Admin.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, binding))).To(Succeed()) }, NodeTimeout(specTimeout))
		Eventually(getAdmittedNamespaces).WithContext(ctx).WithArguments(ctx, rayCluster).WithTimeout(waitTimeout).Should(ContainSubstring("default"))

		By("installing KubeRay in the namespace of the manager")
		kubeRay := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "kuberay-operator"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: pod.Spec},
		}}
		Expect(env.Admin.Create(ctx, kubeRay)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, kubeRay))).To(Succeed()) }, NodeTimeout(specTimeout))
		Eventually(getAdmittedNamespaces).WithContext(ctx).WithArguments(ctx, rayCluster).WithTimeout(waitTimeout).
			Should(And(ContainSubstring("default "+operatorNamespace), Not(ContainSubstring(ns))))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))
})

// admittedNamespaces returns the namespaces that a NetworkPolicy admits, as JSON.
func admittedNamespaces(policy *networkingv1.NetworkPolicy) string {
	var namespaces []string
	for _, rule := range policy.Spec.Ingress {
		for _, from := range rule.From {
			if from.NamespaceSelector != nil {
				for _, expression := range from.NamespaceSelector.MatchExpressions {
					namespaces = append(namespaces, strings.Join(expression.Values, " "))
				}
			}
		}
	}
	text, err := json.Marshal(namespaces)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
