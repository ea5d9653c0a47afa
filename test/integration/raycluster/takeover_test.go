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

// applyLegacy applies a child object as the CodeFlare operator did: with its field manager, and with force.
func applyLegacy(ctx context.Context, rayCluster *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() != "ClusterRoleBinding" {
		object.SetNamespace(rayCluster.GetNamespace())
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: rayCluster.GetName(), UID: rayCluster.GetUID(), Controller: new(true)}})
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[raycluster.LabelClusterName] = rayCluster.GetName()
	object.SetLabels(labels)
	Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(raycluster.FieldOwner), client.ForceOwnership)).To(Succeed())
	return object
}

// legacyName returns the name that the CodeFlare operator gave an object. It ends with a hash if the cluster has the version annotation.
func legacyName(rayCluster *unstructured.Unstructured, base string) string {
	if _, hasVersion := rayCluster.GetAnnotations()["ray.openshift.ai/version"]; !hasVersion {
		return base
	}
	sum := sha256.Sum256([]byte("codeflare-raycluster-controller" + base))
	return base + "-" + hex.EncodeToString(sum[:])[:8]
}

// newObject returns the content of an object with a kind, a name and additional fields.
func newObject(apiVersion, kind, name string, fields map[string]any) map[string]any {
	content := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range fields {
		content[key] = value
	}
	return content
}

// createLegacyChildren creates the child objects of the proxy of a cluster as the CodeFlare operator did, except the Service.
func createLegacyChildren(ctx context.Context, rayCluster *unstructured.Unstructured, cookie string) {
	GinkgoHelper()
	name := rayCluster.GetName()
	serviceAccount := legacyName(rayCluster, name+"-oauth-proxy")
	applyLegacy(ctx, rayCluster, newObject("v1", "Secret", legacyName(rayCluster, name+"-oauth-config"), map[string]any{"stringData": map[string]any{"cookie_secret": cookie}}))
	account := newObject("v1", "ServiceAccount", serviceAccount, nil)
	account["metadata"].(map[string]any)["annotations"] = map[string]any{
		"serviceaccounts.openshift.io/oauth-redirectreference.first": `{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":"ray-dashboard-` + name + `"}}`,
	}
	applyLegacy(ctx, rayCluster, account)
	applyLegacy(ctx, rayCluster, newObject("route.openshift.io/v1", "Route", "ray-dashboard-"+name, map[string]any{"spec": map[string]any{
		"to": map[string]any{"kind": "Service", "name": legacyName(rayCluster, name+"-oauth")}, "port": map[string]any{"targetPort": "oauth-proxy"},
		"tls": map[string]any{"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
	}}))
	binding := newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", legacyName(rayCluster, name+"-"+rayCluster.GetNamespace()+"-auth"), map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": serviceAccount, "namespace": rayCluster.GetNamespace()}},
	})
	binding["metadata"].(map[string]any)["labels"] = map[string]any{raycluster.LabelClusterNamespace: rayCluster.GetNamespace()}
	applyLegacy(ctx, rayCluster, binding)
}

