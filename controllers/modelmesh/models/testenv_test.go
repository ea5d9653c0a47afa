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

// fakeMesh returns the answers that the test sets, even answers that no mesh would give. See layered for a mesh that behaves like
// the real one.
type fakeMesh struct {
	// answer to SetVModel and GetVModelStatus; fault is an error instead of either, and clash one of SetVModel alone.
	response     *meshpb.VModelStatusInfo
	fault, clash error
	sets         []*meshpb.SetVModelRequest
	gets         []*meshpb.GetVModelStatusRequest
	deletes      []*meshpb.DeleteVModelRequest
	http         string
	// It runs during the next call.
	meanwhile func()
}

func (f *fakeMesh) runHook() {
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
}

func (f *fakeMesh) SetVModel(_ context.Context, r *meshpb.SetVModelRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	f.runHook()
	f.sets = append(f.sets, r)
	if f.clash != nil {
		return nil, f.clash
	}
	return f.response, f.fault
}

func (f *fakeMesh) DeleteVModel(_ context.Context, r *meshpb.DeleteVModelRequest, _ ...grpc.CallOption) (*meshpb.DeleteVModelResponse, error) {
	f.runHook()
	f.deletes = append(f.deletes, r)
	return &meshpb.DeleteVModelResponse{}, f.fault
}

func (f *fakeMesh) GetVModelStatus(_ context.Context, r *meshpb.GetVModelStatusRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	f.runHook()
	f.gets = append(f.gets, r)
	return f.response, f.fault
}

func (f *fakeMesh) URLs() (grpc, http string) { return grpcAddress, f.http }

// calls is how many there were.
func (f *fakeMesh) calls() int { return len(f.sets) + len(f.gets) + len(f.deletes) }

// loads reports for each SetVModel whether it ordered to load immediately.
func (f *fakeMesh) loads() []bool {
	out := make([]bool, 0, len(f.sets))
	for _, s := range f.sets {
		out = append(out, s.GetLoadNow())
	}
	return out
}

// testEnv is one namespace with a mesh.
type testEnv struct {
	*modelReconciler
	t        *testing.T
	mesh     *fakeMesh
	client   client.Client
	clock    *clocktesting.FakePassiveClock
	recorder *events.FakeRecorder
	kinds    capability.Set
	// connected: the namespace has a client; served: it is enabled; supports: it has runtimes.
	connected, served, supports bool
	patches                     []string
	patchFault                  error
	missing                     []reference.Missing
	// runtimeCause is the cause that the runtimes report; causeUnknown is true until they report one.
	runtimeCause modelmeshcontroller.Cause
	causeUnknown bool
	unknown      bool
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
	w := &testEnv{
		t: t, mesh: &fakeMesh{http: restAddress}, clock: clocktesting.NewFakePassiveClock(now), recorder: events.NewFakeRecorder(50),
		connected: true, served: true, kinds: capability.NewSet(capability.InferenceService),
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Predictor{}, &v1beta1.InferenceService{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: w.patch}).Build()
	w.modelReconciler = &modelReconciler{
		sources: map[string]modelSource{
			modelmesh.SourcePredictor: &predictorSource{client: w.client, series: conditions.NewNotReadySeries("test", "Predictor"), writes: reconciler.NewStatusWrites(w.clock, 0),
				missingReferences: func(string, string) ([]reference.Missing, bool) { return w.missing, !w.unknown }},
			modelmesh.SourceInferenceService: &inferenceServiceSource{client: w.client, served: func() capability.Set { return w.kinds }, clock: w.clock, writes: reconciler.NewStatusWrites(w.clock, 0)},
		},
		client:    func(string) (meshclient.Client, bool) { return w.mesh, w.connected },
		enabled:   func(context.Context, string) (bool, error) { return w.served, nil },
		supported: func(context.Context, string, string) (bool, error) { return w.supports, nil },
		cause: func(context.Context, string, string) (modelmeshcontroller.Cause, bool, error) {
			if w.causeUnknown {
				return modelmeshcontroller.Cause{}, false, nil
			}
			return w.runtimeCause, true, nil
		},
		clock: w.clock, recorder: w.recorder, states: newStateCache(),
	}
	return w
}

