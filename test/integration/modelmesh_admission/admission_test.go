package modelmesh_admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// denialPrefix is the start of the API server's error for a denied request. Clients may compare the name of the webhook.
const denialPrefix = `admission webhook "servingruntime.modelmesh-webhook-server.default" denied the request: `

var _ = Describe("Runtimes at admission", func() {
	DescribeTable("are validated by the rules of autoscaling", func(ctx SpecContext, annotations, spec, message string) {
		namespace := env.Namespace(ctx, "rules")
		for _, kind := range []string{namespaced, clusterWide} {
			err := env.Admin.Create(ctx, newRuntime(kind, namespace, annotations, spec), client.DryRunAll)
			if message == "" {
				Expect(err).NotTo(HaveOccurred(), kind)
				continue
			}
			Expect(err).To(MatchError(denialPrefix+message), kind)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", kind, err)
		}
	},
		Entry("[modelmesh-1] accepted with all annotations", hpaAnnotations, multiModelSpec, ""),
		Entry("[modelmesh-2] rejected with an unknown class", "serving.kserve.io/autoscalerClass: test", multiModelSpec, "[test] is not a supported autoscaler class type.\n"),
		Entry("rejected with the class external", "serving.kserve.io/autoscalerClass: external", multiModelSpec, "unknown autoscaler class [external]"),
		Entry("[modelmesh-3] rejected with a target below 0", hpaAnnotations+", serving.kserve.io/targetUtilizationPercentage: '-1'", multiModelSpec,
			"The target utilization percentage should be a [1-100] integer."),
		Entry("[modelmesh-3] rejected with a target above 100", hpaAnnotations+", serving.kserve.io/targetUtilizationPercentage: '101'", multiModelSpec,
			"The target utilization percentage should be a [1-100] integer."),
		Entry("[modelmesh-4] rejected with min-scale 0", hpaAnnotations+", serving.kserve.io/min-scale: '0'", multiModelSpec, "The min replicas should be more than 0"),
		Entry("[modelmesh-5] rejected with min-scale above max-scale", hpaAnnotations+", serving.kserve.io/min-scale: '4'", multiModelSpec,
			"The max replicas should be same or bigger than min replicas."),
		Entry("[modelmesh-6] rejected with spec.replicas", hpaAnnotations, multiModelSpec+", replicas: 1", "Autoscaler is enabled and also replicas variable set. You can not set both."),
		Entry("[modelmesh-7] accepted with memory", hpaAnnotations+", serving.kserve.io/metrics: memory", multiModelSpec, ""),
		Entry("[modelmesh-7] rejected with an unknown metric", hpaAnnotations+", serving.kserve.io/metrics: conccurrency", multiModelSpec, "[conccurrency] is not a supported metric.\n"),
		Entry("[modelmesh-8] accepted without a class", "", multiModelSpec, ""),
		Entry("[modelmesh-8] accepted with the class none [M18]", "serving.kserve.io/autoscalerClass: none", multiModelSpec+", replicas: 5", ""),
		Entry("accepted with a class of KServe on a single-model runtime", "serving.kserve.io/autoscalerClass: keda", singleModelSpec, ""),
	)

	It("are rejected with replicas that break the runtime lists of clients [M6]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "numbers")
		for _, kind := range []string{namespaced, clusterWide} {
			for _, spec := range []string{multiModelSpec, singleModelSpec} {
				err := env.Admin.Create(ctx, newRuntime(kind, namespace, "", spec+", replicas: 70000"), client.DryRunAll)
				Expect(err).To(MatchError(ContainSubstring("spec.replicas: Invalid value: 70000: must be a number from 0 to 65535")))
				err = env.Admin.Create(ctx, newRuntime(kind, namespace, "", spec+", replicas: -1"), client.DryRunAll)
				Expect(err).To(MatchError(ContainSubstring("spec.replicas: Invalid value: -1: must be a number from 0 to 65535")))
				Expect(env.Admin.Create(ctx, newRuntime(kind, namespace, "", spec+", replicas: 65535"), client.DryRunAll)).To(Succeed())
			}
		}
	}, NodeTimeout(specTimeout))

	It("can finish their deletion while the manager is down, and be created if they are for KServe only", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "manager-down")
		terminating := newRuntime(namespaced, namespace, "", multiModelSpec)
		terminating.SetFinalizers([]string{"example.com/kept"})
		Expect(env.Admin.Create(ctx, terminating)).To(Succeed())
		Expect(env.Admin.Delete(ctx, terminating)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { waitForWebhooks(ctx) }, NodeTimeout(specTimeout))
		manager.StopTemporarily(ctx)
		err := env.Admin.Create(ctx, newRuntime(namespaced, namespace, "", multiModelSpec), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring(`failed calling webhook "servingruntime.modelmesh-webhook-server.default"`)))
		Expect(env.Admin.Create(ctx, newRuntime(namespaced, namespace, "", singleModelSpec))).To(Succeed())
		Expect(env.Admin.Create(ctx, newRuntime(clusterWide, "", "", singleModelSpec+", multiModel: false"), client.DryRunAll)).To(Succeed())
		Expect(updateRuntime(ctx, env.Admin, terminating, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })).To(Succeed())
		env.WaitDeleted(ctx, terminating)
	}, NodeTimeout(specTimeout))

	It("can be changed despite stored violations, but not with new violations", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "stored")
		user, warnings := env.WithWarnings()
		stored := newRuntime(namespaced, namespace, "serving.kserve.io/autoscalerClass: keda", multiModelSpec+", replicas: 70000")
		whileDisabled(ctx, func() {
			Expect(user.Create(ctx, stored)).To(Succeed())
			Expect(warnings.Texts).To(ConsistOf(ContainSubstring("the component modelmesh is disabled")))
		})

		warnings.Texts = nil
		Expect(updateRuntime(ctx, user, stored, setAnnotation("example.com/note", "x"))).To(Succeed())
		Expect(warnings.Texts).To(ConsistOf(
			ContainSubstring("spec.replicas: Invalid value: 70000"), ContainSubstring("[keda] is not a supported autoscaler class type.")))
		Expect(updateRuntime(ctx, user, stored, setAnnotation("serving.kserve.io/autoscalerClass", "test"))).
			To(MatchError(denialPrefix + "[test] is not a supported autoscaler class type.\n"))
		Expect(updateRuntime(ctx, user, stored, func(o *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(o.Object, int64(-1), "spec", "replicas")).To(Succeed())
		})).To(MatchError(ContainSubstring("spec.replicas: Invalid value: -1")))
		warnings.Texts = nil
		Expect(updateRuntime(ctx, user, stored, func(o *unstructured.Unstructured) {
			setAnnotation("serving.kserve.io/autoscalerClass", "")(o)
			unstructured.RemoveNestedField(o.Object, "spec", "replicas")
		})).To(Succeed())
		Expect(warnings.Texts).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("Warnings about runtimes", func() {
	DescribeTable("name the fields that prevent the creation of pods or have no effect", func(ctx SpecContext, spec, text string) {
		user, warnings := env.WithWarnings()
		Expect(user.Create(ctx, newRuntime(clusterWide, "", "", "multiModel: true, grpcEndpoint: 'port:9000', "+spec), client.DryRunAll)).To(Succeed())
		if text == "" {
			Expect(warnings.Texts).To(BeEmpty())
			return
		}
		Expect(warnings.Texts).To(ContainElement(ContainSubstring(text)))
	},
		Entry("[modelmesh-29] no warning about an additional container",
			"containers: [{name: server, securityContext: {capabilities: {add: [CHOWN]}}, ports: [{name: own, containerPort: 54321}], volumeMounts: [{name: own, mountPath: /own}]}], volumes: [{name: own, emptyDir: {}}]", ""),
		Entry("[modelmesh-29] no warning about an adapter with its container", "containers: [{name: mlserver}], builtInAdapter: {serverType: mlserver}", ""),
		Entry("[modelmesh-30] a container named mm", "containers: [{name: mm}]", "container name mm is reserved for internal use"),
		Entry("[modelmesh-30] a container named mm-", "containers: [{name: mm-x}]", "container name cannot start with \"mm-\""),
		Entry("[modelmesh-30] a lifecycle", "containers: [{name: c, lifecycle: {preStop: {exec: {command: [x]}}}}]", "ReadinessProbe and Lifecycle are managed by modelmesh"),
		Entry("[modelmesh-30] a readinessProbe", "containers: [{name: c, readinessProbe: {exec: {command: [x]}}}]", "ReadinessProbe and Lifecycle are managed by modelmesh"),
		Entry("[modelmesh-30] a port named grpc", "containers: [{name: c, ports: [{name: grpc, containerPort: 1}]}]", "port name grpc is reserved"),
		Entry("[modelmesh-30] a port named mm-", "containers: [{name: c, ports: [{name: mm-x, containerPort: 1}]}]", "mm-"),
		Entry("[modelmesh-30] port 8080", "containers: [{name: c, ports: [{containerPort: 8080}]}]", "Port 8080 is reserved for internal use"),
		Entry("[modelmesh-30] port 11888", "containers: [{name: c, ports: [{containerPort: 11888}]}]", "Port range [11881-11899] is reserved for internal use"),
		Entry("[modelmesh-30] a mount of tc-config", "containers: [{name: c, volumeMounts: [{name: tc-config, mountPath: /x}]}]", "volume tc-config is reserved for internal use"),
		Entry("[modelmesh-30] a mount of mm-", "containers: [{name: c, volumeMounts: [{name: mm-x, mountPath: /x}]}]", "mm-x"),
		Entry("[modelmesh-30] an adapter without its container", "containers: [{name: c}], builtInAdapter: {serverType: mlserver}", "must include runtime container with name mlserver"),
		Entry("a container name that other settings reserve [M41]", "containers: [{name: oauth-proxy}]", "spec.containers[oauth-proxy]: ModelMesh has a container of that name"),
		Entry("[UP-F6] no warning about fields that KServe added between 0.16 and 0.19",
			"schedulerName: packed, volumes: [{name: own, emptyDir: {}}], containers: [{name: c, restartPolicy: Never, "+
				"restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}], "+
				"env: [{name: A, valueFrom: {fileKeyRef: {volumeName: own, path: own.env, key: A}}}]}]", ""),
		Entry("[UP-F6] a field without effect", "hostIPC: true, containers: [{name: c}]", "spec.hostIPC has no effect on pods of ModelMesh: remove it"),
		Entry("a numeric endpoint [M43]", "grpcDataEndpoint: '8085', containers: [{name: c}]", "8085"),
	)
})
