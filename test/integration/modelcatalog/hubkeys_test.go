package modelcatalog_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("Keys for Hugging Face", func() {
	It("become environment variables of the server, restart it when they change, and are reported if unusable [modelregistry-123] [modelregistry-124]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		const label, annotation = "hub.kubeflow.org/hf-source", "modelregistry.opendatahub.io/hf-secrets-hash"
		key := secret(ns, "hub-key")
		key.Labels, key.StringData = map[string]string{label: "team"}, map[string]string{"apiKey": "hf_one"}
		env.create(ctx, key)
		c := env.createReady(ctx, catalog(ns))
		server := deployment(ns, "model-catalog")
		env.Get(ctx, server)
		Expect(server.Spec.Template.Spec.Containers[0].Env).To(ContainElement(And(
			HaveField("Name", "HF_API_KEY_TEAM"), HaveField("ValueFrom.SecretKeyRef", And(
				HaveField("LocalObjectReference", corev1.LocalObjectReference{Name: "hub-key"}), HaveField("Key", "apiKey"))))))
		firstHash := server.Spec.Template.Annotations[annotation]
		Expect(firstHash).NotTo(BeEmpty())

		By("changing the key")
		env.Patch(ctx, key, map[string]any{"stringData": map[string]any{"apiKey": "hf_two"}})
		env.WaitFor(ctx, server, func(g Gomega) {
			g.Expect(server.Spec.Template.Annotations[annotation]).NotTo(Or(BeEmpty(), Equal(firstHash)))
		})

		By("creating another Secret for the same variable")
		other := secret(ns, "late")
		other.Labels, other.StringData = map[string]string{label: "Team"}, map[string]string{"apiKey": "hf_three"}
		env.create(ctx, other)
		env.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Conditions).To(ContainElement(And(
				HaveField("Type", "HuggingFaceKeysReady"), HaveField("Reason", "KeysRejected"),
				HaveField("Message", ContainSubstring("Secret late: HF_API_KEY_TEAM is already set by Secret hub-key")))))
		})
		env.deleteAndWait(ctx, other)
		env.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Conditions).NotTo(ContainElement(HaveField("Type", "HuggingFaceKeysReady")))
		})

		By("removing the label")
		env.Patch(ctx, key, map[string]any{"metadata": map[string]any{"labels": map[string]any{label: nil}}})
		env.WaitFor(ctx, server, func(g Gomega) {
			g.Expect(server.Spec.Template.Annotations).NotTo(HaveKey(annotation))
			g.Expect(server.Spec.Template.Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", HavePrefix("HF_"))))
		})
		env.waitAvailable(ctx, c)
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
