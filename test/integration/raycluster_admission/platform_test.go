package raycluster_admission_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

const trustedNetworkAnnotation = "odh.ray.io/secure-trusted-network"

// installPlatformKubeRay installs a webhook that responds like the KubeRay of the platform on OpenShift, and returns a function that removes it.
func installPlatformKubeRay(ctx context.Context) (uninstall func()) {
	GinkgoHelper()
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": map[string]any{}},
		{"op": "add", "path": "/metadata/annotations/odh.ray.io~1secure-trusted-network", "value": "true"},
		{"op": "add", "path": "/spec/headGroupSpec/enableIngress", "value": false},
	})
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		object := metav1.PartialObjectMetadata{}
		_ = json.Unmarshal(review.Request.Object.Raw, &object)
		response := patch
		if object.Annotations != nil { // skip the operation that adds the map of annotations
			var operations []json.RawMessage
			_ = json.Unmarshal(patch, &operations)
			response, _ = json.Marshal(operations[1:])
		}
		patchType := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: response, PatchType: &patchType}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	DeferCleanup(server.Close)
	none := admissionregistrationv1.SideEffectClassNone
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: capability.PlatformKubeRayConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mraycluster.kb.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL + "/mutate-ray-io-v1-raycluster"),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"ray.io"}, APIVersions: []string{"v1"}, Resources: []string{"rayclusters"}},
			}},
		}},
	}
	Expect(env.Admin.Create(ctx, configuration)).To(Succeed())
	uninstall = func() {
		Expect(client.IgnoreNotFound(env.Admin.Delete(context.Background(), configuration))).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) {
		uninstall()
		waitForWebhooks(ctx)
	}, NodeTimeout(specTimeout))
	return uninstall
}

// waitForNoInjection waits until the webhook of the manager injects nothing into new clusters.
func waitForNoInjection(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		rayCluster := newRayCluster(metav1.NamespaceDefault, minimal)
		g.Expect(env.Admin.Create(ctx, rayCluster, client.DryRunAll)).To(Succeed())
		g.Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head"}))
		g.Expect(rayCluster.GetAnnotations()).To(HaveKeyWithValue(trustedNetworkAnnotation, "true"))
	}).WithContext(ctx).Should(Succeed())
}

// childrenOf returns child objects of a cluster with only their names.
func childrenOf(rayCluster *unstructured.Unstructured) []client.Object {
	n, objectMeta := namesOf(rayCluster), func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: name}
	}
	dashboard := &unstructured.Unstructured{}
	dashboard.SetGroupVersionKind(capability.Route)
	dashboard.SetNamespace(rayCluster.GetNamespace())
	dashboard.SetName(n.Dashboard)
	return []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: objectMeta(n.HeadPolicy)}, &networkingv1.NetworkPolicy{ObjectMeta: objectMeta(n.WorkerPolicy)},
		&corev1.Secret{ObjectMeta: objectMeta(n.CookieSecret)}, &corev1.Secret{ObjectMeta: objectMeta(n.CASecret)}, &corev1.Secret{ObjectMeta: objectMeta(n.HeadTLS)},
		&corev1.ServiceAccount{ObjectMeta: objectMeta(n.ServiceAccount)}, &corev1.Service{ObjectMeta: objectMeta(n.ProxyService)}, dashboard,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}},
	}
}

