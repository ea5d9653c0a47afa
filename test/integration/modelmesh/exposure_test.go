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

// startExposedManager runs a manager with a setting in place of the shared one.
func startExposedManager(ctx context.Context, name string, more ...string) *framework.Manager {
	GinkgoHelper()
	other := env.StartManager(ctx, framework.ManagerOptions{
		Name: name, Env: more,
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
	})
	return other
}

// model returns an InferenceService in ModelMesh mode.
func model(ctx context.Context, namespace, name string) *v1beta1.InferenceService {
	GinkgoHelper()
	m := &v1beta1.InferenceService{ObjectMeta: objectMeta(namespace, name)}
	m.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
	m.Spec.Predictor.Model = &v1beta1.ModelSpec{ModelFormat: v1beta1.ModelFormat{Name: "onnx"}}
	m.Spec.Predictor.Model.Storage = &v1beta1.ModelStorage{Path: new("models/" + name)}
	Expect(env.Admin.Create(ctx, m)).To(Succeed())
	return m
}

var _ = Describe("The Route, HTTPRoute or Ingress of a model", Serial, func() {
	It("follows the setting and the runtime, and objects of the previous setting are deleted", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		r := runtimeOf(ctx, ns, "r", "onnx", annotated(modelmesh.AnnotationRoute, "true"))
		digits := model(ctx, ns, "digits")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		ingress, route := &networkingv1.Ingress{ObjectMeta: objectMeta(ns, "digits")}, framework.Unstructured(capability.HTTPRoute, ns, "digits")
		env.ExpectAbsent(ctx, ingress, route)
		manager.StopTemporarily(ctx)

		By("exposing by an Ingress")
		other := startExposedManager(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org", "INGRESS_CLASS=edge")
		env.WaitExists(ctx, ingress)
		Expect(ingress.Spec.Rules).To(HaveLen(1))
		Expect(ingress.Spec.Rules[0].Host).To(Equal("digits-" + ns + ".apps.example.org"))
		Expect(ingress.Spec.Rules[0].HTTP.Paths[0].Path).To(Equal("/v2/models/digits"))
		Expect(ingress.OwnerReferences).To(ContainElement(HaveField("UID", digits.UID)))
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
		other.Stop(ctx)

		By("exposing by a Gateway, which verifies the proxy")
		env.SetAnnotation(ctx, r, modelmesh.AnnotationAuth, "true")
		settings := env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "authProxy: {mode: always}\n")
		other = startExposedManager(ctx, "gateway", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		policy, authority := framework.Unstructured(capability.BackendTLSPolicy, ns, openshift.CAObjectName), &corev1.ConfigMap{ObjectMeta: objectMeta(ns, openshift.CAObjectName)}
		issued := &corev1.Secret{ObjectMeta: objectMeta(ns, authproxy.TLSSecret)}
		env.WaitExists(ctx, route, policy, authority, issued)
		env.WaitDeleted(ctx, ingress)
		Expect(authority.Data).To(HaveKeyWithValue("ca.crt", string(issued.Data["ca.crt"])))
		rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
		Expect(rules).To(ConsistOf(HaveKeyWithValue("backendRefs", ConsistOf(HaveKeyWithValue("port", BeEquivalentTo(authproxy.Port))))))
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
		other.Stop(ctx)

		By("returning to the default exposure")
		Expect(env.Admin.Delete(ctx, settings)).To(Succeed())
		manager.Restart(ctx)
		for _, gone := range []*unstructured.Unstructured{route, policy} {
			env.WaitDeleted(ctx, gone)
		}
		env.WaitDeleted(ctx, authority)
	}, NodeTimeout(2*specTimeout))
})
