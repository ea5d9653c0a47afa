package modelmesh_test

import (
	"context"
	"encoding/base64"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// recordings is the directory with the objects that the legacy controller created in a cluster.
const recordings = "../../../controllers/modelmesh/resources/testdata/recordings/"

// createLegacyObjects creates the objects of a recording, except ServiceMonitors, with the field manager of the legacy controller.
// Deployments have the annotations of that controller.
func createLegacyObjects(ctx context.Context, ns, file, recordedNamespace string) {
	GinkgoHelper()
	owners := map[string]types.UID{}
	namespace := framework.NamespaceNamed(ns)
	env.Get(ctx, namespace)
	owners[ns] = namespace.UID
	for _, o := range framework.Recording(recordings+file, recordedNamespace, ns) {
		if o.GetKind() == "ServiceMonitor" {
			continue
		}
		refs := o.GetOwnerReferences()
		for i := range refs {
			refs[i].UID = owners[refs[i].Name]
		}
		o.SetOwnerReferences(refs)
		switch o.GetKind() {
		case "Secret":
			o.Object["data"] = map[string]any{"etcd_connection": "e30="}
		case "ConfigMap":
			texts, _, err := unstructured.NestedStringMap(o.Object, "binaryData")
			Expect(err).NotTo(HaveOccurred())
			for key, text := range texts {
				texts[key] = base64.StdEncoding.EncodeToString([]byte(text))
			}
			Expect(unstructured.SetNestedStringMap(o.Object, texts, "binaryData")).To(Succeed())
		case "Service":
			Expect(unstructured.SetNestedField(o.Object, "None", "spec", "clusterIP")).To(Succeed())
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		case "Deployment":
			text, err := json.Marshal(o.Object)
			Expect(err).NotTo(HaveOccurred())
			o.SetAnnotations(map[string]string{"manifestival": "new", corev1.LastAppliedConfigAnnotation: string(text)})
		}
		delete(o.Object, "status")
		Expect(env.Admin.Create(ctx, o, client.FieldOwner("manager"))).To(Succeed(), "%s %s", o.GetKind(), o.GetName())
		owners[o.GetName()] = o.GetUID()
	}
}

var _ = Describe("A take-over from the legacy controller", Serial, func() {
	It("restarts no pod, keeps patches of third parties, and applies the current pod template at the next change [modelmesh-31] [M40]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		createLegacyObjects(ctx, ns, "custom-runtime-unix-sockets.yaml", "audio")
		createPredictor(ctx, ns, "speech", "own-format")
		deployment := deploymentOf(ns, "own-server")
		patch := `{"spec":{"template":{"spec":{"containers":[{"name":"mm","env":[{"name":"MM_PAYLOAD_PROCESSORS","value":"http://trustyai/consumer"}]}]}}}}`
		env.Get(ctx, deployment)
		Expect(env.Admin.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("trustyai"))).To(Succeed())
		original := deployment.DeepCopy()

		start := env.AuditPosition()
		manager.Restart(ctx)
		for _, o := range []client.Object{deployment, serviceOf(ns), constraints(ns), etcdCopy(ns)} {
			env.WaitFor(ctx, o, func(g Gomega) {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelmesh"), o.GetName())
			})
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)
		Expect(deployment.Spec.Template).To(Equal(original.Spec.Template), "the take-over must not replace pods")
		Expect(deployment.UID).To(Equal(original.UID))
		Expect(deployment.Annotations).To(HaveKey(takeover.AnnotationLegacyTemplate))
		Expect(deployment.Annotations).NotTo(HaveKey("manifestival"))
		Expect(deployment.Annotations).NotTo(HaveKey(corev1.LastAppliedConfigAnnotation))
		copied := etcdCopy(ns)
		env.Get(ctx, copied)
		Expect(string(copied.Data["etcd_connection"])).To(ContainSubstring("mm_ns/" + ns))
		legacyService := serviceOf(ns)
		env.Get(ctx, legacyService)
		Expect(legacyService.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns })
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)

		By("changing the runtime")
		r := runtimeNamed(ns, "own-server")
		env.Patch(ctx, r, map[string]any{"spec": map[string]any{"labels": map[string]any{"more": "labels"}}})
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue("more", "labels")) })
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)
		Expect(deployment.Annotations).NotTo(HaveKey(takeover.AnnotationLegacyTemplate))
		Expect(framework.Variable(framework.Container(deployment, "mm"), "MM_PAYLOAD_PROCESSORS")).To(Equal("http://trustyai/consumer"))
		for _, c := range deployment.Spec.Template.Spec.Containers {
			Expect(c.SecurityContext).NotTo(BeNil(), c.Name)
			Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()), c.Name)
		}
	}, NodeTimeout(specTimeout))

	It("applies the current pod template immediately if the pods are replaced anyway [M40]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		createLegacyObjects(ctx, ns, "builtin-triton-scaled-to-zero.yaml", "vision")
		deployment := deploymentOf(ns, "triton-a")
		patch := `{"spec":{"template":{"spec":{"containers":[{"name":"mm","image":"registry.example.com/mm:older"}]}}}}`
		env.Get(ctx, deployment)
		Expect(env.Admin.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("manager"))).To(Succeed())
		manager.Restart(ctx)
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(framework.Container(deployment, "mm").Image).NotTo(Equal("registry.example.com/mm:older"))
		})
		Expect(deployment.Annotations).NotTo(HaveKey(takeover.AnnotationLegacyTemplate))
		Expect(framework.Container(deployment, "mm").SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("Settings of the administrator", Serial, func() {
	It("take effect without a restart, and an invalid setting changes nothing [M20] [M36]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		runtime := createRuntime(ctx, ns, "r", "onnx")
		createPredictor(ctx, ns, "m", "onnx")
		deployment := deploymentOf(ns, "r")
		waitForReplicas(ctx, deployment, 2)
		settings := env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "podsPerRuntime: 4\n")
		waitForReplicas(ctx, deployment, 4)
		env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "podsPerRuntime: none\n")
		env.Get(ctx, settings)
		env.WaitForEvent(ctx, settings, "ConfigurationRefused", "podsPerRuntime")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		waitForReplicas(ctx, deployment, 4)

		By("renaming the Service")
		env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "inferenceServiceName: other\nruntimePodLabels: {Team.Example: A}\n")
		renamed := &appsv1.Deployment{ObjectMeta: objectMeta(ns, "other-r")}
		env.WaitExists(ctx, renamed, &corev1.Service{ObjectMeta: objectMeta(ns, "other")})
		Expect(renamed.Spec.Template.Labels).To(HaveKeyWithValue("Team.Example", "A"))
		env.WaitDeleted(ctx, deployment, serviceOf(ns))

		By("enabling TLS before its Secret exists [modelmesh-90]")
		env.SetConfigMap(ctx, operatorNamespace, "model-serving-config", "config.yaml", "tls: {secretName: mesh-tls}\n")
		env.WaitForEvent(ctx, runtime, "InvalidRuntime", "unable to access TLS secret 'mesh-tls'")
		Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: objectMeta(ns, "mesh-tls"), StringData: map[string]string{"tls.crt": "x", "tls.key": "y"}})).To(Succeed())
		deployment = deploymentOf(ns, "r")
		env.WaitExists(ctx, deployment)
		Expect(deployment.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("Name", "tls-certs")))
		Expect(framework.Variable(framework.Container(deployment, "mm"), "MM_TLS_KEY_CERT_PATH")).To(Equal("/opt/kserve/mmesh/tls/tls.crt"))

		By("deleting the settings")
		Expect(env.Admin.Delete(ctx, settings)).To(Succeed())
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(deployment.Spec.Template.Spec.Volumes).NotTo(ContainElement(HaveField("Name", "tls-certs")))
			g.Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(2))))
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))
})
