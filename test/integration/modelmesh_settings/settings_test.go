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
		configure(ctx, operatorNamespace, noScaleToZero)
		ns := createServingNamespace(ctx)
		waitForReplicas(ctx, ns, 2)

		By("changing the settings of the pods and the Service")
		configure(ctx, operatorNamespace, noScaleToZero+`
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
		deployment := waitForReplicas(ctx, ns, 3)
		template := deployment.Spec.Template
		Expect(template.Labels).To(HaveKeyWithValue("example.com/Cost.Centre", "42"))
		Expect(template.Annotations).To(SatisfyAll(
			HaveKeyWithValue("Example.com/Note", "kept as Written"), HaveKeyWithValue("prometheus.io/port", "2222"), HaveKeyWithValue("prometheus.io/scheme", "http")))
		Expect(template.Spec.ServiceAccountName).To(Equal("runner"))
		Expect(template.Spec.ImagePullSecrets).To(ConsistOf(corev1.LocalObjectReference{Name: "pull"}))
		Expect(framework.Container(deployment, "rest-proxy").Name).To(BeEmpty())
		mm := framework.Container(deployment, "mm")
		Expect(mm.Image).To(Equal("kserve/modelmesh:v9"))
		Expect(mm.Resources.Limits.Cpu().String()).To(Equal("4"))
		Expect(mm.Resources.Limits.Memory().String()).To(Equal("448Mi"), "a limit that is not set keeps its default")
		for name, value := range map[string]string{
			"MM_SVC_GRPC_PORT": "8034", "MM_LOG_EACH_INVOKE": "true", "MM_SVC_GRPC_MAX_MSG_SIZE": "33554432", "EXTRA": "1.10",
			"MM_METRICS": "prometheus:port=2222;scheme=http", "MM_PAYLOAD_PROCESSORS": "example:8080/consumer/kserve/v2 example2:8080/consumer/kserve/v2",
		} {
			Expect(framework.Variable(mm, name)).To(Equal(value), name)
		}
		service := serviceOf(ns)
		env.WaitFor(ctx, service, func(g Gomega) {
			ports := map[string]int32{}
			for _, port := range service.Spec.Ports {
				ports[port.Name] = port.Port
			}
			g.Expect(ports).To(Equal(map[string]int32{"grpc": 8034, "prometheus": 2222}))
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)

		By("removing the settings from the ConfigMap")
		configure(ctx, operatorNamespace, noScaleToZero)
		waitForReplicas(ctx, ns, 2)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
	}, NodeTimeout(specTimeout))

	It("stay unchanged while the document is invalid, which is reported [modelmesh-37] [modelmesh-41] [M36]", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 1")
		ns := createServingNamespace(ctx)
		deployment := waitForReplicas(ctx, ns, 1)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)
		for text, part := range map[string]string{
			`podsPerRuntime: "none"`:      `podsPerRuntime "none": must be a whole number from 0 to 65535`,
			"payloadProcessors: ['a b']":  "Error parsing payload processor 'a b': endpoint must not contain spaces.",
			"modelMeshResources: {a: [b":  "not valid YAML",
			"inferenceServiceName: Wrong": "must be the name of a Service",
		} {
			configMap := configure(ctx, operatorNamespace, noScaleToZero+text)
			waitForWarning(ctx, configMap, meshsettings.ReasonRefused, part)
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		expectUnchanged(ctx, deployment)

		By("setting an unknown key")
		configMap := configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 4\npodPerRuntimes: 5")
		waitForReplicas(ctx, ns, 4)
		waitForWarning(ctx, configMap, meshsettings.ReasonIgnored, "podPerRuntimes is unknown and has no effect (did you mean podsPerRuntime?)")
	}, NodeTimeout(specTimeout))

	It("override a ConfigMap of defaults, whose changes take effect too", func(ctx SpecContext) {
		setDefaults := func(text string) *corev1.ConfigMap {
			return env.SetConfigMap(ctx, operatorNamespace, meshsettings.DefaultsName, meshsettings.DefaultsKey, noScaleToZero+text)
		}
		setDefaults("podsPerRuntime: 3\nmodelMeshImage: {name: example.com/mm, tag: v1, digest: 'sha256:aa'}\nrestProxy: {enabled: true}")
		ns := createServingNamespace(ctx)
		Expect(framework.Container(waitForReplicas(ctx, ns, 3), "mm").Image).To(Equal("example.com/mm@sha256:aa"))

		configure(ctx, operatorNamespace, "modelMeshImage: {tag: v2}")
		deployment := deploymentOf(ns)
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(framework.Container(deployment, "mm").Image).To(Equal("example.com/mm:v2")) })

		configMap := setDefaults("podsPerRuntime: many")
		waitForWarning(ctx, configMap, meshsettings.ReasonRefused, `podsPerRuntime "many"`)
		configure(ctx, operatorNamespace, "modelMeshImage: {tag: v3}")
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(framework.Container(deployment, "mm").Image).To(Equal("example.com/mm:v3")) })
		Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(3))), "the last valid defaults stay in effect")
		setDefaults("podsPerRuntime: 1")
		waitForReplicas(ctx, ns, 1)
	}, NodeTimeout(specTimeout))

	It("may differ in one namespace, if they affect only this namespace [M36]", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 1")
		shared, configured := createServingNamespace(ctx), createServingNamespace(ctx)
		deployment := waitForReplicas(ctx, shared, 1)
		waitForReplicas(ctx, configured, 1)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, shared), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)

		By("configuring one namespace")
		configMap := configure(ctx, configured, "podsPerRuntime: 4\nenableAccessLogging: true")
		waitForReplicas(ctx, configured, 4)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, configured), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, configured), idlePeriod)
		expectUnchanged(ctx, deployment)

		By("setting fields that are not allowed in a single namespace")
		configure(ctx, configured, "podsPerRuntime: 5\nserviceAccountName: admin\nruntimePodAnnotations: {sidecar.istio.io/userVolume: x}")
		waitForWarning(ctx, configMap, meshsettings.ReasonRefused, "serviceAccountName cannot be set for a single namespace")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, configured), idlePeriod, waitTimeout)
		template := waitForReplicas(ctx, configured, 4).Spec.Template
		Expect(template.Spec.ServiceAccountName).NotTo(Equal("admin"))
		Expect(template.Annotations).NotTo(HaveKey("sidecar.istio.io/userVolume"))
		expectUnchanged(ctx, deployment)

		By("deleting the settings of the namespace")
		Expect(env.Admin.Delete(ctx, configMap)).To(Succeed())
		waitForReplicas(ctx, configured, 1)
	}, NodeTimeout(specTimeout))

	It("are ignored in namespaces that are not enabled", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 1")
		ns := createServingNamespace(ctx)
		waitForReplicas(ctx, ns, 1)
		disabled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace(ctx, "disabled")}}
		configMap := configure(ctx, disabled.Name, "[invalid: YAML")
		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 2")
		waitForReplicas(ctx, ns, 2)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, disabled.Name), idlePeriod, waitTimeout)
		env.Get(ctx, configMap)
		Expect(getEvents(ctx, configMap)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("cause no write if they are invalid when the manager starts", func(ctx SpecContext) {
		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 3")
		ns := createServingNamespace(ctx)
		deployment := waitForReplicas(ctx, ns, 3)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)
		manager.StopTemporarily(ctx)
		configMap := configure(ctx, operatorNamespace, "podsPerRuntime: none")
		start := env.AuditPosition()
		manager.Restart(ctx)
		waitForWarning(ctx, configMap, meshsettings.ReasonRefused, "runtimes and models are not reconciled until the document is corrected")
		expectUnchanged(ctx, deployment)
		Expect(env.RequestsIn(manager.User, ns)(start).Writes()).To(BeEmpty())

		configure(ctx, operatorNamespace, noScaleToZero+"podsPerRuntime: 1")
		waitForReplicas(ctx, ns, 1)
	}, NodeTimeout(specTimeout))
})
