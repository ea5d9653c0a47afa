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
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A namespace on OpenShift", func() {
	It("serves a model behind an authenticated Route, with two pods [modelmesh-102] [M7] [M34]", func(ctx SpecContext) {
		start := env.AuditPosition()
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		createRuntime(ctx, ns, modelmesh.AnnotationRoute, "true", modelmesh.AnnotationAuth, "true")
		model := createInferenceService(ctx, ns, "digits")
		route, deployment, service := routeOf(ns, "digits"), deploymentOf(ns), serviceOf(ns)
		env.WaitExists(ctx, append(namespaceObjects(ns), route, service)...)
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2))) })

		By("checking that the Route targets the sidecar")
		Expect(routeSpecField(route, "path")).To(Equal("/v2/models/digits"))
		Expect(routeSpecField(route, "port", "targetPort")).To(BeEquivalentTo(8443))
		Expect(routeSpecField(route, "tls", "termination")).To(Equal("reencrypt"))
		Expect(routeSpecField(route, "to", "name")).To(Equal("modelmesh-serving"))
		Expect(route.GetLabels()).To(HaveKeyWithValue("inferenceservice-name", "digits"))
		Expect(metav1.IsControlledBy(route, model)).To(BeTrue())

		By("checking the port and the certificate annotation of the Service")
		Expect(service.Annotations).To(HaveKeyWithValue("service.alpha.openshift.io/serving-cert-secret-name", "model-serving-proxy-tls"))
		Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", "https")))

		By("checking the sidecar and the ServiceAccount of pods")
		Expect(deployment.Spec.Template.Spec.ServiceAccountName).To(Equal("modelmesh-serving-sa"))
		proxy := framework.Container(deployment, "oauth-proxy")
		Expect(proxy.Args).NotTo(ContainElement(ContainSubstring("cookie-secret")))
		Expect(proxy.Env).To(ContainElement(HaveField("ValueFrom.SecretKeyRef.Name", "model-serving-proxy-cookie")))
		Expect(deployment.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret.SecretName", "model-serving-proxy-tls")))

		By("checking the permissions of the sidecar and of Prometheus")
		binding, prometheusAccess := authDelegatorBinding(ns), prometheusBinding(ns)
		env.WaitExists(ctx, binding, prometheusAccess)
		Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "modelmesh-serving-sa"}}))
		Expect(binding.RoleRef.Name).To(Equal("system:auth-delegator"))
		Expect(prometheusAccess.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: monitoringNamespace, Name: "prometheus-custom"}}))
		env.WaitExists(ctx, &rbacv1.ClusterRole{ObjectMeta: objectMeta("", prometheusAccess.RoleRef.Name)})
		expectNotForbidden(start, ns)
	}, NodeTimeout(specTimeout))

	It("has a separate cookie Secret in each namespace [O2]", func(ctx SpecContext) {
		var cookies []string
		for range 2 {
			ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
			createInferenceService(ctx, ns, "digits")
			c := cookieSecret(ns)
			env.WaitExists(ctx, c)
			cookies = append(cookies, string(c.Data["cookie_secret"]))
		}
		Expect(cookies[0]).To(HaveLen(44))
		Expect(cookies[0]).NotTo(Equal(cookies[1]))
	}, NodeTimeout(specTimeout))

	It("publishes models only while the runtime has the annotation [O10]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		r := createRuntime(ctx, ns, modelmesh.AnnotationRoute, "true")
		model := createInferenceService(ctx, ns, "digits")
		createInferenceService(ctx, ns, "letters")
		digits, letters := routeOf(ns, "digits"), routeOf(ns, "letters")
		env.WaitExists(ctx, digits, letters)
		Expect(routeSpecField(digits, "port", "targetPort")).To(BeEquivalentTo(8008))
		Expect(routeSpecField(digits, "tls", "termination")).To(Equal("edge"))
		Expect(digits.GetAnnotations()).To(HaveKeyWithValue(openshift.AnnotationTimeout, "30s"))
		patchAnnotations(ctx, model, map[string]any{openshift.AnnotationTimeout: "5m"})
		env.WaitFor(ctx, digits, func(g Gomega) {
			g.Expect(digits.GetAnnotations()).To(HaveKeyWithValue(openshift.AnnotationTimeout, "5m"))
		})
		patchAnnotations(ctx, r, map[string]any{modelmesh.AnnotationAuth: "true"})
		for _, published := range []*unstructured.Unstructured{digits, letters} {
			env.WaitFor(ctx, published, func(g Gomega) { g.Expect(routeSpecField(published, "port", "targetPort")).To(BeEquivalentTo(8443)) })
		}
		patchAnnotations(ctx, r, map[string]any{modelmesh.AnnotationRoute: nil})
		env.WaitDeleted(ctx, digits, letters)
	}, NodeTimeout(specTimeout))

	It("copies data connections into the storage Secret while models exist [O9]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		aws := createConnection(ctx, ns, "aws", "https://s3.example.com")
		model := createInferenceService(ctx, ns, "digits")
		secret := storageSecret(ns)
		env.WaitFor(ctx, secret, func(g Gomega) {
			g.Expect(storageEntries(g, secret)).To(Equal(map[string]map[string]string{"aws": {
				"type": "s3", "access_key_id": "id", "secret_access_key": "secret", "endpoint_url": "https://s3.example.com",
				"bucket": "models", "default_bucket": "models", "region": "here",
			}}))
		})
		Expect(secret.Labels).To(HaveKeyWithValue(openshift.LabelManaged, "true"))
		Expect(env.Admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta(ns, openshift.BundleConfigMap), Data: map[string]string{openshift.BundleKey: "PEM"}})).To(Succeed())
		minio := createConnection(ctx, ns, "minio", "http://minio:9000")
		env.WaitFor(ctx, secret, func(g Gomega) {
			got := storageEntries(g, secret)
			g.Expect(got["aws"]).To(HaveKeyWithValue("certificate", "PEM"))
			g.Expect(got["aws"]).To(HaveKeyWithValue("cabundle_configmap", "odh-kserve-custom-ca-bundle"))
			g.Expect(got["minio"]).To(HaveKeyWithValue("endpoint_url", "http://minio:9000"))
		})
		env.Patch(ctx, minio, map[string]any{"metadata": map[string]any{"labels": map[string]any{openshift.LabelDashboard: nil}}})
		env.WaitFor(ctx, secret, func(g Gomega) { g.Expect(storageEntries(g, secret)).To(HaveLen(1)) })
		waitNoRequestsFor(ctx, ns)
		env.Touch(ctx, secret)
		waitNoRequestsFor(ctx, ns)
		expectNoRequestsFor(ns)
		Expect(env.Admin.Delete(ctx, model)).To(Succeed())
		env.WaitDeleted(ctx, secret)
		env.Get(ctx, aws)
	}, NodeTimeout(specTimeout))

	It("does not change the storage Secret of a user, and reports it", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		secret := storageSecret(ns)
		secret.StringData = map[string]string{"localMinIO": `{"type":"s3"}`}
		Expect(env.Admin.Create(ctx, secret)).To(Succeed())
		createConnection(ctx, ns, "aws", "http://minio:9000")
		model := createInferenceService(ctx, ns, "digits")
		env.WaitForEvent(ctx, secret, openshift.ReasonNotApplied, "label it opendatahub.io/managed=true")
		waitNoRequestsFor(ctx, ns)
		expectNoRequestsFor(ns)
		Expect(env.Admin.Delete(ctx, model)).To(Succeed())
		env.WaitDeleted(ctx, serviceAccountOf(ns))
		env.Get(ctx, secret)
		Expect(secret.Data).To(HaveLen(1))
		Expect(secret.Data).To(HaveKey("localMinIO"))
	}, NodeTimeout(specTimeout))

	It("loses the objects of the sidecar when its last model is deleted, and the others when it is disabled [O5]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		createRuntime(ctx, ns)
		first, last := createInferenceService(ctx, ns, "digits"), createInferenceService(ctx, ns, "letters")
		env.WaitExists(ctx, namespaceObjects(ns)...)
		Expect(env.Admin.Delete(ctx, first)).To(Succeed())
		env.WaitDeleted(ctx, first)
		waitNoRequestsFor(ctx, ns)
		env.WaitExists(ctx, namespaceObjects(ns)...)
		Expect(env.Admin.Delete(ctx, last)).To(Succeed())
		env.WaitDeleted(ctx, serviceAccountOf(ns), authDelegatorBinding(ns), cookieSecret(ns))
		deployment := deploymentOf(ns)
		env.Get(ctx, deployment)
		Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(0)), "the pods are deleted before their ServiceAccount")
		env.Get(ctx, prometheusBinding(ns))
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "false")
		env.WaitDeleted(ctx, prometheusBinding(ns), networkPolicy(ns))
		waitNoRequestsFor(ctx, ns)
		expectNoRequestsFor(ns)
	}, NodeTimeout(specTimeout))

	It("keeps foreign objects when it is disabled, and loses the managed ones", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		createRuntime(ctx, ns, modelmesh.AnnotationRoute, "true")
		model := createInferenceService(ctx, ns, "digits")
		foreign := &corev1.ServiceAccount{ObjectMeta: objectMeta(ns, "users")}
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		env.WaitExists(ctx, append(namespaceObjects(ns), routeOf(ns, "digits"))...)
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "false")
		env.WaitDeleted(ctx, append(namespaceObjects(ns), routeOf(ns, "digits"))...)
		env.Get(ctx, model)
		env.Get(ctx, foreign)
	}, NodeTimeout(specTimeout))

	It("sends no write in the steady state, and reverts changes and deletions by other clients", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		createRuntime(ctx, ns, modelmesh.AnnotationRoute, "true")
		createInferenceService(ctx, ns, "digits")
		published := routeOf(ns, "digits")
		env.WaitExists(ctx, append(namespaceObjects(ns), published)...)
		waitNoRequestsFor(ctx, ns)
		env.Touch(ctx, append(namespaceObjects(ns), published)...)
		expectNoRequestsFor(ns)

		Expect(env.Admin.Delete(ctx, serviceAccountOf(ns))).To(Succeed())
		Expect(env.Admin.Delete(ctx, authDelegatorBinding(ns))).To(Succeed())
		env.Patch(ctx, published, map[string]any{"spec": map[string]any{"port": map[string]any{"targetPort": 1}}})
		env.Patch(ctx, networkPolicy(ns), map[string]any{"spec": map[string]any{"ingress": []any{}}})
		env.WaitFor(ctx, published, func(g Gomega) { g.Expect(routeSpecField(published, "port", "targetPort")).To(BeEquivalentTo(8008)) })
		guard := networkPolicy(ns)
		env.WaitFor(ctx, guard, func(g Gomega) { g.Expect(guard.Spec.Ingress).To(HaveLen(3)) })
		env.WaitExists(ctx, serviceAccountOf(ns), authDelegatorBinding(ns))
	}, NodeTimeout(specTimeout))

	It("removes the finalizer of the legacy controller from a terminating InferenceService of ModelMesh once no other finalizer is left [O8]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		held := createInferenceService(ctx, ns, "held", takeover.LegacyFinalizer)
		both := createInferenceService(ctx, ns, "both", takeover.LegacyFinalizer, "example.com/hold")
		other := createInferenceService(ctx, ns, "other", takeover.LegacyFinalizer)
		patchAnnotations(ctx, other, map[string]any{"serving.kserve.io/deploymentMode": "RawDeployment"})
		for _, s := range []client.Object{other, both, held} {
			Expect(env.Admin.Delete(ctx, s)).To(Succeed())
		}
		env.WaitDeleted(ctx, held)
		waitNoRequestsFor(ctx, ns)
		env.Get(ctx, both)
		Expect(both.Finalizers).To(ContainElement(takeover.LegacyFinalizer))
		env.Get(ctx, other)
		env.Patch(ctx, both, map[string]any{"metadata": map[string]any{"finalizers": []any{takeover.LegacyFinalizer}}})
		env.WaitDeleted(ctx, both)
		env.Patch(ctx, other, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}, NodeTimeout(specTimeout))

	It("has none of the objects if it is not enabled", func(ctx SpecContext) {
		disabled := env.Namespace(ctx, "project")
		createInferenceService(ctx, disabled, "digits")
		createConnection(ctx, disabled, "aws", "http://minio:9000")
		ns := env.Namespace(ctx, "project", "modelmesh-enabled", "true")
		createInferenceService(ctx, ns, "digits")
		env.WaitExists(ctx, serviceAccountOf(ns))
		env.ExpectAbsent(ctx, append(namespaceObjects(disabled), storageSecret(disabled), routeOf(disabled, "digits"))...)
	}, NodeTimeout(specTimeout))
})
