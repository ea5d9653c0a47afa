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

const trusted = "odh.ray.io/secure-trusted-network"

// platformKubeRay installs a webhook that responds like the platform's KubeRay on OpenShift, and returns a function that removes it.
func platformKubeRay(ctx context.Context) (remove func()) {
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
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: response, PatchType: &kind}
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
	remove = func() {
		Expect(client.IgnoreNotFound(env.Admin.Delete(context.Background(), configuration))).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) {
		remove()
		waitForWebhooks(ctx)
	}, NodeTimeout(specTimeout))
	return remove
}

// steppedAside waits until the webhook injects nothing into new clusters.
func steppedAside(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		u := rayCluster(metav1.NamespaceDefault, minimal)
		g.Expect(env.Admin.Create(ctx, u, client.DryRunAll)).To(Succeed())
		g.Expect(containerNames(head(u).Containers)).To(Equal([]string{"ray-head"}))
		g.Expect(u.GetAnnotations()).To(HaveKeyWithValue(trusted, "true"))
	}).WithContext(ctx).Should(Succeed())
}

// childrenOf returns the children of a cluster by their names.
func childrenOf(u *unstructured.Unstructured) []client.Object {
	n, at := namesOf(u), func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: name} }
	dashboard := &unstructured.Unstructured{}
	dashboard.SetGroupVersionKind(capability.Route)
	dashboard.SetNamespace(u.GetNamespace())
	dashboard.SetName(n.Dashboard)
	return []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: at(n.HeadPolicy)}, &networkingv1.NetworkPolicy{ObjectMeta: at(n.WorkerPolicy)},
		&corev1.Secret{ObjectMeta: at(n.CookieSecret)}, &corev1.Secret{ObjectMeta: at(n.CASecret)}, &corev1.Secret{ObjectMeta: at(n.HeadTLS)},
		&corev1.ServiceAccount{ObjectMeta: at(n.ServiceAccount)}, &corev1.Service{ObjectMeta: at(n.ProxyService)}, dashboard,
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}},
	}
}

func exist(ctx context.Context, objects []client.Object) {
	GinkgoHelper()
	env.WaitExists(ctx, objects...)
}

var _ = Describe("The KubeRay of the platform", Serial, func() {
	It("disables injection and child objects while it is installed, and both are restored afterwards", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "platform")
		stored := expectAdmitted(ctx, rayCluster(namespace, minimal, set("mine", append(headPod, "serviceAccountName")...)))
		around := childrenOf(stored)
		exist(ctx, around)

		By("creating its webhook")
		remove := platformKubeRay(ctx)
		steppedAside(ctx)
		env.WaitFor(ctx, stored, func(g Gomega) { // without a change by the user
			g.Expect(containerNames(head(stored).Containers)).To(Equal([]string{"ray-head"}))
			g.Expect(head(stored).InitContainers).To(BeEmpty())
			g.Expect(head(stored).Volumes).To(BeEmpty())
			g.Expect(head(stored).ServiceAccountName).To(Equal("mine"))
			g.Expect(group(stored, 1).InitContainers).To(BeEmpty())
			g.Expect(stored.GetFinalizers()).To(BeEmpty())
		})
		env.WaitDeleted(ctx, around...)
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			var reasons []string
			for _, e := range list.Items {
				reasons = append(reasons, e.Reason)
			}
			g.Expect(reasons).To(ContainElement("SecuredByKubeRay"))
		}).WithContext(ctx).Should(Succeed())

		By("setting the finalizer and fields as KubeRay of the platform does")
		Expect(update(ctx, stored, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"ray.io/authentication-resources"}) })).To(Succeed())
		fresh := expectAdmitted(ctx, rayCluster(namespace, minimal, func(u *unstructured.Unstructured) { u.SetName("fresh") },
			set(true, "spec", "headGroupSpec", "enableIngress")))
		Expect(containerNames(head(fresh).Containers)).To(Equal([]string{"ray-head"}))
		Expect(update(ctx, stored, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })).To(Succeed())

		By("deleting KubeRay of the platform")
		remove()
		waitForWebhooks(ctx)
		exist(ctx, childrenOf(fresh)[:2])
		Eventually(func(g Gomega) {
			g.Expect(update(ctx, stored, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
			g.Expect(containerNames(head(stored).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		}).WithContext(ctx).Should(Succeed())
		exist(ctx, around)
	}, NodeTimeout(specTimeout))

	It("is not detected by objects of users, nor by the webhook of another KubeRay", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "platform")
		u := expectAdmitted(ctx, rayCluster(namespace, minimal, annotated(trusted, "true"),
			func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"ray.io/authentication-resources"}) }))
		Expect(containerNames(head(u).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		exist(ctx, childrenOf(u))
		Expect(update(ctx, u, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })).To(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The OAuth server of OpenShift", Serial, func() {
	It("can be missing, as with an external OIDC provider: dashboards get kube-rbac-proxy, and the proxy of OpenShift again once it is back", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "oidc")
		stored := expectAdmitted(ctx, rayCluster(namespace, minimal))
		Expect(containerNames(head(stored).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		exist(ctx, childrenOf(stored))

		By("removing the API of users")
		restore := env.DeleteCRD(ctx, "groups.user.openshift.io")
		n := namesOf(stored)
		hasSidecar := func(u *unstructured.Unstructured, name string) {
			GinkgoHelper()
			env.WaitFor(ctx, u, func(g Gomega) { // without a change by the user
				g.Expect(containerNames(head(u).Containers)).To(Equal([]string{"ray-head", name}))
			})
		}
		hasSidecar(stored, "kube-rbac-proxy")
		fresh := expectAdmitted(ctx, rayCluster(namespace, minimal, func(u *unstructured.Unstructured) { u.SetName("fresh") }))
		hasSidecar(fresh, "kube-rbac-proxy")
		for _, u := range []*unstructured.Unstructured{stored, fresh} {
			n := namesOf(u)
			around := slices.DeleteFunc(childrenOf(u), func(o client.Object) bool { return o.GetName() == n.CookieSecret })
			exist(ctx, append(around, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyConfig}}))
		}
		env.WaitDeleted(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.CookieSecret}})
		certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyTLS}}
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(certificate), certificate))).To(BeTrue(), "OpenShift issues it")
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.ProxyService}}
		env.Get(ctx, service)
		Expect(service.Annotations).To(HaveKeyWithValue(oauthproxy.ServingCertAnnotation, n.ProxyTLS))

		By("restoring the API of users")
		restore(ctx)
		hasSidecar(stored, "oauth-proxy")
		hasSidecar(fresh, "oauth-proxy")
		exist(ctx, childrenOf(stored))
	}, NodeTimeout(specTimeout))
})
