package modelmesh_settings_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The settings of ModelMesh", Serial, func() {
	It("take effect without a restart [modelmesh-36] [M36]", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, awake)
		ns := createServingNamespace(ctx)
		waitForReplicas(ctx, ns, 2)

		By("changing the settings of the pods and the Service")
		configure(ctx, operatorNamespace, awake+`
podsPerRuntime: 3
inferenceServicePort: 8034
enableAccessLogging: true
grpcMaxMessageSizeBytes: 33554432
metrics: {port: 2222, scheme: http}
restProxy: {enabled: false}
modelMeshImage: {tag: v9}
modelMeshResources: {limits: {cpu: "4"}}
payloadProcessors: ["example:8080/consumer/kserve/v2", "example2:8080/consumer/kserve/v2"]
internalModelMeshEnvVars: [{name: EXTRA, value: 1.10}]
imagePullSecrets: [{name: pull}]
runtimePodLabels: {example.com/Cost.Centre: "42"}
runtimePodAnnotations: {Example.com/Note: kept as Written}
serviceAccountName: runner
`)
		d := waitForReplicas(ctx, ns, 3)
		template := d.Spec.Template
		Expect(template.Labels).To(HaveKeyWithValue("example.com/Cost.Centre", "42"))
		Expect(template.Annotations).To(SatisfyAll(
			HaveKeyWithValue("Example.com/Note", "kept as Written"), HaveKeyWithValue("prometheus.io/port", "2222"), HaveKeyWithValue("prometheus.io/scheme", "http")))
		Expect(template.Spec.ServiceAccountName).To(Equal("runner"))
		Expect(template.Spec.ImagePullSecrets).To(ConsistOf(corev1.LocalObjectReference{Name: "pull"}))
		Expect(framework.Container(d, "rest-proxy").Name).To(BeEmpty())
		mm := framework.Container(d, "mm")
		Expect(mm.Image).To(Equal("kserve/modelmesh:v9"))
		Expect(mm.Resources.Limits.Cpu().String()).To(Equal("4"))
		Expect(mm.Resources.Limits.Memory().String()).To(Equal("448Mi"), "what is not said keeps its default")
		for name, value := range map[string]string{
			"MM_SVC_GRPC_PORT": "8034", "MM_LOG_EACH_INVOKE": "true", "MM_SVC_GRPC_MAX_MSG_SIZE": "33554432", "EXTRA": "1.10",
			"MM_METRICS": "prometheus:port=2222;scheme=http", "MM_PAYLOAD_PROCESSORS": "example:8080/consumer/kserve/v2 example2:8080/consumer/kserve/v2",
		} {
			Expect(framework.Variable(mm, name)).To(Equal(value), name)
		}
		s := service(ns)
		env.WaitFor(ctx, s, func(g Gomega) {
			ports := map[string]int32{}
			for _, p := range s.Spec.Ports {
				ports[p.Name] = p.Port
			}
			g.Expect(ports).To(Equal(map[string]int32{"grpc": 8034, "prometheus": 2222}))
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)

		By("removing the settings from the ConfigMaps")
		configure(ctx, operatorNamespace, awake)
		waitForReplicas(ctx, ns, 2)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
	}, NodeTimeout(specTimeout))

	It("stay unchanged while the document is invalid, which is reported [modelmesh-37] [modelmesh-41] [M36]", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 1")
		ns := createServingNamespace(ctx)
		d := waitForReplicas(ctx, ns, 1)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		env.Get(ctx, d)
		for text, part := range map[string]string{
			`podsPerRuntime: "none"`:      `podsPerRuntime "none": must be a whole number from 0 to 65535`,
			"payloadProcessors: ['a b']":  "Error parsing payload processor 'a b': endpoint must not contain spaces.",
			"modelMeshResources: {a: [b":  "not valid YAML",
			"inferenceServiceName: Wrong": "must be the name of a Service",
		} {
			m := configure(ctx, operatorNamespace, awake+text)
			expectEvent(ctx, m, meshsettings.ReasonRefused, part)
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		expectUnchanged(ctx, d)

		By("setting an unknown key")
		m := configure(ctx, operatorNamespace, awake+"podsPerRuntime: 4\npodPerRuntimes: 5")
		waitForReplicas(ctx, ns, 4)
		expectEvent(ctx, m, meshsettings.ReasonIgnored, "podPerRuntimes is unknown and has no effect (did you mean podsPerRuntime?)")
	}, NodeTimeout(specTimeout))

	It("override a ConfigMap of defaults, whose changes take effect too", func(ctx SpecContext) {
		defaults := func(text string) *corev1.ConfigMap {
			return env.SetConfigMap(ctx, operatorNamespace, meshsettings.DefaultsName, meshsettings.DefaultsKey, awake+text)
		}
		defaults("podsPerRuntime: 3\nmodelMeshImage: {name: example.com/mm, tag: v1, digest: 'sha256:aa'}\nrestProxy: {enabled: true}")
		ns := createServingNamespace(ctx)
		Expect(framework.Container(waitForReplicas(ctx, ns, 3), "mm").Image).To(Equal("example.com/mm@sha256:aa"))

		configure(ctx, operatorNamespace, "modelMeshImage: {tag: v2}")
		d := deployment(ns)
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(framework.Container(d, "mm").Image).To(Equal("example.com/mm:v2")) })

		m := defaults("podsPerRuntime: many")
		expectEvent(ctx, m, meshsettings.ReasonRefused, `podsPerRuntime "many"`)
		configure(ctx, operatorNamespace, "modelMeshImage: {tag: v3}")
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(framework.Container(d, "mm").Image).To(Equal("example.com/mm:v3")) })
		Expect(d.Spec.Replicas).To(HaveValue(Equal(int32(3))), "the last good defaults hold")
		defaults("podsPerRuntime: 1")
		waitForReplicas(ctx, ns, 1)
	}, NodeTimeout(specTimeout))

	It("may differ in one namespace, if they affect only this namespace [M36]", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 1")
		managed, foreign := createServingNamespace(ctx), createServingNamespace(ctx)
		d := waitForReplicas(ctx, managed, 1)
		waitForReplicas(ctx, foreign, 1)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, managed), quiet, waitTimeout)
		env.Get(ctx, d)

		By("configuring one namespace")
		m := configure(ctx, foreign, "podsPerRuntime: 4\nenableAccessLogging: true")
		waitForReplicas(ctx, foreign, 4)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, foreign), quiet, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, foreign), quiet)
		expectUnchanged(ctx, d)

		By("requesting settings that a namespace may not set")
		configure(ctx, foreign, "podsPerRuntime: 5\nserviceAccountName: admin\nruntimePodAnnotations: {sidecar.istio.io/userVolume: x}")
		expectEvent(ctx, m, meshsettings.ReasonRefused, "serviceAccountName cannot be set for a single namespace")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, foreign), quiet, waitTimeout)
		template := waitForReplicas(ctx, foreign, 4).Spec.Template
		Expect(template.Spec.ServiceAccountName).NotTo(Equal("admin"))
		Expect(template.Annotations).NotTo(HaveKey("sidecar.istio.io/userVolume"))
		expectUnchanged(ctx, d)

		By("deleting the settings of the namespace")
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		waitForReplicas(ctx, foreign, 1)
	}, NodeTimeout(specTimeout))

	It("are ignored in namespaces that are not enabled", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 1")
		ns := createServingNamespace(ctx)
		waitForReplicas(ctx, ns, 1)
		stranger := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace(ctx, "stranger")}}
		m := configure(ctx, stranger.Name, "[this is, no: settings")
		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 2")
		waitForReplicas(ctx, ns, 2)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, stranger.Name), quiet, waitTimeout)
		env.Get(ctx, m)
		Expect(notes(ctx, m)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("cause no write while they are invalid at the start", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 3")
		ns := createServingNamespace(ctx)
		d := waitForReplicas(ctx, ns, 3)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		env.Get(ctx, d)
		manager.StopTemporarily(ctx)
		m := configure(ctx, operatorNamespace, "podsPerRuntime: none")
		start := env.AuditPosition()
		manager.Restart(ctx)
		expectEvent(ctx, m, meshsettings.ReasonRefused, "no model is served until it is corrected")
		expectUnchanged(ctx, d)
		Expect(env.RequestsIn(manager.User, ns)(start).Writes()).To(BeEmpty())

		configure(ctx, operatorNamespace, awake+"podsPerRuntime: 1")
		waitForReplicas(ctx, ns, 1)
	}, NodeTimeout(specTimeout))
})
