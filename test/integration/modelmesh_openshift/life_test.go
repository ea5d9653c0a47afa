package modelmesh_openshift_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A namespace on OpenShift", func() {
	It("serves a model behind an authenticated Route, with two pods [modelmesh-102] [M7] [M34]", func(ctx SpecContext) {
		start := env.AuditPosition()
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		ovms(ctx, ns, modelmesh.AnnotationRoute, "true", modelmesh.AnnotationAuth, "true")
		model := inference(ctx, ns, "digits")
		r, d, s := route(ns, "digits"), deployment(ns), service(ns)
		env.WaitExists(ctx, append(namespaceObjects(ns), r, s)...)
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(2))) })

		By("checking that the Route targets the sidecar")
		Expect(spec(r, "path")).To(Equal("/v2/models/digits"))
		Expect(spec(r, "port", "targetPort")).To(BeEquivalentTo(8443))
		Expect(spec(r, "tls", "termination")).To(Equal("reencrypt"))
		Expect(spec(r, "to", "name")).To(Equal("modelmesh-serving"))
		Expect(r.GetLabels()).To(HaveKeyWithValue("inferenceservice-name", "digits"))
		Expect(metav1.IsControlledBy(r, model)).To(BeTrue())

		By("checking the port and the certificate annotation of the Service")
		Expect(s.Annotations).To(HaveKeyWithValue("service.alpha.openshift.io/serving-cert-secret-name", "model-serving-proxy-tls"))
		Expect(s.Spec.Ports).To(ContainElement(HaveField("Name", "https")))

		By("checking the sidecar and the ServiceAccount of pods")
		Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal("modelmesh-serving-sa"))
		proxy := framework.Container(d, "oauth-proxy")
		Expect(proxy).NotTo(BeNil())
		Expect(proxy.Args).NotTo(ContainElement(ContainSubstring("cookie-secret")))
		Expect(proxy.Env).To(ContainElement(HaveField("ValueFrom.SecretKeyRef.Name", "model-serving-proxy-cookie")))
		Expect(d.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret.SecretName", "model-serving-proxy-tls")))

		By("checking the permissions of the sidecar and of Prometheus")
		binding, access := delegator(ns), prometheus(ns)
		env.WaitExists(ctx, binding, access)
		Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "modelmesh-serving-sa"}}))
		Expect(binding.RoleRef.Name).To(Equal("system:auth-delegator"))
		Expect(access.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: monitoring, Name: "prometheus-custom"}}))
		env.WaitExists(ctx, &rbacv1.ClusterRole{ObjectMeta: objectMeta("", access.RoleRef.Name)})
		expectNotForbidden(start, ns)
	}, NodeTimeout(specTimeout))

	It("has a separate cookie Secret in each namespace [O2]", func(ctx SpecContext) {
		var cookies []string
		for range 2 {
			ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
			inference(ctx, ns, "digits")
			c := cookie(ns)
			env.WaitExists(ctx, c)
			cookies = append(cookies, string(c.Data["cookie_secret"]))
		}
		Expect(cookies[0]).To(HaveLen(44))
		Expect(cookies[0]).NotTo(Equal(cookies[1]))
	}, NodeTimeout(specTimeout))

	It("publishes models only while the runtime has the annotation [O10]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		r := ovms(ctx, ns, modelmesh.AnnotationRoute, "true")
		model := inference(ctx, ns, "digits")
		inference(ctx, ns, "letters")
		digits, letters := route(ns, "digits"), route(ns, "letters")
		env.WaitExists(ctx, digits, letters)
		Expect(spec(digits, "port", "targetPort")).To(BeEquivalentTo(8008))
		Expect(spec(digits, "tls", "termination")).To(Equal("edge"))
		Expect(digits.GetAnnotations()).To(HaveKeyWithValue(openshift.AnnotationTimeout, "30s"))
		annotate(ctx, model, map[string]any{openshift.AnnotationTimeout: "5m"})
		env.WaitFor(ctx, digits, func(g Gomega) {
			g.Expect(digits.GetAnnotations()).To(HaveKeyWithValue(openshift.AnnotationTimeout, "5m"))
		})
		annotate(ctx, r, map[string]any{modelmesh.AnnotationAuth: "true"})
		for _, published := range []*unstructured.Unstructured{digits, letters} {
			env.WaitFor(ctx, published, func(g Gomega) { g.Expect(spec(published, "port", "targetPort")).To(BeEquivalentTo(8443)) })
		}
		annotate(ctx, r, map[string]any{modelmesh.AnnotationRoute: nil})
		env.WaitDeleted(ctx, digits, letters)
	}, NodeTimeout(specTimeout))

	It("copies data connections into the storage Secret while models exist [O9]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		aws := connection(ctx, ns, "aws", "https://s3.example.com")
		model := inference(ctx, ns, "digits")
		s := storage(ns)
		env.WaitFor(ctx, s, func(g Gomega) {
			g.Expect(entries(g, s)).To(Equal(map[string]map[string]string{"aws": {
				"type": "s3", "access_key_id": "id", "secret_access_key": "secret", "endpoint_url": "https://s3.example.com",
				"bucket": "models", "default_bucket": "models", "region": "here",
			}}))
		})
		Expect(s.Labels).To(HaveKeyWithValue(openshift.LabelManaged, "true"))
		Expect(env.Admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta(ns, openshift.BundleConfigMap), Data: map[string]string{openshift.BundleKey: "PEM"}})).To(Succeed())
		minio := connection(ctx, ns, "minio", "http://minio:9000")
		env.WaitFor(ctx, s, func(g Gomega) {
			got := entries(g, s)
			g.Expect(got["aws"]).To(HaveKeyWithValue("certificate", "PEM"))
			g.Expect(got["aws"]).To(HaveKeyWithValue("cabundle_configmap", "odh-kserve-custom-ca-bundle"))
			g.Expect(got["minio"]).To(HaveKeyWithValue("endpoint_url", "http://minio:9000"))
		})
		env.Patch(ctx, minio, map[string]any{"metadata": map[string]any{"labels": map[string]any{openshift.LabelDashboard: nil}}})
		env.WaitFor(ctx, s, func(g Gomega) { g.Expect(entries(g, s)).To(HaveLen(1)) })
		waitSettled(ctx, ns)
		env.Touch(ctx, s)
		waitSettled(ctx, ns)
		expectNoRequestsFor(ns)
		Expect(env.Admin.Delete(ctx, model)).To(Succeed())
		env.WaitDeleted(ctx, s)
		env.Get(ctx, aws)
	}, NodeTimeout(specTimeout))

	It("does not change the storage Secret of a user, and reports it", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		s := storage(ns)
		s.StringData = map[string]string{"localMinIO": `{"type":"s3"}`}
		Expect(env.Admin.Create(ctx, s)).To(Succeed())
		connection(ctx, ns, "aws", "http://minio:9000")
		model := inference(ctx, ns, "digits")
		env.WaitForEvent(ctx, s, openshift.ReasonNotApplied, "label it opendatahub.io/managed=true")
		waitSettled(ctx, ns)
		expectNoRequestsFor(ns)
		Expect(env.Admin.Delete(ctx, model)).To(Succeed())
		env.WaitDeleted(ctx, serviceAccount(ns))
		env.Get(ctx, s)
		Expect(s.Data).To(HaveLen(1))
		Expect(s.Data).To(HaveKey("localMinIO"))
	}, NodeTimeout(specTimeout))

	It("is cleaned up with its last model, also after models of another kind [O5]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		ovms(ctx, ns)
		first, last := inference(ctx, ns, "digits"), inference(ctx, ns, "letters")
		env.WaitExists(ctx, namespaceObjects(ns)...)
		Expect(env.Admin.Delete(ctx, first)).To(Succeed())
		env.WaitDeleted(ctx, first)
		waitSettled(ctx, ns)
		env.WaitExists(ctx, namespaceObjects(ns)...)
		Expect(env.Admin.Delete(ctx, last)).To(Succeed())
		env.WaitDeleted(ctx, serviceAccount(ns), delegator(ns), cookie(ns))
		d := deployment(ns)
		env.Get(ctx, d)
		Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(0)), "pods go before their account does")
		env.Get(ctx, prometheus(ns))
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "false")
		env.WaitDeleted(ctx, prometheus(ns), policy(ns))
		waitSettled(ctx, ns)
		expectNoRequestsFor(ns)
	}, NodeTimeout(specTimeout))

	It("keeps foreign objects when its label is removed, and loses the managed ones", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		ovms(ctx, ns, modelmesh.AnnotationRoute, "true")
		model := inference(ctx, ns, "digits")
		user := &corev1.ServiceAccount{ObjectMeta: objectMeta(ns, "users")}
		Expect(env.Admin.Create(ctx, user)).To(Succeed())
		env.WaitExists(ctx, append(namespaceObjects(ns), route(ns, "digits"))...)
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "false")
		env.WaitDeleted(ctx, append(namespaceObjects(ns), route(ns, "digits"))...)
		env.Get(ctx, model)
		env.Get(ctx, user)
	}, NodeTimeout(specTimeout))

	It("sends no write in the steady state, and reverts changes and deletions by other clients", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		ovms(ctx, ns, modelmesh.AnnotationRoute, "true")
		inference(ctx, ns, "digits")
		published := route(ns, "digits")
		env.WaitExists(ctx, append(namespaceObjects(ns), published)...)
		waitSettled(ctx, ns)
		env.Touch(ctx, append(namespaceObjects(ns), published)...)
		expectNoRequestsFor(ns)

		Expect(env.Admin.Delete(ctx, serviceAccount(ns))).To(Succeed())
		Expect(env.Admin.Delete(ctx, delegator(ns))).To(Succeed())
		env.Patch(ctx, published, map[string]any{"spec": map[string]any{"port": map[string]any{"targetPort": 1}}})
		env.Patch(ctx, policy(ns), map[string]any{"spec": map[string]any{"ingress": []any{}}})
		env.WaitFor(ctx, published, func(g Gomega) { g.Expect(spec(published, "port", "targetPort")).To(BeEquivalentTo(8008)) })
		guard := policy(ns)
		env.WaitFor(ctx, guard, func(g Gomega) { g.Expect(guard.Spec.Ingress).To(HaveLen(3)) })
		env.WaitExists(ctx, serviceAccount(ns), delegator(ns))
	}, NodeTimeout(specTimeout))

	It("removes the finalizer of the legacy controller from a terminating InferenceService, and no other finalizer [O8]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		held := inference(ctx, ns, "held", openshift.Finalizer)
		both := inference(ctx, ns, "both", openshift.Finalizer, "example.com/hold")
		other := inference(ctx, ns, "other", openshift.Finalizer)
		annotate(ctx, other, map[string]any{"serving.kserve.io/deploymentMode": "RawDeployment"})
		for _, s := range []client.Object{other, both, held} {
			Expect(env.Admin.Delete(ctx, s)).To(Succeed())
		}
		env.WaitDeleted(ctx, held)
		waitSettled(ctx, ns)
		env.Get(ctx, both)
		Expect(both.Finalizers).To(ContainElement(openshift.Finalizer))
		env.Get(ctx, other)
		env.Patch(ctx, both, map[string]any{"metadata": map[string]any{"finalizers": []any{openshift.Finalizer}}})
		env.WaitDeleted(ctx, both)
		env.Patch(ctx, other, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}, NodeTimeout(specTimeout))

	It("creates nothing if the namespace serves no models", func(ctx SpecContext) {
		plain := env.Namespace(ctx, "project")
		inference(ctx, plain, "digits")
		connection(ctx, plain, "aws", "http://minio:9000")
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		inference(ctx, ns, "digits")
		env.WaitExists(ctx, serviceAccount(ns))
		env.ExpectAbsent(ctx, append(namespaceObjects(plain), storage(plain), route(plain, "digits"))...)
	}, NodeTimeout(specTimeout))
})
