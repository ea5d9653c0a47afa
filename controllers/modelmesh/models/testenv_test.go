package models

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// fakeMesh returns the responses that the test sets, including those that no mesh returns. simulatedMesh behaves like a real mesh.
type fakeMesh struct {
	// response is the response to SetVModel and GetVModelStatus. err is the error of all calls, setErr that of SetVModel only.
	response       *meshpb.VModelStatusInfo
	err, setErr    error
	setRequests    []*meshpb.SetVModelRequest
	getRequests    []*meshpb.GetVModelStatusRequest
	deleteRequests []*meshpb.DeleteVModelRequest
	httpURL        string
	// onNextCall, if set, runs during the next call.
	onNextCall func()
}

func (f *fakeMesh) runHook() {
	if f.onNextCall != nil {
		f.onNextCall()
		f.onNextCall = nil
	}
}

func (f *fakeMesh) SetVModel(_ context.Context, r *meshpb.SetVModelRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	f.runHook()
	f.setRequests = append(f.setRequests, r)
	if f.setErr != nil {
		return nil, f.setErr
	}
	return f.response, f.err
}

func (f *fakeMesh) DeleteVModel(_ context.Context, r *meshpb.DeleteVModelRequest, _ ...grpc.CallOption) (*meshpb.DeleteVModelResponse, error) {
	f.runHook()
	f.deleteRequests = append(f.deleteRequests, r)
	return &meshpb.DeleteVModelResponse{}, f.err
}

func (f *fakeMesh) GetVModelStatus(_ context.Context, r *meshpb.GetVModelStatusRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	f.runHook()
	f.getRequests = append(f.getRequests, r)
	return f.response, f.err
}

func (f *fakeMesh) URLs() (grpc, http string) { return grpcAddress, f.httpURL }

// calls returns the number of calls.
func (f *fakeMesh) calls() int {
	return len(f.setRequests) + len(f.getRequests) + len(f.deleteRequests)
}

// loadNow returns LoadNow of each SetVModel request.
func (f *fakeMesh) loadNow() []bool {
	values := make([]bool, 0, len(f.setRequests))
	for _, s := range f.setRequests {
		values = append(values, s.GetLoadNow())
	}
	return values
}

// testEnv is a reconciler with a fake API server and the fake mesh of one namespace.
type testEnv struct {
	*modelReconciler
	t          *testing.T
	mesh       *fakeMesh
	client     client.Client
	clock      *clocktesting.FakePassiveClock
	recorder   *events.FakeRecorder
	servedAPIs capability.Set
	// hasMeshClient is true if the namespace has a mesh client, hasRuntime if it has a runtime for the model.
	hasMeshClient, namespaceEnabled, hasRuntime bool
	// patches contains the status patches; patchErr is the error of each.
	patches  []string
	patchErr error
	// missingReferences are those of the Predictor; referencesUnknown is true before they are known.
	missingReferences []reference.Missing
	referencesUnknown bool
	// runtimeCause is the reported reason why no runtime has a pod; causeUnknown is true before it is known.
	runtimeCause modelmeshcontroller.Cause
	causeUnknown bool
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	env := &testEnv{
		t: t, mesh: &fakeMesh{httpURL: restAddress}, clock: clocktesting.NewFakePassiveClock(now), recorder: events.NewFakeRecorder(50),
		hasMeshClient: true, namespaceEnabled: true, servedAPIs: capability.NewSet(capability.InferenceService),
	}
	env.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Predictor{}, &v1beta1.InferenceService{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: env.patch}).Build()
	env.modelReconciler = &modelReconciler{
		sources: map[string]modelSource{
			modelmesh.SourcePredictor: &predictorSource{client: env.client, series: conditions.NewNotReadySeries("test", "Predictor"), writes: reconciler.NewStatusWrites(env.clock, 0),
				missingReferences: func(string, string) ([]reference.Missing, bool) { return env.missingReferences, !env.referencesUnknown }},
			modelmesh.SourceInferenceService: &inferenceServiceSource{client: env.client, served: func() capability.Set { return env.servedAPIs }, clock: env.clock, writes: reconciler.NewStatusWrites(env.clock, 0)},
		},
		client:    func(string) (meshclient.Client, bool) { return env.mesh, env.hasMeshClient },
		enabled:   func(context.Context, string) (bool, error) { return env.namespaceEnabled, nil },
		supported: func(context.Context, string, string) (bool, error) { return env.hasRuntime, nil },
		cause: func(context.Context, string, string) (modelmeshcontroller.Cause, bool, error) {
			if env.causeUnknown {
				return modelmeshcontroller.Cause{}, false, nil
			}
			return env.runtimeCause, true, nil
		},
		clock: env.clock, recorder: env.recorder, states: newStateCache(),
	}
	return env
}

