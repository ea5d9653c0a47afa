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

// sklearn is a model that loads immediately.
const sklearn = `{modelType: {name: sklearn}, storage: {key: k, path: a}}`

var _ = Describe("an InferenceService", func() {
	DescribeTable("[modelmesh-89] in ModelMesh mode becomes ready and reports its URL", func(ctx SpecContext, name, spec string) {
		s := service(ctx, served, "isvc-"+name, spec)
		becomesReady(ctx, s)
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

	It("does not change fields of KServe", func(ctx SpecContext) {
		s := service(ctx, served, "shared", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		becomesReady(ctx, s)
		env.Patch(ctx, s, map[string]any{"status": map[string]any{
			"observedGeneration": 7, "servingRuntimeName": "mlserver",
			"components": map[string]any{"predictor": map[string]any{"latestReadyRevision": "r1"}},
		}}, "status")
		env.Patch(ctx, s, map[string]any{"spec": map[string]any{"predictor": map[string]any{"model": map[string]any{"storageUri": "s3://bucket/invalid/b"}}}})
		env.WaitFor(ctx, s, func(g Gomega) {
			g.Expect(s.Status.ModelStatus.TransitionStatus).To(Equal(v1alpha1.BlockedByFailedLoad))
		})
		whole := &unstructured.Unstructured{}
		whole.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.KindInferenceService))
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(s), whole)).To(Succeed())
		status, _ := whole.Object["status"].(map[string]any)
		Expect(status).To(HaveKeyWithValue("observedGeneration", BeEquivalentTo(7)))
		Expect(status).To(HaveKeyWithValue("servingRuntimeName", "mlserver"))
		revision, _, err := unstructured.NestedString(status, "components", "predictor", "latestReadyRevision")
		Expect(err).NotTo(HaveOccurred())
		Expect(revision).To(Equal("r1"))
		Expect(conditionOf(s, "Ready").Status).To(Equal(corev1.ConditionTrue), "the old model answers")
	}, SpecTimeout(specTimeout))

	It("[UP-F6] keeps fields that have no effect, and reports them", func(ctx SpecContext) {
		object := &unstructured.Unstructured{}
		read(&object.Object, `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService,
			metadata: {name: more, annotations: {serving.kserve.io/deploymentMode: ModelMesh}},
			spec: {predictor: {hostnameOverride: h, logger: {batchSize: 2}, model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}}}`)
		create(ctx, served, object)
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "more"}}
		becomesReady(ctx, s)
		Eventually(func() []string { return events(ctx, s) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(ContainElement("FieldIgnored"))
		env.Get(ctx, object)
		predictor, _, err := unstructured.NestedMap(object.Object, "spec", "predictor")
		Expect(err).NotTo(HaveOccurred())
		Expect(predictor).To(And(HaveKeyWithValue("hostnameOverride", "h"), HaveKey("logger")))
	}, SpecTimeout(specTimeout))

	It("that cannot be converted reports the reason", func(ctx SpecContext) {
		s := service(ctx, served, "unconvertible", `{model: {modelFormat: {name: sklearn}, storageUri: "hdfs://bucket/a"}}`)
		env.WaitFor(ctx, s, func(g Gomega) {
			c := conditionOf(s, "PredictorReady")
			g.Expect(c.Status).To(Equal(corev1.ConditionFalse))
			g.Expect(c.Reason).To(Equal("InvalidPredictorSpec"))
			g.Expect(c.Message).To(ContainSubstring("unsupported storageUri scheme"))
			g.Expect(events(ctx, s)).To(ContainElement("InvalidPredictorSpec"))
		})
	}, SpecTimeout(specTimeout))

	It("of another mode is ignored, and one that leaves the mode is removed from the mesh", func(ctx SpecContext) {
		other := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "of-others"}}
		read(&other.Spec.Predictor, `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		create(ctx, served, other)
		leaving := service(ctx, served, "leaving", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		becomesReady(ctx, leaving)
		Expect(vmodels(ctx, served)).To(And(ContainElement("leaving"), Not(ContainElement("of-others"))))
		env.SetAnnotation(ctx, leaving, v1beta1.AnnotationDeploymentMode, "RawDeployment")
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).ShouldNot(ContainElement("leaving"))
		env.Get(ctx, other)
		Expect(other.Status.ModelStatus).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("waits while a Predictor has its model ID", func(ctx SpecContext) {
		p := predictor(ctx, "contested", sklearn)
		waitForState(ctx, p, ready)
		s := service(ctx, served, "contested", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		env.WaitFor(ctx, s, func(g Gomega) {
			g.Expect(conditionOf(s, "Ready").Message).To(Equal("Predictor already exists with the same name from a different source"))
			g.Expect(s.Status.ModelStatus.TransitionStatus).To(Equal(v1alpha1.InvalidSpec))
		})
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		becomesReady(ctx, s)
	}, SpecTimeout(specTimeout))
})

func becomesReady(ctx SpecContext, s *v1beta1.InferenceService) {
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

var _ = Describe("a namespace", func() {
	It("[modelmesh-88] with only foreign runtimes has pending models, and no Deployment", func(ctx SpecContext) {
		ns := namespace(ctx, "single")
		single := runtime("single", "sklearn:0")
		single.Spec.MultiModel = new(false)
		create(ctx, ns, single)
		p := predictorIn(ctx, ns, "waiting", sklearn)
		f := waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy)
		Expect(stateOf(p.Status)).To(Equal(fresh))
		Expect(*f).To(Equal(v1alpha1.FailureInfo{
			Reason: v1alpha1.RuntimeUnhealthy, Message: "Waiting for runtime Pod to become available", ModelID: f.ModelID,
		}))
		deployments := &appsv1.DeploymentList{}
		Expect(env.Admin.List(ctx, deployments, client.InNamespace(ns))).To(Succeed())
		Expect(deployments.Items).To(BeEmpty())

		By("creating a runtime")
		create(ctx, ns, runtime("multi", "sklearn:0"))
		waitForState(ctx, p, ready)
		Expect(p.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("whose runtimes have no pods shows the cause in the status of its models", func(ctx SpecContext) {
		ns := namespace(ctx, "refused")
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "tight"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		create(ctx, ns, quota)
		create(ctx, ns, runtime("refused", "sklearn:0"))
		invalid := runtime("invalid", "onnx:1")
		invalid.Spec.GRPCEndpoint = new("8085")
		create(ctx, ns, invalid)
		models := map[string]string{"sklearn": "runtime refused: pods cannot be created: exceeded quota: tight", "onnx": ": invalid runtime invalid: "}
		for name, cause := range models {
			p := predictorIn(ctx, ns, name, strings.ReplaceAll(sklearn, "sklearn", name))
			Eventually(func(g Gomega) {
				g.Expect(waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy).Message).To(And(HavePrefix("Waiting for"), ContainSubstring(cause)))
				g.Expect(meta.IsStatusConditionTrue(p.Status.Conditions, "Stalled")).To(Equal(name == "onnx"))
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		}
		Expect(env.Admin.Delete(ctx, quota)).To(Succeed())
		invalid.Spec.GRPCEndpoint = new("port:8085")
		Expect(env.Admin.Update(ctx, invalid)).To(Succeed())
		for name := range models {
			waitForState(ctx, &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, ready)
		}
	}, SpecTimeout(specTimeout))

	It("that is disabled is reported in the status of its models until it is enabled", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "unserved")
		create(ctx, ns, runtime("multi", "sklearn:0"))
		p := predictorIn(ctx, ns, "early", sklearn)
		Expect(waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy).Message).To(ContainSubstring("modelmesh-enabled=true"))
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "true")
		waitForState(ctx, p, ready)
	}, SpecTimeout(specTimeout))

	It("without pods gives models the statuses that the legacy controller reported", func(ctx SpecContext) {
		ns := namespace(ctx, "recorded")
		for _, name := range []string{"autoscaled-runtime", "custom-runtime-unix-sockets", "claims-and-inferenceservice"} {
			objects, err := framework.ReadObjects(filepath.Join("../../../controllers/modelmesh/models/testdata/recordings", name+".yaml"))
			Expect(err).NotTo(HaveOccurred())
			input, recorded := objects[0], objects[1]
			create(ctx, ns, input)
			want, _ := recorded.Object["status"].(map[string]any)
			env.WaitFor(ctx, input, func(g Gomega) { g.Expect(asRecorded(input)).To(Equal(want)) })
		}
	}, SpecTimeout(specTimeout))

	It("has models whose conditions kstatus understands", func(ctx SpecContext) {
		ns := namespace(ctx, "judged")
		create(ctx, ns, runtime("multi", "sklearn:0"))
		good := predictorIn(ctx, ns, "good", `{modelType: {name: sklearn}, storage: {path: a}}`)
		failing := predictorIn(ctx, ns, "failing", `{modelType: {name: sklearn}, storage: {path: missing}}`)
		lacking := predictorIn(ctx, ns, "lacking", `{modelType: {name: sklearn}, storage: {key: k, path: a, parameters: {type: pvc, name: models}}}`)
		failureOf := func(p *v1alpha1.Predictor) string {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindPredictor))
			Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(p), live)).To(Succeed())
			result, err := kstatus.Compute(live)
			Expect(err).NotTo(HaveOccurred())
			return string(result.Status) + ": " + result.Message
		}
		eventually := func(p *v1alpha1.Predictor, want string) {
			GinkgoHelper()
			Eventually(failureOf).WithContext(ctx).WithArguments(p).WithTimeout(waitTimeout).WithPolling(poll).Should(Equal(want))
		}
		eventually(good, "Current: Resource is Ready")
		Eventually(failureOf).WithContext(ctx).WithArguments(failing).WithTimeout(waitTimeout).WithPolling(poll).Should(HavePrefix("Failed: "))
		eventually(lacking, "InProgress: In namespace "+ns+": Secret storage-config does not exist; create it; PersistentVolumeClaim models does not exist; create it")
		storage := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "storage-config"}, StringData: map[string]string{"other": "{}"}}
		create(ctx, ns, storage)
		create(ctx, ns, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "models"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		eventually(lacking, "InProgress: In namespace "+ns+": Secret storage-config has no key k; add it")
		env.Patch(ctx, storage, map[string]any{"stringData": map[string]any{"k": "{}"}})
		eventually(lacking, "Current: Resource is Ready")
		env.Patch(ctx, good, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "missing"}}})
		Eventually(failureOf).WithContext(ctx).WithArguments(good).WithTimeout(waitTimeout).WithPolling(poll).Should(HavePrefix("Failed: "), "the former model still answers")
	}, SpecTimeout(specTimeout))

	It("sends no request and no call in the steady state", func(ctx SpecContext) {
		ns := namespace(ctx, "resting")
		create(ctx, ns, runtime("multi", "sklearn:0"))
		a := predictorIn(ctx, ns, "loaded", sklearn)
		b := predictorIn(ctx, ns, "failed", `{modelType: {name: sklearn}, storage: {key: k, path: missing}}`)
		c := predictorIn(ctx, ns, "homeless", `{modelType: {name: unheard-of}, storage: {key: k, path: a}}`)
		s := service(ctx, ns, "service", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		waitForState(ctx, a, ready)
		waitForState(ctx, b, broken)
		waitForState(ctx, c, broken)
		becomesReady(ctx, s)
		inNamespace := func(start framework.AuditPosition) framework.Entries {
			return framework.UnexpectedWhenIdle(env.Since(start), manager.User).Where(func(e framework.Entry) bool { return e.Namespace == ns })
		}
		Eventually(func(g Gomega) {
			start, before := env.AuditPosition(), calls(ns)
			g.Consistently(func(g Gomega) {
				g.Expect(inNamespace(start)).To(BeEmpty())
				g.Expect(calls(ns)).To(Equal(before))
			}).WithTimeout(quiet).WithPolling(quiet / 5).Should(Succeed())
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(time.Second).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("is deleted with its models, without waiting for a finalizer", func(ctx SpecContext) {
		ns := namespace(ctx, "going")
		create(ctx, ns, runtime("multi", "sklearn:0"))
		p := predictorIn(ctx, ns, "in-it", sklearn)
		waitForState(ctx, p, ready)
		Expect(p.Finalizers).To(BeEmpty())
		gone := framework.NamespaceNamed(ns)
		Expect(env.Admin.Delete(ctx, gone)).To(Succeed())
		env.WaitDeleted(ctx, gone)
	}, SpecTimeout(specTimeout))
})

// asRecorded returns a status in the form of the recordings, which lack reasons.
func asRecorded(object *unstructured.Unstructured) map[string]any {
	status, _ := object.DeepCopy().Object["status"].(map[string]any)
	delete(status, "observedGeneration") // which the replaced operator did not write
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

var _ = Describe("the manager", Serial, func() {
	It("removes models from the mesh that were deleted during its downtime", func(ctx SpecContext) {
		p := predictor(ctx, "orphan", sklearn)
		s := service(ctx, served, "orphaned-service", `{model: {modelFormat: {name: sklearn}, storageUri: "s3://bucket/a"}}`)
		stays := predictor(ctx, "stays", sklearn)
		waitForState(ctx, p, ready)
		becomesReady(ctx, s)
		waitForState(ctx, stays, ready)
		manager.StopTemporarily(ctx)
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		Expect(env.Admin.Delete(ctx, s)).To(Succeed())
		Expect(vmodels(ctx, served)).To(ContainElements("orphan", "orphaned-service", "stays"))
		manager.Restart(ctx)
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).
			Should(And(Not(ContainElements("orphan")), Not(ContainElements("orphaned-service")), ContainElement("stays")))
	}, SpecTimeout(specTimeout))

	It("removes models from the mesh that were deleted while no pod was running", func(ctx SpecContext) {
		ns := namespace(ctx, "podless")
		r := runtime("multi", "sklearn:0")
		create(ctx, ns, r)
		p := predictorIn(ctx, ns, "left-over", sklearn)
		waitForState(ctx, p, ready)
		Expect(env.Admin.Delete(ctx, r)).To(Succeed())
		waitForFailure(ctx, p, v1alpha1.RuntimeUnhealthy)
		Expect(p.Status.Available).To(BeFalse())
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		env.WaitDeleted(ctx, p)
		Expect(vmodels(ctx, ns)).To(ContainElement("left-over"))
		create(ctx, ns, runtime("again", "sklearn:0"))
		Eventually(func() []string { return vmodels(ctx, ns) }).WithContext(ctx).WithTimeout(waitTimeout).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
})
