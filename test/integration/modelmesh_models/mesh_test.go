package modelmesh_models_test

import (
	"path/filepath"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// sklearn is the spec of a Predictor whose model loads immediately.
const sklearn = `{modelType: {name: sklearn}, storage: {key: k, path: a}}`

var _ = Describe("An InferenceService", func() {
	DescribeTable("[modelmesh-89] in ModelMesh mode becomes ready and reports its URL", func(ctx SpecContext, name, spec string) {
		s := createInferenceService(ctx, served, "isvc-"+name, spec)
		waitReady(ctx, s)
		Expect(s.Status.URL).To(Equal("grpc://modelmesh-serving." + served + ":8033"))
		Expect(s.Status.Components["predictor"]).To(Equal(v1beta1.ComponentStatus{
			URL: s.Status.URL, GRPCURL: s.Status.URL, RestURL: "http://modelmesh-serving." + served + ":8008",
		}))
		Expect(s.Status.Address.URL).To(Equal("http://modelmesh-serving." + served + ":8008/v2/models/isvc-" + name))
		Expect(s.Status.ModelStatus.States.ActiveModelState).To(Equal(v1alpha1.Loaded))
		Expect(s.Status.ModelStatus.TransitionStatus).To(Equal(v1alpha1.UpToDate))
	},
		Entry("model", "model", `{model: {modelFormat: {name: sklearn}, storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`, SpecTimeout(specTimeout)),
		Entry("URI", "uri", `{model: {modelFormat: {name: onnx}, storageUri: "s3://bucket/onnx/mnist.onnx"}}`, SpecTimeout(specTimeout)),
		Entry("framework", "framework", `{sklearn: {storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`, SpecTimeout(specTimeout)),
	)

	It("keeps the fields of KServe in its status", func(ctx SpecContext) {
		s := createInferenceService(ctx, served, "shared", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		waitReady(ctx, s)
		env.Patch(ctx, s, map[string]any{"status": map[string]any{
			"observedGeneration": 7, "servingRuntimeName": "mlserver",
			"components": map[string]any{"predictor": map[string]any{"latestReadyRevision": "r1"}},
		}}, "status")
		env.Patch(ctx, s, map[string]any{"spec": map[string]any{"predictor": map[string]any{"model": map[string]any{"storageUri": "s3://bucket/invalid/b"}}}})
		env.WaitFor(ctx, s, func(g Gomega) {
			g.Expect(s.Status.ModelStatus.TransitionStatus).To(Equal(v1alpha1.BlockedByFailedLoad))
		})
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KindInferenceService))
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(s), live)).To(Succeed())
		status, _ := live.Object["status"].(map[string]any)
		Expect(status).To(HaveKeyWithValue("observedGeneration", BeEquivalentTo(7)))
		Expect(status).To(HaveKeyWithValue("servingRuntimeName", "mlserver"))
		revision, _, err := unstructured.NestedString(status, "components", "predictor", "latestReadyRevision")
		Expect(err).NotTo(HaveOccurred())
		Expect(revision).To(Equal("r1"))
		Expect(conditionOf(s, "Ready").Status).To(Equal(corev1.ConditionTrue), "the previous model is still available")
	}, SpecTimeout(specTimeout))

	It("[UP-F6] keeps fields that have no effect, and reports them", func(ctx SpecContext) {
		object := &unstructured.Unstructured{}
		unmarshal(&object.Object, `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService,
			metadata: {name: more, annotations: {serving.kserve.io/deploymentMode: ModelMesh}},
			spec: {predictor: {hostnameOverride: h, logger: {batchSize: 2}, model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}}}`)
		create(ctx, served, object)
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "more"}}
		waitReady(ctx, s)
		Eventually(func() []string { return eventReasons(ctx, s) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(ContainElement("FieldIgnored"))
		env.Get(ctx, object)
		predictor, _, err := unstructured.NestedMap(object.Object, "spec", "predictor")
		Expect(err).NotTo(HaveOccurred())
		Expect(predictor).To(And(HaveKeyWithValue("hostnameOverride", "h"), HaveKey("logger")))
	}, SpecTimeout(specTimeout))

	It("that cannot be converted reports the reason", func(ctx SpecContext) {
		s := createInferenceService(ctx, served, "unconvertible", `{model: {modelFormat: {name: sklearn}, storageUri: "hdfs://bucket/a"}}`)
		env.WaitFor(ctx, s, func(g Gomega) {
			c := conditionOf(s, "PredictorReady")
			g.Expect(c.Status).To(Equal(corev1.ConditionFalse))
			g.Expect(c.Reason).To(Equal("InvalidPredictorSpec"))
			g.Expect(c.Message).To(ContainSubstring("unsupported storageUri scheme"))
			g.Expect(eventReasons(ctx, s)).To(ContainElement("InvalidPredictorSpec"))
		})
	}, SpecTimeout(specTimeout))

	It("is ignored in another deployment mode, and removed from the mesh when its mode changes", func(ctx SpecContext) {
		other := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "unmanaged"}}
		unmarshal(&other.Spec.Predictor, `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		create(ctx, served, other)
		switched := createInferenceService(ctx, served, "leaving", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		waitReady(ctx, switched)
		Expect(vmodels(ctx, served)).To(And(ContainElement("leaving"), Not(ContainElement("unmanaged"))))
		env.SetAnnotation(ctx, switched, v1beta1.AnnotationDeploymentMode, "RawDeployment")
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).ShouldNot(ContainElement("leaving"))
		env.Get(ctx, other)
		Expect(other.Status.ModelStatus).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("waits while a Predictor uses the same model ID", func(ctx SpecContext) {
		p := createPredictor(ctx, "contested", sklearn)
		waitForState(ctx, p, readyState)
		s := createInferenceService(ctx, served, "contested", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		env.WaitFor(ctx, s, func(g Gomega) {
			g.Expect(conditionOf(s, "Ready").Message).To(Equal("Predictor already exists with the same name from a different source"))
			g.Expect(s.Status.ModelStatus.TransitionStatus).To(Equal(v1alpha1.InvalidSpec))
		})
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		waitReady(ctx, s)
	}, SpecTimeout(specTimeout))
})

func waitReady(ctx SpecContext, s *v1beta1.InferenceService) {
	GinkgoHelper()
	env.WaitFor(ctx, s, func(g Gomega) {
		for _, c := range []string{"PredictorReady", "Ready"} {
			g.Expect(conditionOf(s, c).Status).To(Equal(corev1.ConditionTrue), "%+v", s.Status)
		}
		g.Expect(s.Status.ModelStatus.States.ActiveModelState).To(Equal(v1alpha1.Loaded))
	})
}

func conditionOf(s *v1beta1.InferenceService, name string) v1beta1.Condition {
	for _, c := range s.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return v1beta1.Condition{}
}

var _ = Describe("A namespace", func() {
	It("[modelmesh-88] with only single-model runtimes has pending models and no Deployment", func(ctx SpecContext) {
		ns := createNamespace(ctx, "single")
		single := newRuntime("single", "sklearn:0")
		single.Spec.MultiModel = new(false)
		create(ctx, ns, single)
		p := createPredictorIn(ctx, ns, "waiting", sklearn)
		f := waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy)
		Expect(stateOf(p.Status)).To(Equal(initialState))
		Expect(*f).To(Equal(v1alpha1.FailureInfo{
			Reason: v1alpha1.RuntimeUnhealthy, Message: "Waiting for runtime Pod to become available", ModelID: f.ModelID,
		}))
		deployments := &appsv1.DeploymentList{}
		Expect(env.Admin.List(ctx, deployments, client.InNamespace(ns))).To(Succeed())
		Expect(deployments.Items).To(BeEmpty())

		By("creating a runtime")
		create(ctx, ns, newRuntime("multi", "sklearn:0"))
		waitForState(ctx, p, readyState)
		Expect(p.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("whose runtimes have no pods reports the cause in the status of its models", func(ctx SpecContext) {
		ns := createNamespace(ctx, "refused")
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "tight"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		create(ctx, ns, quota)
		create(ctx, ns, newRuntime("refused", "sklearn:0"))
		invalid := newRuntime("invalid", "onnx:1")
		invalid.Spec.GRPCEndpoint = new("8085")
		create(ctx, ns, invalid)
		models := map[string]string{"sklearn": "runtime refused: pods cannot be created: exceeded quota: tight", "onnx": ": invalid runtime invalid: "}
		for name, cause := range models {
			p := createPredictorIn(ctx, ns, name, strings.ReplaceAll(sklearn, "sklearn", name))
			Eventually(func(g Gomega) {
				g.Expect(waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy).Message).To(And(HavePrefix("Waiting for"), ContainSubstring(cause)))
				g.Expect(meta.IsStatusConditionTrue(p.Status.Conditions, "Stalled")).To(Equal(name == "onnx"))
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
		}
		Expect(env.Admin.Delete(ctx, quota)).To(Succeed())
		invalid.Spec.GRPCEndpoint = new("port:8085")
		Expect(env.Admin.Update(ctx, invalid)).To(Succeed())
		for name := range models {
			waitForState(ctx, &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, readyState)
		}
	}, SpecTimeout(specTimeout))

	It("that is not enabled is reported in the status of its models", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "disabled")
		create(ctx, ns, newRuntime("multi", "sklearn:0"))
		p := createPredictorIn(ctx, ns, "early", sklearn)
		Expect(waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy).Message).To(ContainSubstring("modelmesh-enabled=true"))
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "true")
		waitForState(ctx, p, readyState)
	}, SpecTimeout(specTimeout))

	It("without pods has models with the status that the legacy controller reported", func(ctx SpecContext) {
		ns := createNamespace(ctx, "recorded")
		for _, name := range []string{"autoscaled-runtime", "custom-runtime-unix-sockets", "claims-and-inferenceservice"} {
			objects, err := framework.ReadObjects(filepath.Join("../../../controllers/modelmesh/models/testdata/recordings", name+".yaml"))
			Expect(err).NotTo(HaveOccurred())
			input, recorded := objects[0], objects[1]
			create(ctx, ns, input)
			want, _ := recorded.Object["status"].(map[string]any)
			env.WaitFor(ctx, input, func(g Gomega) { g.Expect(asRecorded(input)).To(Equal(want)) })
		}
	}, SpecTimeout(specTimeout))

	It("has models whose health kstatus computes from their conditions", func(ctx SpecContext) {
		ns := createNamespace(ctx, "kstatus")
		create(ctx, ns, newRuntime("multi", "sklearn:0"))
		healthy := createPredictorIn(ctx, ns, "good", `{modelType: {name: sklearn}, storage: {path: a}}`)
		failing := createPredictorIn(ctx, ns, "failing", `{modelType: {name: sklearn}, storage: {path: missing}}`)
		missingStorage := createPredictorIn(ctx, ns, "missing-storage", `{modelType: {name: sklearn}, storage: {key: k, path: a, parameters: {type: pvc, name: models}}}`)
		statusOf := func(p *v1alpha1.Predictor) string {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindPredictor))
			Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(p), live)).To(Succeed())
			result, err := kstatus.Compute(live)
			Expect(err).NotTo(HaveOccurred())
			return string(result.Status) + ": " + result.Message
		}
		waitForStatus := func(p *v1alpha1.Predictor, want string) {
			GinkgoHelper()
			Eventually(statusOf).WithContext(ctx).WithArguments(p).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Equal(want))
		}
		waitForStatus(healthy, "Current: Resource is Ready")
		Eventually(statusOf).WithContext(ctx).WithArguments(failing).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(HavePrefix("Failed: "))
		waitForStatus(missingStorage, "InProgress: In namespace "+ns+": Secret storage-config does not exist; create it; PersistentVolumeClaim models does not exist; create it")
		storage := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "storage-config"}, StringData: map[string]string{"other": "{}"}}
		create(ctx, ns, storage)
		create(ctx, ns, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "models"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		waitForStatus(missingStorage, "InProgress: In namespace "+ns+": Secret storage-config has no key k; add it")
		env.Patch(ctx, storage, map[string]any{"stringData": map[string]any{"k": "{}"}})
		waitForStatus(missingStorage, "Current: Resource is Ready")
		env.Patch(ctx, healthy, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "missing"}}})
		Eventually(statusOf).WithContext(ctx).WithArguments(healthy).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(HavePrefix("Failed: "), "even if the previous model is still available")
	}, SpecTimeout(specTimeout))

	It("causes no request and no call in the steady state", func(ctx SpecContext) {
		ns := createNamespace(ctx, "steady")
		create(ctx, ns, newRuntime("multi", "sklearn:0"))
		a := createPredictorIn(ctx, ns, "loaded", sklearn)
		b := createPredictorIn(ctx, ns, "failed", `{modelType: {name: sklearn}, storage: {key: k, path: missing}}`)
		c := createPredictorIn(ctx, ns, "unsupported", `{modelType: {name: unknown}, storage: {key: k, path: a}}`)
		s := createInferenceService(ctx, ns, "service", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		waitForState(ctx, a, readyState)
		waitForState(ctx, b, failedState)
		waitForState(ctx, c, failedState)
		waitReady(ctx, s)
		inNamespace := func(start framework.AuditPosition) framework.Entries {
			return framework.UnexpectedWhenIdle(env.Since(start), manager.User).Where(func(e framework.Entry) bool { return e.Namespace == ns })
		}
		Eventually(func(g Gomega) {
			start, before := env.AuditPosition(), calls(ns)
			g.Consistently(func(g Gomega) {
				g.Expect(inNamespace(start)).To(BeEmpty())
				g.Expect(calls(ns)).To(Equal(before))
			}).WithTimeout(idlePeriod).WithPolling(idlePeriod / 5).Should(Succeed())
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(time.Second).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("is deleted with its models, without waiting for a finalizer", func(ctx SpecContext) {
		ns := createNamespace(ctx, "deleted")
		create(ctx, ns, newRuntime("multi", "sklearn:0"))
		p := createPredictorIn(ctx, ns, "model", sklearn)
		waitForState(ctx, p, readyState)
		Expect(p.Finalizers).To(BeEmpty())
		deleted := framework.NamespaceNamed(ns)
		Expect(env.Admin.Delete(ctx, deleted)).To(Succeed())
		env.WaitDeleted(ctx, deleted)
	}, SpecTimeout(specTimeout))
})

// asRecorded returns the status of an object with only the fields that the recordings contain, and with their placeholder for times.
func asRecorded(object *unstructured.Unstructured) map[string]any {
	status, _ := object.DeepCopy().Object["status"].(map[string]any)
	delete(status, "observedGeneration") // the legacy controller did not set it
	if object.GetKind() == v1alpha1.KindPredictor {
		delete(status, "conditions")
	}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		delete(m, "reason")
		delete(m, "message")
		m["lastTransitionTime"] = "<time>"
	}
	return status
}

var _ = Describe("The manager", Serial, func() {
	It("removes models from the mesh that were deleted during its downtime", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "orphan", sklearn)
		service := createInferenceService(ctx, served, "orphaned-service", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		kept := createPredictor(ctx, "kept", sklearn)
		waitForState(ctx, predictor, readyState)
		waitReady(ctx, service)
		waitForState(ctx, kept, readyState)
		manager.StopTemporarily(ctx)
		Expect(env.Admin.Delete(ctx, predictor)).To(Succeed())
		Expect(env.Admin.Delete(ctx, service)).To(Succeed())
		Expect(vmodels(ctx, served)).To(ContainElements("orphan", "orphaned-service", "kept"))
		manager.Restart(ctx)
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).
			Should(And(Not(ContainElements("orphan")), Not(ContainElements("orphaned-service")), ContainElement("kept")))
	}, SpecTimeout(specTimeout))

	It("removes models from the mesh that were deleted while no pod was running", func(ctx SpecContext) {
		ns := createNamespace(ctx, "podless")
		r := newRuntime("multi", "sklearn:0")
		create(ctx, ns, r)
		p := createPredictorIn(ctx, ns, "deleted", sklearn)
		waitForState(ctx, p, readyState)
		Expect(env.Admin.Delete(ctx, r)).To(Succeed())
		waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy)
		Expect(p.Status.Available).To(BeFalse())
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		env.WaitDeleted(ctx, p)
		Expect(vmodels(ctx, ns)).To(ContainElement("deleted"))
		create(ctx, ns, newRuntime("again", "sklearn:0"))
		Eventually(func() []string { return vmodels(ctx, ns) }).WithContext(ctx).WithTimeout(waitTimeout).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
})