// patch counts the writes.
func (env *testEnv) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	env.patches = append(env.patches, string(data))
	if env.patchFault != nil {
		return env.patchFault
	}
	answer, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		env.t.Fatalf("the patched object %T is no client.Object", o)
	}
	if err := c.SubResource(sub).Patch(ctx, answer, p, opts...); err != nil {
		return err
	}
	// As in a real client, the response is decoded into the object, and overwrites the values that its pointers refer to.
	document, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(document, o)
}

var (
	aPredictor = types.NamespacedName{Namespace: "ksp_ns", Name: "digits"}
	aService   = types.NamespacedName{Namespace: "isvc_ns", Name: "digits"}
	inCluster  = types.NamespacedName{Namespace: "ns", Name: "digits"}
)

// predictor is the usual one, as the API server stores it.
func predictor(change ...func(*v1alpha1.Predictor)) *v1alpha1.Predictor {
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

// service is an InferenceService in ModelMesh mode.
func service(t *testing.T, spec string) *v1beta1.InferenceService {
	t.Helper()
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{
		Name: "digits", Namespace: "ns", UID: "uid", Annotations: map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh},
	}}
	if err := yaml.Unmarshal([]byte(spec), &s.Spec.Predictor); err != nil {
		t.Fatal(err)
	}
	return s
}

const aModel = `{model: {modelFormat: {name: sklearn}, storage: {key: localMinIO, path: sklearn/mnist-svm.joblib}}}`

// reconcile calls Reconcile once, which must not fail.
func (env *testEnv) reconcile(key types.NamespacedName) time.Duration {
	env.t.Helper()
	result, err := env.Reconcile(env.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		env.t.Fatal(err)
	}
	return result.RequeueAfter
}

// expectIdle checks that further reconciles neither call nor write.
func (env *testEnv) expectIdle(key types.NamespacedName) {
	env.t.Helper()
	calls, patches := env.mesh.calls(), len(env.patches)
	for range 3 {
		env.reconcile(key)
	}
	if env.mesh.calls() != calls || len(env.patches) != patches {
		env.t.Errorf("%d calls and %d writes although nothing happened", env.mesh.calls()-calls, len(env.patches)-patches)
	}
}

// status is that of the Predictor without its conditions, which follow from the rest: see TestReadyFollowsKstatus.
func (env *testEnv) status() v1alpha1.PredictorStatus {
	env.t.Helper()
	p := &v1alpha1.Predictor{}
	if err := env.client.Get(env.t.Context(), inCluster, p); err != nil {
		env.t.Fatal(err)
	}
	p.Status.Conditions = nil
	return p.Status
}

func (env *testEnv) service() *v1beta1.InferenceService {
	env.t.Helper()
	s := &v1beta1.InferenceService{}
	if err := env.client.Get(env.t.Context(), inCluster, s); err != nil {
		env.t.Fatal(err)
	}
	return s
}

// change edits the Predictor as its user does.
func (env *testEnv) change(edit func(*v1alpha1.Predictor)) {
	env.t.Helper()
	p := &v1alpha1.Predictor{}
	if err := env.client.Get(env.t.Context(), inCluster, p); err != nil {
		env.t.Fatal(err)
	}
	edit(p)
	if err := env.client.Update(env.t.Context(), p); err != nil {
		env.t.Fatal(err)
	}
}

// statusOf returns a response about the model with this ID.
func statusOf(id string, m *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	info := singleModel(m)
	info.ActiveModelId, info.TargetModelId = id, id
	return info
}

// newEvents returns the events since the last call, sorted.
func (env *testEnv) newEvents() []string {
	var out []string
	for {
		select {
		case e := <-env.recorder.Events:
			out = append(out, e)
		default:
			slices.Sort(out)
			return out
		}
	}
}

// oneEvent checks that there is exactly one event, of that kind and reason.
func (env *testEnv) oneEvent(want string) {
	env.t.Helper()
	if got := env.newEvents(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		env.t.Errorf("events %q, want one of %s", got, want)
	}
}

func alreadyExists() error { return status.Error(codes.AlreadyExists, "there is one") }

func requestOf(key types.NamespacedName) ctrl.Request { return ctrl.Request{NamespacedName: key} }
