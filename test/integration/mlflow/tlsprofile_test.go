package mlflow_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("The TLS profile of the cluster", func() {
	// setProfile patches the spec of the APIServer, which contains the TLS profile and the adherence policy of the cluster.
	setProfile := func(ctx context.Context, spec map[string]any) {
		GinkgoHelper()
		apiServer := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "APIServer"}}
		apiServer.SetName("cluster")
		env.Get(ctx, apiServer)
		env.Patch(ctx, apiServer, map[string]any{"spec": spec})
	}
	modern := map[string]any{"tlsSecurityProfile": map[string]any{"type": "Modern"}, "tlsAdherence": "StrictAllComponents"}
	reset := map[string]any{"tlsSecurityProfile": nil, "tlsAdherence": "LegacyAdheringComponentsOnly"}
	ciphers := func(ctx context.Context) string {
		GinkgoHelper()
		d := deployment()
		env.Get(ctx, d)
		for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "UVICORN_SSL_CIPHERS" {
				return variable.Value
			}
		}
		return ""
	}

	It("applies to the server if the cluster enforces it for all components", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		Expect(ciphers(ctx)).To(Equal("PROFILE=SYSTEM"))

		By("setting a profile for other components only")
		setProfile(ctx, map[string]any{"tlsSecurityProfile": modern["tlsSecurityProfile"]})
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(ciphers(ctx)).To(Equal("PROFILE=SYSTEM"))

		By("setting the profile for all components, which restarts the manager")
		DeferCleanup(func(ctx SpecContext) {
			setProfile(ctx, reset)
			manager.AwaitRestart(ctx)
		}, NodeTimeout(specTimeout))
		setProfile(ctx, modern)
		manager.AwaitRestart(ctx)
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(ciphers(ctx)).To(HavePrefix("PSK-")) })
		waitAvailable(ctx, m)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(manager.Process.Running()).To(BeTrue())
	}, NodeTimeout(2*specTimeout))
})