var _ = Describe("A take-over from the CodeFlare operator", Serial, func() {
	It("keeps desired objects, deletes obsolete ones, and changes no pod template [R8] [R9] [R28]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		ns := env.Namespace(ctx, "takeover")
		withFinalizer := func(rayCluster *unstructured.Unstructured) { rayCluster.SetFinalizers([]string{raycluster.Finalizer}) }
		legacy := create(ctx, newRayCluster(ns, "legacy", withFinalizer, withInjectedFields))
		renamed := create(ctx, newRayCluster(ns, "renamed", withFinalizer, withVersion, withInjectedFields))
		suspended := create(ctx, newRayCluster(ns, "suspended", withFinalizer, withVersion, withInjectedFields, setField(true, "spec", "suspend")))
		cookie := base64.StdEncoding.EncodeToString([]byte("twenty bytes of sha1"))
		for _, rayCluster := range []*unstructured.Unstructured{legacy, renamed, suspended} {
			createLegacyChildren(ctx, rayCluster, cookie)
		}
		By("adding objects with names without a hash to a cluster with the version annotation")
		serviceName, policyName, bindingName := "renamed-oauth", "renamed-head", "renamed-"+ns+"-auth"
		applyLegacy(ctx, renamed, newObject("v1", "Service", serviceName, map[string]any{"spec": map[string]any{
			"ports": []any{map[string]any{"name": "oauth-proxy", "port": int64(443), "protocol": "TCP", "targetPort": "oauth-proxy"}}}}))
		applyLegacy(ctx, renamed, newObject("networking.k8s.io/v1", "NetworkPolicy", policyName, map[string]any{"spec": map[string]any{"podSelector": map[string]any{}}}))
		legacyBinding := newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", bindingName, map[string]any{
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"}})
		legacyBinding["metadata"].(map[string]any)["labels"] = map[string]any{raycluster.LabelClusterNamespace: ns}
		applyLegacy(ctx, renamed, legacyBinding)

		By("adopting the objects")
		start := env.AuditPosition()
		manager.Restart(ctx)
		for _, rayCluster := range []*unstructured.Unstructured{legacy, renamed} {
			original := rayCluster.DeepCopy()
			waitSecured(ctx, rayCluster)
			env.WaitExists(ctx, proxyObjects(rayCluster)...)
			secret := &corev1.Secret{ObjectMeta: objectMeta(rayCluster, namesOf(rayCluster).CookieSecret)}
			env.Get(ctx, secret)
			Expect(string(secret.Data[raycluster.KeyCookie])).To(HaveLen(44), "the owners of clusters with the same name know the legacy key")
			Expect(env.WaitForEvent(ctx, rayCluster, "CookieKeyReplaced", "")).To(ContainSubstring("delete the pod of the head"))
			Expect(secret.Labels).To(HaveKeyWithValue("platform.opendatahub.io/component", "raycluster"))
			env.Get(ctx, rayCluster)
			Expect(rayCluster.Object["spec"]).To(Equal(original.Object["spec"]), "no pod is recreated")
			Expect(rayCluster.GetAnnotations()).To(Equal(original.GetAnnotations()), "the names do not change")
		}
		env.WaitDeleted(ctx, &corev1.Service{ObjectMeta: objectMeta(renamed, serviceName)},
			&networkingv1.NetworkPolicy{ObjectMeta: objectMeta(renamed, policyName)},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: bindingName}},
			bindingOf(suspended), routeOf(suspended, namesOf(suspended).Dashboard))
		env.WaitFor(ctx, suspended, func(g Gomega) { g.Expect(suspended.GetFinalizers()).To(BeEmpty()) })
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().WithoutReviews().WithoutLeases().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns })
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))

	It("deletes only legacy webhooks whose Service does not exist", func(ctx SpecContext) {
		missingService := &admissionv1.ServiceReference{Namespace: operatorNamespace, Name: "codeflare-operator-webhook-service", Path: new("/mutate")}
		otherService := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "other-webhook"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}}}
		Expect(env.Admin.Create(ctx, otherService)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, otherService)).To(Succeed()) }, NodeTimeout(specTimeout))
		configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "codeflare-operator-mutating-webhook-configuration"}}
		env.Get(ctx, configuration)
		newWebhook := func(name string, service *admissionv1.ServiceReference) admissionv1.MutatingWebhook {
			return admissionv1.MutatingWebhook{Name: name, AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{Service: service}, FailurePolicy: new(admissionv1.Ignore),
				Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Connect},
					Rule: admissionv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"none"}}}}}
		}
		configuration.Webhooks = append(configuration.Webhooks, newWebhook("mappwrapper.kb.io", missingService),
			newWebhook("other.example.com", &admissionv1.ServiceReference{Namespace: operatorNamespace, Name: otherService.Name}))
		Expect(env.Admin.Update(ctx, configuration)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { env.DisableWebhooks(ctx) }, NodeTimeout(specTimeout))
		manager.Restart(ctx)
		env.WaitFor(ctx, configuration, func(g Gomega) {
			g.Expect(configuration.Webhooks).To(HaveLen(1))
			g.Expect(configuration.Webhooks[0].Name).To(Equal("other.example.com"))
		})
	}, NodeTimeout(specTimeout))
})
