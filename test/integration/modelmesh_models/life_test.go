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

// statusWrites returns the statuses that the manager wrote for a Predictor since a position in the log, without failed requests.
func statusWrites(start framework.AuditPosition, p *v1alpha1.Predictor) []v1alpha1.PredictorStatus {
	GinkgoHelper()
	var out []v1alpha1.PredictorStatus
	for _, e := range env.Since(start).ByUser(manager.User).Writes().Of("predictors") {
		if e.Namespace != p.Namespace || e.Name != p.Name || e.Code != http.StatusOK {
			continue
		}
		var patch struct{ Status v1alpha1.PredictorStatus }
		Expect(json.Unmarshal(e.Request, &patch)).To(Succeed())
		out = append(out, patch.Status)
	}
	return out
}

var _ = Describe("a Predictor", func() {
	DescribeTable("[modelmesh-78] of a known format goes from Pending to Loaded", func(ctx SpecContext, name, format string) {
		start := env.AuditPosition()
		p := predictor(ctx, "new-"+name, `{modelType: `+format+`, storage: {key: k, path: `+name+`/model}}`)
		Expect(stateOf(p.Status)).To(Equal(fresh), "the defaults of the schema")
		waitForState(ctx, p, ready)
		Expect(p.Status.GRPCEndpoint).To(Equal("grpc://modelmesh-serving." + served + ":8033"))
		Expect(p.Status.HTTPEndpoint).To(Equal("http://modelmesh-serving." + served + ":8008"))
		order := []v1alpha1.ModelState{v1alpha1.Pending, v1alpha1.Loading, v1alpha1.Standby, v1alpha1.FailedToLoad, v1alpha1.Loaded}
		last := 0
		for _, s := range statusWrites(start, p) {
			at := slices.Index(order, s.ActiveModelState)
			Expect(at).To(BeNumerically(">=", last), "state %s came back", s.ActiveModelState)
			last = at
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
		waitForState(ctx, predictor(ctx, "schema", `{modelType: {name: onnx}, storage: {key: k, path: a, schemaPath: s.json}}`), ready)
		waitForState(ctx, predictor(ctx, "deprecated", `{modelType: {name: onnx}, path: a, schemaPath: s.json, storage: {s3: {secretKey: k, bucket: b}}}`), ready)
	}, SpecTimeout(specTimeout))

	It("[modelmesh-79] is served together with others of the same and of another type", func(ctx SpecContext) {
		a := predictor(ctx, "one-sklearn", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		b := predictor(ctx, "other-sklearn", `{modelType: {name: sklearn}, storage: {key: k, path: two}}`)
		c := predictor(ctx, "one-onnx", `{modelType: {name: onnx}, storage: {key: k, path: three}}`)
		for _, p := range []*v1alpha1.Predictor{a, b, c} {
			waitForState(ctx, p, ready)
		}
	}, SpecTimeout(specTimeout))

	It("[modelmesh-80] that is updated stays available until the new model is loaded", func(ctx SpecContext) {
		p := predictor(ctx, "updated", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		waitForState(ctx, p, ready)
		start, open := env.AuditPosition(), gates.close("updated-slowly")
		env.Patch(ctx, p, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "updated-slowly/two"}}})
		waitForState(ctx, p, state{true, v1alpha1.Loaded, v1alpha1.Loading, v1alpha1.InProgress})
		open()
		waitForState(ctx, p, ready)
		for _, s := range statusWrites(start, p) {
			Expect(s.Available).To(BeTrue())
		}
	}, SpecTimeout(specTimeout))

	It("[modelmesh-81] that is updated to a model that cannot be loaded keeps serving the old model", func(ctx SpecContext) {
		p := predictor(ctx, "updated-badly", `{modelType: {name: sklearn}, storage: {key: k, path: one}}`)
		waitForState(ctx, p, ready)
		env.Patch(ctx, p, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "invalid/two"}}})
		waitForState(ctx, p, state{true, v1alpha1.Loaded, v1alpha1.FailedToLoad, v1alpha1.BlockedByFailedLoad})
		f := p.Status.LastFailureInfo
		Expect(f.Reason).To(Equal(v1alpha1.ModelLoadFailed))
		Expect(f.Location).NotTo(BeEmpty())
		Expect(f.Time).NotTo(BeNil())
		Expect(f.ModelID).To(HavePrefix("updated-badly__ksp-"))
		env.Patch(ctx, p, map[string]any{"spec": map[string]any{"storage": map[string]any{"path": "one"}}})
		waitForState(ctx, p, ready)
		Expect(p.Status.LastFailureInfo).To(BeNil())
	}, SpecTimeout(specTimeout))

	It("[modelmesh-82] changes path and type in one step", func(ctx SpecContext) {
		p := predictor(ctx, "converted", `{modelType: {name: tensorflow}, storage: {key: k, path: tf}}`)
		waitForState(ctx, p, ready)
		env.Patch(ctx, p, map[string]any{"spec": map[string]any{
			"modelType": map[string]any{"name": "xgboost"}, "storage": map[string]any{"path": "xgb"},
		}})
		env.WaitFor(ctx, p, func(g Gomega) { g.Expect(events(ctx, p)).To(ContainElement("ModelReplaced")) })
		waitForState(ctx, p, ready)
	}, SpecTimeout(specTimeout))

	DescribeTable("[modelmesh-83] [modelmesh-84] that cannot be loaded reports location, time and reason once", func(ctx SpecContext, name, storage, message string) {
		start := env.AuditPosition()
		p := predictor(ctx, "bad-"+name, `{modelType: {name: sklearn}`+storage+`}`)
		waitForState(ctx, p, broken)
		f := p.Status.LastFailureInfo
		Expect(f.Reason).To(Equal(v1alpha1.ModelLoadFailed))
		Expect(f.Message).To(ContainSubstring(message))
		Expect(f.Location).NotTo(BeEmpty())
		Expect(f.Time).NotTo(BeNil())
		Eventually(func() []string { return events(ctx, p) }).WithContext(ctx).WithTimeout(waitTimeout).Should(ContainElement("ModelLoadFailed"))
		Consistently(func(g Gomega) {
			failed := slices.DeleteFunc(statusWrites(start, p), func(s v1alpha1.PredictorStatus) bool { return s.ActiveModelState != v1alpha1.FailedToLoad })
			g.Expect(failed).To(HaveLen(1), "a failed load is written once")
		}).WithTimeout(quiet).WithPolling(quiet / 4).Should(Succeed())
	},
		Entry("no storage", "no-storage", ``, "Predictor Storage field missing", SpecTimeout(specTimeout)),
		Entry("a path that does not exist", "path", `, storage: {key: k, path: missing/model}`, "missing/model", SpecTimeout(specTimeout)),
	)

	DescribeTable("[modelmesh-85] [modelmesh-86] that no runtime supports reports this in its status", func(ctx SpecContext, name, spec string, reason v1alpha1.FailureReason, message string) {
		p := predictor(ctx, "homeless-"+name, spec)
		waitForState(ctx, p, broken)
		f := p.Status.LastFailureInfo
		Expect(f.Reason).To(Equal(reason))
		Expect(f.Message).To(Equal(message))
		Expect(f.Location).To(BeEmpty())
		Expect(f.Time).NotTo(BeNil())
	},
		Entry("unknown type", "type", `{modelType: {name: unheard-of}, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown type, runtime without a name", "pinned-to-nothing", `{modelType: {name: unheard-of}, runtime: {name: ""}, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown protocol", "protocol", `{modelType: {name: sklearn}, protocolVersion: v9, storage: {key: k, path: a}}`,
			v1alpha1.NoSupportingRuntime, "No ServingRuntime supports specified model type and/or protocol", SpecTimeout(specTimeout)),
		Entry("unknown runtime", "runtime", `{modelType: {name: sklearn}, runtime: {name: missing}, storage: {key: k, path: a}}`,
			v1alpha1.RuntimeNotRecognized, "Specified runtime name not recognized: create or enable the runtime missing, or name another one", SpecTimeout(specTimeout)),
	)

	It("is registered only after its contradictory spec is corrected", func(ctx SpecContext) {
		p := predictor(ctx, "contradiction", `{modelType: {name: sklearn}, path: a, storage: {key: k, path: b}}`)
		waitForState(ctx, p, state{false, v1alpha1.Pending, v1alpha1.NoState, v1alpha1.InvalidSpec})
		Expect(p.Status.LastFailureInfo.Message).To(Equal("Only one of spec.path and spec.storage.path can be specified: remove spec.path"))
		Expect(vmodels(ctx, served)).NotTo(ContainElement("contradiction"))
		env.Patch(ctx, p, map[string]any{"spec": map[string]any{"path": ""}})
		waitForState(ctx, p, ready)
	}, SpecTimeout(specTimeout))

	It("is removed from the mesh when it is deleted", func(ctx SpecContext) {
		p := predictor(ctx, "short-lived", `{modelType: {name: sklearn}, storage: {key: k, path: a}}`)
		waitForState(ctx, p, ready)
		Expect(vmodels(ctx, served)).To(ContainElement("short-lived"))
		Expect(env.Admin.Delete(ctx, p)).To(Succeed())
		Eventually(func() []string { return vmodels(ctx, served) }).WithContext(ctx).WithTimeout(waitTimeout).ShouldNot(ContainElement("short-lived"))
	}, SpecTimeout(specTimeout))
})

// events returns the reasons of the events about an object.
func events(ctx SpecContext, about client.Object) []string {
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