var _ = Describe("The KubeRay of the platform", Serial, func() {
	It("disables injection and child objects while it is installed, and both are restored afterwards", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "platform")
		stored := createRayCluster(ctx, newRayCluster(namespace, minimal, setField("mine", append(headPodPath, "serviceAccountName")...)))
		children := childrenOf(stored)
		env.WaitExists(ctx, children...)

		By("creating its webhook")
		uninstall := installPlatformKubeRay(ctx)
		waitForNoInjection(ctx)
		env.WaitFor(ctx, stored, func(g Gomega) { // without an update by the user
			g.Expect(containerNames(headPodSpec(stored).Containers)).To(Equal([]string{"ray-head"}))
			g.Expect(headPodSpec(stored).InitContainers).To(BeEmpty())
			g.Expect(headPodSpec(stored).Volumes).To(BeEmpty())
			g.Expect(headPodSpec(stored).ServiceAccountName).To(Equal("mine"))
			g.Expect(workerPodSpec(stored, 1).InitContainers).To(BeEmpty())
			g.Expect(stored.GetFinalizers()).To(BeEmpty())
		})
		env.WaitDeleted(ctx, children...)
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			var reasons []string
			for _, e := range list.Items {
				reasons = append(reasons, e.Reason)
			}
			g.Expect(reasons).To(ContainElement("SecuredByKubeRay"))
		}).WithContext(ctx).Should(Succeed())

		By("setting the finalizer and fields as the KubeRay of the platform does")
		Expect(updateRayCluster(ctx, stored, func(rayCluster *unstructured.Unstructured) {
			rayCluster.SetFinalizers([]string{"ray.io/authentication-resources"})
		})).To(Succeed())
		created := createRayCluster(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("fresh") },
			setField(true, "spec", "headGroupSpec", "enableIngress")))
		Expect(containerNames(headPodSpec(created).Containers)).To(Equal([]string{"ray-head"}))
		Expect(updateRayCluster(ctx, stored, func(rayCluster *unstructured.Unstructured) { rayCluster.SetFinalizers(nil) })).To(Succeed())

		By("deleting the KubeRay of the platform")
		uninstall()
		waitForWebhooks(ctx)
		env.WaitExists(ctx, childrenOf(created)[:2]...)
		Eventually(func(g Gomega) {
			g.Expect(updateRayCluster(ctx, stored, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
			g.Expect(containerNames(headPodSpec(stored).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		}).WithContext(ctx).Should(Succeed())
		env.WaitExists(ctx, children...)
	}, NodeTimeout(specTimeout))

	It("is not detected by annotations and finalizers that users set", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "platform")
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, withAnnotation(trustedNetworkAnnotation, "true"),
			func(rayCluster *unstructured.Unstructured) {
				rayCluster.SetFinalizers([]string{"ray.io/authentication-resources"})
			}))
		Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		env.WaitExists(ctx, childrenOf(rayCluster)...)
		Expect(updateRayCluster(ctx, rayCluster, func(rayCluster *unstructured.Unstructured) { rayCluster.SetFinalizers(nil) })).To(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The OAuth server of OpenShift", Serial, func() {
	It("can be missing, as with an external OIDC provider: dashboards then get kube-rbac-proxy until the OAuth server is available again", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "oidc")
		stored := createRayCluster(ctx, newRayCluster(namespace, minimal))
		Expect(containerNames(headPodSpec(stored).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		env.WaitExists(ctx, childrenOf(stored)...)

		By("removing the API group user.openshift.io")
		restore := env.DeleteCRD(ctx, "groups.user.openshift.io")
		n := namesOf(stored)
		waitForSidecar := func(rayCluster *unstructured.Unstructured, name string) {
			GinkgoHelper()
			env.WaitFor(ctx, rayCluster, func(g Gomega) { // without an update by the user
				g.Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head", name}))
			})
		}
		waitForSidecar(stored, "kube-rbac-proxy")
		created := createRayCluster(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("fresh") }))
		waitForSidecar(created, "kube-rbac-proxy")
		for _, rayCluster := range []*unstructured.Unstructured{stored, created} {
			n := namesOf(rayCluster)
			children := slices.DeleteFunc(childrenOf(rayCluster), func(o client.Object) bool { return o.GetName() == n.CookieSecret })
			env.WaitExists(ctx, append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyConfig}})...)
		}
		env.WaitDeleted(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.CookieSecret}})
		certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyTLS}}
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(certificate), certificate))).To(BeTrue(), "the service CA of OpenShift issues the certificate")
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyService}}
		env.Get(ctx, service)
		Expect(service.Annotations).To(HaveKeyWithValue(oauthproxy.ServingCertAnnotation, n.ProxyTLS))

		By("restoring the API group user.openshift.io")
		restore(ctx)
		waitForSidecar(stored, "oauth-proxy")
		waitForSidecar(created, "oauth-proxy")
		env.WaitExists(ctx, childrenOf(stored)...)
	}, NodeTimeout(specTimeout))
})
