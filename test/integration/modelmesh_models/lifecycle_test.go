package modelmesh_models_test

import (
	"encoding/json"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// statusWrites returns the statuses that the manager wrote for a Predictor since a position in the audit log, without failed requests.
func statusWrites(start framework.AuditPosition, predictor *v1alpha1.Predictor) []v1alpha1.PredictorStatus {
	GinkgoHelper()
	var out []v1alpha1.PredictorStatus
	for _, e := range env.Since(start).ByUser(manager.User).Writes().ForResource("predictors") {
		if e.Namespace != predictor.Namespace || e.Name != predictor.Name || e.Code != http.StatusOK {
			continue
		}
		var patch struct{ Status v1alpha1.PredictorStatus }
		Expect(json.Unmarshal(e.Request, &patch)).To(Succeed())
		out = append(out, patch.Status)
	}
	return out
}

var _ = Describe("A Predictor", func() {
	DescribeTable("[modelmesh-78] of a known format goes from Pending to Loaded", func(ctx SpecContext, name, format string) {
		start := env.AuditPosition()
		predictor := createPredictor(ctx, "new-"+name, `{modelType: `+format+`, storage: {key: k, path: `+name+`/model}}`)
		Expect(stateOf(predictor.Status)).To(Equal(initialState), "the schema sets defaults in the status")
		waitForState(ctx, predictor, readyState)
		Expect(predictor.Status.GRPCEndpoint).To(Equal("grpc://modelmesh-serving." + served + ":8033"))
		Expect(predictor.Status.HTTPEndpoint).To(Equal("http://modelmesh-serving." + served + ":8008"))
		order := []v1alpha1.ModelState{v1alpha1.Pending, v1alpha1.Loading, v1alpha1.Standby, v1alpha1.FailedToLoad, v1alpha1.Loaded}
		last := 0
		for _, s := range statusWrites(start, predictor) {
			index := slices.Index(order, s.ActiveModelState)
			Expect(index).To(BeNumerically(">=", last), "state %s follows a later state", s.ActiveModelState)
			last = index
		}
	},
		Entry("tensorflow", "tensorflow", `{name: tensorflow, version: "1"}`, SpecTimeout(specTimeout)),
		Entry("keras", "keras", `{name: keras}`, SpecTimeout(specTimeout)),
		Entry("onnx", "onnx", `{name: onnx}`, SpecTimeout(specTimeout)),
		Entry("pytorch", "pytorch", `{name: pytorch, version: "1"}`, SpecTimeout(specTimeout)),
		Entry("xgboost", "xgboost", `{name: xgboost}`, SpecTimeout(specTimeout)),
		Entry("lightgbm", "lightgbm", `{name: lightgbm}`, SpecTimeout(specTimeout)),
		Entry("openvino", "openvino", `{name: openvino_ir}`, SpecTimeout(specTimeout)),
		Entry("FIL", "fil", `{name: fil}`, SpecTimeout(specTimeout)),
	)

	It("[modelmesh-78] loads with a schema and in the deprecated form", func(ctx SpecContext) {
		waitForState(ctx, createPredictor(ctx, "schema", `{modelType: {name: onnx}, storage: {key: k, path: a, schemaPath: s.json}}`), readyState)
		waitForState(ctx, createPredictor(ctx, "deprecated", `{modelType: {name: onnx}, path: a, schemaPath: s.json, storage: {s3: {secretKey: k, bucket: b}}}`), readyState)
	}, SpecTimeout(specTimeout))

	It("[modelmesh-79] is served together with others of the same and of another type", func(ctx SpecContext) {
		a := createPredictor(ctx, "one-sklearn", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		b := createPredictor(ctx, "other-sklearn", `{modelType: {name: sklearn}, storage: {key: k, path: two}}`)
		c := createPredictor(ctx, "one-onnx", `{modelType: {name: onnx}, storage: {key: k, path: three}}`)
		for _, predictor := range []*v1alpha1.Predictor{a, b, c} {
			waitForState(ctx, predictor, readyState)
		}
	}, SpecTimeout(specTimeout))

	It("[modelmesh-80] that is updated stays available until the new model is loaded", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "updated", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		waitForState(ctx, predictor, readyState)
		start, open := env.AuditPosition(), gates.close("updated-slowly")
		env.Patch(ctx, predictor, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "updated-slowly/two"}}})
		waitForState(ctx, predictor, state{true, v1alpha1.Loaded, v1alpha1.Loading, v1alpha1.InProgress})
		open()
		waitForState(ctx, predictor, readyState)
		Expect(statusWrites(start, predictor)).To(HaveEach(HaveField("Available", BeTrue())))
	}, SpecTimeout(specTimeout))

	It("[modelmesh-81] that is updated to a model that cannot be loaded keeps serving the old model", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "updated-badly", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		waitForState(ctx, predictor, readyState)
		env.Patch(ctx, predictor, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "invalid/two"}}})
		waitForState(ctx, predictor, state{true, v1alpha1.Loaded, v1alpha1.FailedToLoad, v1alpha1.BlockedByFailedLoad})
		failure := predictor.Status.LastFailureInfo
		Expect(failure.Reason).To(Equal(v1alpha1.ModelLoadFailed))
		Expect(failure.Location).NotTo(BeEmpty())
		Expect(failure.Time).NotTo(BeNil())
		Expect(failure.ModelID).To(HavePrefix("updated-badly__ksp-"))
		env.Patch(ctx, predictor, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "one"}}})
		waitForState(ctx, predictor, readyState)
		Expect(predictor.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("[modelmesh-82] changes path and type in one step", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "converted", `{modelType: {name: tensorflow}, storage: {key: k, path: tf}}`)
		waitForState(ctx, predictor, readyState)
		env.Patch(ctx, predictor, map[string]any{"spec": map[string]any{
			"modelType": map[string]any{"name": "xgboost"}, "storage": map[string]any{"path": "xgb"},
		}})
		env.WaitFor(ctx, predictor, func(g Gomega) { g.Expect(eventReasons(ctx, predictor)).To(ContainElement("ModelReplaced")) })
		waitForState(ctx, predictor, readyState)
	}, SpecTimeout(specTimeout))

	DescribeTable("[modelmesh-83] [modelmesh-84] that cannot be loaded reports location, time and reason once", func(ctx SpecContext, name, storage, message string) {
		start := env.AuditPosition()
		predictor := createPredictor(ctx, "bad-"+name, `{modelType: {name: sklearn}`+storage+`}`)
		waitForState(ctx, predictor, failedState)
		failure := predictor.Status.LastFailureInfo
		Expect(failure.Reason).To(Equal(v1alpha1.ModelLoadFailed))
		Expect(failure.Message).To(ContainSubstring(message))
		Expect(failure.Location).NotTo(BeEmpty())
		Expect(failure.Time).NotTo(BeNil())
		Eventually(func() []string { return eventReasons(ctx, predictor) }).WithContext(ctx).WithTimeout(waitTimeout).Should(ContainElement("ModelLoadFailed"))
		Consistently(func(g Gomega) {
			failed := slices.DeleteFunc(statusWrites(start, predictor), func(s v1alpha1.PredictorStatus) bool { return s.ActiveModelState != v1alpha1.FailedToLoad })
			g.Expect(failed).To(HaveLen(1), "the failure must be written once")
		}).WithTimeout(idlePeriod).WithPolling(idlePeriod / 4).Should(Succeed())
	},
		Entry("no storage", "no-storage", ``, "Predictor Storage field missing", SpecTimeout(specTimeout)),
		Entry("a path that does not exist", "path", `, storage: {key: k, path: missing/model}`, "missing/model", SpecTimeout(specTimeout)),
	)

	DescribeTable("[modelmesh-85] [modelmesh-86] that no runtime supports reports this in its status", func(ctx SpecContext, name, spec string, reason v1alpha1.FailureReason, message string) {
		predictor := createPredictor(ctx, "unsupported-"+name, spec)
		waitForState(ctx, predictor, failedState)
		failure := predictor.Status.LastFailureInfo
		Expect(failure.Reason).To(Equal(reason))
		Expect(failure.Message).To(Equal(message))
		Expect(failure.Location).To(BeEmpty())
		Expect(failure.Time).NotTo(BeNil())
	},
		Entry("unknown type", "type", `{modelType: {name: unknown}, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown type, runtime without a name", "empty-runtime", `{modelType: {name: unknown}, runtime: {name: ""}, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown protocol", "protocol", `{modelType: {name: sklearn}, protocolVersion: v9, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown runtime", "runtime", `{modelType: {name: sklearn}, runtime: {name: missing}, storage: {key: k, path: a}}`,
			v1alpha1.RuntimeNotRecognized, "Specified runtime name not recognized: create or enable the runtime missing, or name another one", SpecTimeout(specTimeout)),
	)

	It("is registered only after a contradictory spec is corrected", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "contradiction", `{modelType: {name: sklearn}, path: a, storage: {key: k, path: b}}`)
		waitForState(ctx, predictor, state{false, v1alpha1.Pending, v1alpha1.NoState, v1alpha1.InvalidSpec})
		Expect(predictor.Status.LastFailureInfo.Message).To(Equal("Only one of spec.path and spec.storage.path can be specified: remove spec.path"))
		Expect(vmodels(ctx, served)).NotTo(ContainElement("contradiction"))
		env.Patch(ctx, predictor, map[string]any{"spec": map[string]any{"path": ""}})
		waitForState(ctx, predictor, readyState)
	}, SpecTimeout(specTimeout))

	It("is removed from the mesh when it is deleted", func(ctx SpecContext) {
		predictor := createPredictor(ctx, "short-lived", `{modelType: {name: sklearn}, storage: {key: k, path: a}}`)
		waitForState(ctx, predictor, readyState)
		Expect(vmodels(ctx, served)).To(ContainElement("short-lived"))
		Expect(env.Admin.Delete(ctx, predictor)).To(Succeed())
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).ShouldNot(ContainElement("short-lived"))
	}, SpecTimeout(specTimeout))
})

// eventReasons returns the reasons of the Events about an object.
func eventReasons(ctx SpecContext, about client.Object) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(about.GetNamespace()))).To(Succeed())
	out := []string{}
	for i := range list.Items {
		if r := list.Items[i].Regarding; r.Name == about.GetName() && r.UID == about.GetUID() {
			out = append(out, list.Items[i].Reason)
		}
	}
	return out
}