// patch records a status patch and applies it, as a real client does.
func (env *testEnv) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	env.patches = append(env.patches, string(data))
	if env.patchErr != nil {
		return env.patchErr
	}
	response, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		env.t.Fatalf("the patched object %T is not a client.Object", o)
	}
	if err := c.SubResource(sub).Patch(ctx, response, p, opts...); err != nil {
		return err
	}
	// A real client decodes the response into the object too, and overwrites the values that its pointers refer to.
	document, err := json.Marshal(response)
	if err != nil {
		return err
	}
	return json.Unmarshal(document, o)
}

var (
	predictorKey        = types.NamespacedName{Namespace: "ns", Name: "ksp_digits"}
	inferenceServiceKey = types.NamespacedName{Namespace: "ns", Name: "isvc_digits"}
	objectKey           = types.NamespacedName{Namespace: "ns", Name: "digits"}
)

// newPredictor returns a valid Predictor with the defaults of its CRD.
func newPredictor(change ...func(*v1alpha1.Predictor)) *v1alpha1.Predictor {
	path, key := "sklearn/mnist-svm.joblib", "localMinIO"
	p := &v1alpha1.Predictor{
		ObjectMeta: metav1.ObjectMeta{Name: "digits", Namespace: "ns", UID: "uid"},
		Spec:       v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "sklearn"}, Storage: &v1alpha1.Storage{Path: &path, Key: &key}},
		Status:     v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Pending},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// newInferenceService returns an InferenceService in ModelMesh mode.
func newInferenceService(t *testing.T, spec string) *v1beta1.InferenceService {
	t.Helper()
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{
		Name: "digits", Namespace: "ns", UID: "uid", Annotations: map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh},
	}}
	if err := yaml.Unmarshal([]byte(spec), &s.Spec.Predictor); err != nil {
		t.Fatal(err)
	}
	return s
}

const sklearnModel = `{model: {modelFormat: {name: sklearn}, storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`

// reconcile reconciles a model and returns the requeue delay. An error fails the test.
func (env *testEnv) reconcile(key types.NamespacedName) time.Duration {
	env.t.Helper()
	result, err := env.Reconcile(env.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		env.t.Fatal(err)
	}
	return result.RequeueAfter
}

// expectSteadyState checks that further reconciles neither call the mesh nor patch the status.
func (env *testEnv) expectSteadyState(key types.NamespacedName) {
	env.t.Helper()
	calls, patches := env.mesh.calls(), len(env.patches)
	for range 3 {
		env.reconcile(key)
	}
	if env.mesh.calls() != calls || len(env.patches) != patches {
		env.t.Errorf("%d calls and %d writes in steady state, want none", env.mesh.calls()-calls, len(env.patches)-patches)
	}
}

// status returns the status of the Predictor without its conditions, which TestKstatusOfConditions checks.
func (env *testEnv) status() v1alpha1.PredictorStatus {
	env.t.Helper()
	p := &v1alpha1.Predictor{}
	if err := env.client.Get(env.t.Context(), objectKey, p); err != nil {
		env.t.Fatal(err)
	}
	p.Status.Conditions = nil
	return p.Status
}

func (env *testEnv) inferenceService() *v1beta1.InferenceService {
	env.t.Helper()
	s := &v1beta1.InferenceService{}
	if err := env.client.Get(env.t.Context(), objectKey, s); err != nil {
		env.t.Fatal(err)
	}
	return s
}

func (env *testEnv) updatePredictor(edit func(*v1alpha1.Predictor)) {
	env.t.Helper()
	p := &v1alpha1.Predictor{}
	if err := env.client.Get(env.t.Context(), objectKey, p); err != nil {
		env.t.Fatal(err)
	}
	edit(p)
	if err := env.client.Update(env.t.Context(), p); err != nil {
		env.t.Fatal(err)
	}
}

// responseFor returns the response for a vmodel with one model of the given ID.
func responseFor(id string, m *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	info := singleModelResponse(m)
	info.ActiveModelId, info.TargetModelId = id, id
	return info
}

// takeEvents returns the Events since the last call, sorted.
func (env *testEnv) takeEvents() []string {
	var emitted []string
	for {
		select {
		case e := <-env.recorder.Events:
			emitted = append(emitted, e)
		default:
			slices.Sort(emitted)
			return emitted
		}
	}
}

// expectEvent checks that exactly one Event was emitted, and that it starts with want.
func (env *testEnv) expectEvent(want string) {
	env.t.Helper()
	if got := env.takeEvents(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		env.t.Errorf("events %q, want one that starts with %q", got, want)
	}
}

func alreadyExists() error { return status.Error(codes.AlreadyExists, "vmodel exists") }

func requestFor(key types.NamespacedName) ctrl.Request { return ctrl.Request{NamespacedName: key} }
