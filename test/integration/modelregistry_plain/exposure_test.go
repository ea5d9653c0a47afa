package modelregistry_plain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A registry on a cluster without Gateways", Serial, func() {
	It("is published through an Ingress to its proxy only if the exposure is ingress", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		options := managerOptions()
		options.Name, options.Env = "ingress", append(options.Env, "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org")
		ingressManager := env.StartManager(ctx, options)
		unproxied, proxied := newRegistry("without-proxy"), newRegistry("with-proxy", withProxy)
		env.Create(ctx, unproxied, proxied)
		ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "with-proxy-https"}}
		env.WaitExists(ctx, ingress)
		Expect(ingress.Spec.Rules[0].Host).To(Equal("with-proxy-rest.apps.example.org"))
		Expect(ingress.Annotations).To(HaveKeyWithValue("nginx.ingress.kubernetes.io/backend-protocol", "HTTPS"))
		waitAvailable(ctx, unproxied)
		waitAvailable(ctx, proxied)
		env.WaitIdle(ingressManager.User, idlePeriod, specTimeout)
		env.ExpectIdle(ingressManager.User, idlePeriod)
		ingresses := &networkingv1.IngressList{}
		Expect(env.Admin.List(ctx, ingresses, client.InNamespace(namespace))).To(Succeed())
		Expect(ingresses.Items).To(HaveLen(1), "a registry without authentication is not published")
		ingressManager.Stop(ctx)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, ingress)
	}, NodeTimeout(2*specTimeout))
})
