package modelmesh_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// startManagerWith starts a manager with environment variables. The caller has stopped the shared one.
func startManagerWith(ctx context.Context, name string, variables ...string) *framework.Manager {
	GinkgoHelper()
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: name, Env: variables,
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
	})
}

// createInferenceService creates an InferenceService in ModelMesh mode.
func createInferenceService(ctx context.Context, namespace, name string) *v1beta1.InferenceService {
	GinkgoHelper()
	service := &v1beta1.InferenceService{ObjectMeta: objectMeta(namespace, name)}
	service.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
	service.Spec.Predictor.Model = &v1beta1.ModelSpec{ModelFormat: v1beta1.ModelFormat{Name: "onnx"}}
	service.Spec.Predictor.Model.Storage = &v1beta1.ModelStorage{Path: new("models/" + name)}
	Expect(env.Admin.Create(ctx, service)).To(Succeed())
	return service
}

var _ = Describe("The HTTPRoute or Ingress of a model", Serial, func() {
	It("is created for the exposure that is configured, and deleted when another one is configured", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		runtime := createRuntime(ctx, ns, "r", "onnx", withAnnotations(modelmesh.AnnotationRoute, "true"))
		digits := createInferenceService(ctx, ns, "digits")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		ingress, route := &networkingv1.Ingress{ObjectMeta: objectMeta(ns, "digits")}, framework.Unstructured(capability.HTTPRoute, ns, "digits")
		env.ExpectAbsent(ctx, ingress, route)
		manager.StopTemporarily(ctx)

		By("exposing through an Ingress")
		second := startManagerWith(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org", "INGRESS_CLASS=edge")
		env.WaitExists(ctx, ingress)
		Expect(ingress.Spec.Rules).To(HaveLen(1))
		Expect(ingress.Spec.Rules[0].Host).To(Equal("digits-" + ns + ".apps.example.org"))
		Expect(ingress.Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/v2/models/digits"))
		Expect(ingress.OwnerReferences).To(ContainElement(HaveField("UID", digits.UID)))
		env.WaitIdle(second.User, idlePeriod, specTimeout)
		env.ExpectIdle(second.User, idlePeriod)
		second.Stop(ctx)

		By("exposing through a Gateway that verifies the certificate of the proxy")
		env.SetAnnotation(ctx, runtime, modelmesh.AnnotationAuth, "true")
		settings := env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "authProxy: {mode: always}\n")
		second = startManagerWith(ctx, "gateway", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		policy, caConfigMap := framework.Unstructured(capability.BackendTLSPolicy, ns, openshift.CAObjectName), &corev1.ConfigMap{ObjectMeta: objectMeta(ns, openshift.CAObjectName)}
		certificate := &corev1.Secret{ObjectMeta: objectMeta(ns, authproxy.TLSSecret)}
		env.WaitExists(ctx, route, policy, caConfigMap, certificate)
		env.WaitDeleted(ctx, ingress)
		Expect(caConfigMap.Data).To(HaveKeyWithValue("ca.crt", string(certificate.Data["ca.crt"])))
		rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
		Expect(rules).To(ConsistOf(HaveKeyWithValue("backendRefs", ConsistOf(HaveKeyWithValue("port", BeEquivalentTo(authproxy.Port))))))
		env.WaitIdle(second.User, idlePeriod, specTimeout)
		env.ExpectIdle(second.User, idlePeriod)
		second.Stop(ctx)

		By("returning to the default exposure")
		Expect(env.Admin.Delete(ctx, settings)).To(Succeed())
		manager.Restart(ctx)
		env.WaitDeleted(ctx, route, policy, caConfigMap)
	}, NodeTimeout(2*specTimeout))
})
