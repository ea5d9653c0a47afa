package modelregistry_plain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A registry on a cluster without Gateways", Serial, func() {
	It("is published by an Ingress to its proxy only if the setting enables it", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		options := managerOptions()
		options.Name, options.Env = "ingress", append(options.Env, "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org")
		other := env.StartManager(ctx, options)
		open, closed := registry("open"), registry("closed", proxied)
		env.Create(ctx, open, closed)
		published := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "closed-https"}}
		env.WaitExists(ctx, published)
		Expect(published.Spec.Rules[0].Host).To(Equal("closed-rest.apps.example.org"))
		Expect(published.Annotations).To(HaveKeyWithValue("nginx.ingress.kubernetes.io/backend-protocol", "HTTPS"))
		waitAvailable(ctx, open)
		waitAvailable(ctx, closed)
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
		all := &networkingv1.IngressList{}
		Expect(env.Admin.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
		Expect(all.Items).To(HaveLen(1), "a registry that does not authenticate its users is not published")
		other.Stop(ctx)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, published)
	}, NodeTimeout(2*specTimeout))
})
