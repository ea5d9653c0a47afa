package modelcatalog_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("Keys for Hugging Face", func() {
	It("become environment variables of the server, restart it when they change, and are reported if unusable [modelregistry-123] [modelregistry-124]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		const label, annotation = "hub.kubeflow.org/hf-source", "modelregistry.opendatahub.io/hf-secrets-hash"
		key := secret(ns, "hub-key")
		key.Labels, key.StringData = map[string]string{label: "team"}, map[string]string{"apiKey": "hf_one"}
		w.create(ctx, key)
		c := w.createReady(ctx, catalog(ns))
		server := deployment(ns, "model-catalog")
		w.Get(ctx, server)
		Expect(server.Spec.Template.Spec.Containers[0].Env).To(ContainElement(And(
			HaveField("Name", "HF_API_KEY_TEAM"), HaveField("ValueFrom.SecretKeyRef", And(
				HaveField("LocalObjectReference", corev1.LocalObjectReference{Name: "hub-key"}), HaveField("Key", "apiKey"))))))
		first := server.Spec.Template.Annotations[annotation]
		Expect(first).NotTo(BeEmpty())

		By("changing the key")
		w.Patch(ctx, key, map[string]any{"stringData": map[string]any{"apiKey": "hf_two"}})
		w.WaitFor(ctx, server, func(g Gomega) {
			g.Expect(server.Spec.Template.Annotations[annotation]).NotTo(Or(BeEmpty(), Equal(first)))
		})

		By("creating another Secret for the same variable")
		other := secret(ns, "late")
		other.Labels, other.StringData = map[string]string{label: "Team"}, map[string]string{"apiKey": "hf_three"}
		w.create(ctx, other)
		w.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Conditions).To(ContainElement(And(
				HaveField("Type", "HuggingFaceKeysReady"), HaveField("Reason", "KeysRejected"),
				HaveField("Message", ContainSubstring("Secret late: HF_API_KEY_TEAM comes from Secret hub-key already")))))
		})
		w.remove(ctx, other)
		w.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Conditions).NotTo(ContainElement(HaveField("Type", "HuggingFaceKeysReady")))
		})

		By("removing the label")
		w.Patch(ctx, key, map[string]any{"metadata": map[string]any{"labels": map[string]any{label: nil}}})
		w.WaitFor(ctx, server, func(g Gomega) {
			g.Expect(server.Spec.Template.Annotations).NotTo(HaveKey(annotation))
			g.Expect(server.Spec.Template.Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", HavePrefix("HF_"))))
		})
		w.available(ctx, c)
		w.ExpectIdle(w.manager.User, quiet)
	}, NodeTimeout(specTimeout))
})
