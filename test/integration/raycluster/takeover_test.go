package raycluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// foreign writes like the CodeFlare operator: a forced server-side apply with its field manager.
func foreign(ctx context.Context, u *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	o := &unstructured.Unstructured{Object: content}
	if o.GetKind() != "ClusterRoleBinding" {
		o.SetNamespace(u.GetNamespace())
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: u.GetName(), UID: u.GetUID(), Controller: new(true)}})
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[raycluster.LabelClusterName] = u.GetName()
	o.SetLabels(labels)
	Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(raycluster.FieldOwner), client.ForceOwnership)).To(Succeed())
	return o
}

// originalName returns the name that the CodeFlare operator gives an object: with a hash if the cluster has the version annotation.
func originalName(u *unstructured.Unstructured, base string) string {
	if _, hashed := u.GetAnnotations()["ray.openshift.ai/version"]; !hashed {
		return base
	}
	sum := sha256.Sum256([]byte("codeflare-raycluster-controller" + base))
	return base + "-" + hex.EncodeToString(sum[:])[:8]
}

// object returns an object with a kind, a name and more fields.
func object(apiVersion, kind, name string, more map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range more {
		out[key] = value
	}
	return out
}

// createLegacyChildren creates the children of a cluster as the CodeFlare operator wrote them.
func createLegacyChildren(ctx context.Context, u *unstructured.Unstructured, cookie string) {
	GinkgoHelper()
	name := u.GetName()
	serviceAccount := originalName(u, name+"-oauth-proxy")
	foreign(ctx, u, object("v1", "Secret", originalName(u, name+"-oauth-config"), map[string]any{"stringData": map[string]any{"cookie_secret": cookie}}))
	account := object("v1", "ServiceAccount", serviceAccount, nil)
	account["metadata"].(map[string]any)["annotations"] = map[string]any{
		"serviceaccounts.openshift.io/oauth-redirectreference.first": `{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":"ray-dashboard-` + name + `"}}`,
	}
	foreign(ctx, u, account)
	foreign(ctx, u, object("route.openshift.io/v1", "Route", "ray-dashboard-"+name, map[string]any{"spec": map[string]any{
		"to": map[string]any{"kind": "Service", "name": originalName(u, name+"-oauth")}, "port": map[string]any{"targetPort": "oauth-proxy"},
		"tls": map[string]any{"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
	}}))
	b := object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", originalName(u, name+"-"+u.GetNamespace()+"-auth"), map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": serviceAccount, "namespace": u.GetNamespace()}},
	})
	b["metadata"].(map[string]any)["labels"] = map[string]any{raycluster.LabelClusterNamespace: u.GetNamespace()}
	foreign(ctx, u, b)
}

var _ = Describe("A take-over from the CodeFlare operator", Serial, func() {
	It("keeps desired objects, deletes obsolete ones, and changes no pod template [R8] [R9] [R28]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		ns := env.Namespace(ctx, "takeover")
		finalized := func(u *unstructured.Unstructured) { u.SetFinalizers([]string{raycluster.Finalizer}) }
		legacy := create(ctx, rayCluster(ns, "legacy", finalized, injected))
		renamed := create(ctx, rayCluster(ns, "renamed", finalized, hashed, injected))
		suspended := create(ctx, rayCluster(ns, "suspended", finalized, hashed, injected, set(true, "spec", "suspend")))
		cookie := base64.StdEncoding.EncodeToString([]byte("twenty bytes of sha1"))
		for _, u := range []*unstructured.Unstructured{legacy, renamed, suspended} {
			createLegacyChildren(ctx, u, cookie)
		}
		By("renaming the objects of a running cluster with legacy names")
		oldService, oldPolicy, oldBinding := "renamed-oauth", "renamed-head", "renamed-"+ns+"-auth"
		foreign(ctx, renamed, object("v1", "Service", oldService, map[string]any{"spec": map[string]any{
			"ports": []any{map[string]any{"name": "oauth-proxy", "port": int64(443), "protocol": "TCP", "targetPort": "oauth-proxy"}}}}))
		foreign(ctx, renamed, object("networking.k8s.io/v1", "NetworkPolicy", oldPolicy, map[string]any{"spec": map[string]any{"podSelector": map[string]any{}}}))
		stale := object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", oldBinding, map[string]any{
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"}})
		stale["metadata"].(map[string]any)["labels"] = map[string]any{raycluster.LabelClusterNamespace: ns}
		foreign(ctx, renamed, stale)

		By("adopting the objects")
		start := env.AuditPosition()
		manager.Restart(ctx)
		for _, u := range []*unstructured.Unstructured{legacy, renamed} {
			before := u.DeepCopy()
			waitSecured(ctx, u)
			env.WaitExists(ctx, proxyObjects(u)...)
			s := &corev1.Secret{ObjectMeta: inNamespace(u, names(u).CookieSecret)}
			env.Get(ctx, s)
			Expect(string(s.Data[raycluster.KeyCookie])).To(HaveLen(44), "owners of clusters of the same name know the other one")
			Expect(env.WaitForEvent(ctx, u, "CookieKeyReplaced", "")).To(ContainSubstring("delete the pod of the head"))
			Expect(s.Labels).To(HaveKeyWithValue("platform.opendatahub.io/component", "raycluster"))
			env.Get(ctx, u)
			Expect(u.Object["spec"]).To(Equal(before.Object["spec"]), "no pod is recreated")
			Expect(u.GetAnnotations()).To(Equal(before.GetAnnotations()), "the names stay")
		}
		env.WaitDeleted(ctx, &corev1.Service{ObjectMeta: inNamespace(renamed, oldService)},
			&networkingv1.NetworkPolicy{ObjectMeta: inNamespace(renamed, oldPolicy)},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: oldBinding}},
			binding(suspended), route(suspended, names(suspended).Dashboard))
		env.WaitFor(ctx, suspended, func(g Gomega) { g.Expect(suspended.GetFinalizers()).To(BeEmpty()) })
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().WithoutReviews().WithoutLeases().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns })
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))

	It("deletes only legacy webhooks whose Service does not exist", func(ctx SpecContext) {
		withoutService := &admissionv1.ServiceReference{Namespace: operatorNamespace, Name: "codeflare-operator-webhook-service", Path: new("/mutate")}
		otherService := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "other-webhook"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}}}
		Expect(env.Admin.Create(ctx, otherService)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, otherService)).To(Succeed()) }, NodeTimeout(specTimeout))
		configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "codeflare-operator-mutating-webhook-configuration"}}
		env.Get(ctx, configuration)
		entry := func(name string, service *admissionv1.ServiceReference) admissionv1.MutatingWebhook {
			return admissionv1.MutatingWebhook{Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{Service: service}, FailurePolicy: new(admissionv1.Ignore),
				Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Connect},
					Rule: admissionv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"none"}}}}}
		}
		configuration.Webhooks = append(configuration.Webhooks, entry("mappwrapper.kb.io", withoutService),
			entry("other.example.com", &admissionv1.ServiceReference{Namespace: operatorNamespace, Name: otherService.Name}))
		Expect(env.Admin.Update(ctx, configuration)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { env.DisableWebhooks(ctx) }, NodeTimeout(specTimeout))
		manager.Restart(ctx)
		env.WaitFor(ctx, configuration, func(g Gomega) {
			g.Expect(configuration.Webhooks).To(HaveLen(1))
			g.Expect(configuration.Webhooks[0].Name).To(Equal("other.example.com"))
		})
	}, NodeTimeout(specTimeout))
})
