package models

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// simulatedMesh is the mesh of one namespace: the fake routing layer with an in-memory store. Loads of paths that contain "bad" fail.
type simulatedMesh struct {
	*modelmesh.Layer
	store *modelmesh.Memory
	// unreachable fails all calls. hasPods is true if a pod is ready.
	unreachable, hasPods bool
	// loadTime is the duration of a load. loads counts the loads by path.
	loadTime time.Duration
	mu       sync.Mutex
	loads    map[string]int
}

var podOfFormatA = modelmesh.Instance{ID: "one", Labels: []string{"mt:a"}}

const typeConstraints = `{"_default":{"required":["_no_runtime"]},"mt:a":{"required":["mt:a"]},"mt:b":{"required":["mt:b"]}}`

// newSimulatedMesh returns a mesh with one pod, for models of format a.
func newSimulatedMesh(t testing.TB, change ...func(*modelmesh.LayerOptions)) *simulatedMesh {
	t.Helper()
	m := &simulatedMesh{store: &modelmesh.Memory{}, hasPods: true, loadTime: time.Second, loads: map[string]int{}}
	options := modelmesh.LayerOptions{Store: m.store, Loader: m.load, Log: logr.Discard()}
	for _, c := range change {
		c(&options)
	}
	var err error
	if m.Layer, err = modelmesh.NewLayer(options); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.SetConstraints([]byte(typeConstraints)), m.SetInstances(t.Context(), []modelmesh.Instance{podOfFormatA})); err != nil {
		t.Fatal(err)
	}
	elapse(time.Second) // until clients can call the pod
	return m
}

// elapse advances the time and waits until all other goroutines are blocked: the order of events at the same time is random.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (m *simulatedMesh) load(ctx context.Context, l modelmesh.Load) error {
	m.mu.Lock()
	m.loads[l.Path]++
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.loadTime):
	}
	if strings.Contains(l.Path, "bad") {
		return status.Error(codes.InvalidArgument, "cannot load")
	}
	return nil
}

// loadCount returns the number of loads of a path.
func (m *simulatedMesh) loadCount(path string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads[path]
}

func (m *simulatedMesh) checkReachable() error {
	switch {
	case !m.hasPods:
		return meshclient.ErrNoAddress
	case m.unreachable:
		return status.Error(codes.Unavailable, "connection refused")
	default:
		return nil
	}
}

func (m *simulatedMesh) URLs() (grpc, http string) { return grpcAddress, "" }

func (m *simulatedMesh) SetVModel(ctx context.Context, r *meshpb.SetVModelRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	if err := m.checkReachable(); err != nil {
		return nil, err
	}
	return m.Layer.SetVModel(ctx, r)
}

func (m *simulatedMesh) DeleteVModel(ctx context.Context, r *meshpb.DeleteVModelRequest, _ ...grpc.CallOption) (*meshpb.DeleteVModelResponse, error) {
	if err := m.checkReachable(); err != nil {
		return nil, err
	}
	return m.Layer.DeleteVModel(ctx, r)
}

func (m *simulatedMesh) GetVModelStatus(ctx context.Context, r *meshpb.GetVModelStatusRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	if err := m.checkReachable(); err != nil {
		return nil, err
	}
	return m.Layer.GetVModelStatus(ctx, r)
}

// simulation is a test environment with a simulated mesh, a queue and timers.
type simulation struct {
	*testEnv
	mesh   *simulatedMesh
	timers map[types.NamespacedName]time.Time
	// created is the number of created resources, from which their UIDs are derived.
	created int

	mu       sync.Mutex // the mesh writes to etcd concurrently
	queue    map[types.NamespacedName]bool
	watching bool // the watch of etcd is connected
}

func newSimulation(t *testing.T, change ...func(*modelmesh.LayerOptions)) *simulation {
	sim := &simulation{testEnv: newTestEnv(t), queue: map[types.NamespacedName]bool{}, timers: map[types.NamespacedName]time.Time{}, watching: true}
	sim.mesh = newSimulatedMesh(t, change...)
	sim.mesh.store.OnCommit = sim.deliverEvents
	sim.modelReconciler.client = func(string) (meshclient.Client, bool) { return sim.mesh, true }
	sim.modelReconciler.clock = clock.RealClock{}
	sim.modelReconciler.recorder = events.NewFakeRecorder(10000)
	return sim
}

// deliverEvents enqueues the models of etcd keys, as the etcd watcher does.
func (sim *simulation) deliverEvents(values map[string][]byte) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for key := range values {
		name, found := strings.CutPrefix(key, "vmodels/")
		if id, isRegistry := strings.CutPrefix(key, "registry/"); isRegistry {
			name, _, found = strings.Cut(id, "__")
		}
		if found && sim.watching {
			sim.enqueueName(name)
		}
	}
}

// enqueueName marks the state of a model dirty and enqueues the model. The names of InferenceServices start with s.
func (sim *simulation) enqueueName(name string) {
	source := "ksp"
	if strings.HasPrefix(name, "s") {
		source = "isvc"
	}
	key := modelKey(source, types.NamespacedName{Namespace: "ns", Name: name})
	sim.states.markDirty(key)
	sim.queue[key] = true
}

func (sim *simulation) enqueue(keys ...types.NamespacedName) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, key := range keys {
		sim.queue[key] = true
	}
}

// run reconciles due models for the given time.
func (sim *simulation) run(t testing.TB, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); elapse(50 * time.Millisecond) {
		for sim.reconcile(t) {
		}
	}
}

// restartOperator deletes all states, enqueues every resource and lists the models of the mesh.
func (sim *simulation) restartOperator(t testing.TB) {
	sim.states.entries, sim.breakers.byNamespace = map[types.NamespacedName]modelState{}, nil
	clear(sim.timers)
	sim.enqueue(sim.resources(t)...)
	sim.relist(t)
}

// relist connects the watch of etcd and delivers all keys, as the etcd watcher does.
func (sim *simulation) relist(t testing.TB) {
	all, err := sim.mesh.store.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sim.mu.Lock()
	sim.watching = true
	sim.mu.Unlock()
	sim.deliverEvents(all)
	for _, source := range []string{"ksp", "isvc"} { // deleted keys cause events too
		for _, key := range sim.states.keysOfSource(source) {
			sim.states.markDirty(key)
			sim.enqueue(key)
		}
	}
}

func (sim *simulation) resources(t testing.TB) []types.NamespacedName {
	var keys []types.NamespacedName
	var predictors v1alpha1.PredictorList
	var services v1beta1.InferenceServiceList
	if err := sim.client.List(context.Background(), &predictors); err != nil {
		t.Fatal(err)
	}
	if err := sim.client.List(context.Background(), &services); err != nil {
		t.Fatal(err)
	}
	for i := range predictors.Items {
		keys = append(keys, modelKey("ksp", client.ObjectKeyFromObject(&predictors.Items[i])))
	}
	for i := range services.Items {
		keys = append(keys, modelKey("isvc", client.ObjectKeyFromObject(&services.Items[i])))
	}
	return keys
}

// reconcile reconciles the first model of the queue. It returns false if the queue is empty.
func (sim *simulation) reconcile(t testing.TB) bool {
	sim.mu.Lock()
	for key, due := range sim.timers {
		if !time.Now().Before(due) {
			delete(sim.timers, key)
			sim.queue[key] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(sim.queue), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) > 0 {
		delete(sim.queue, keys[0])
	}
	sim.mu.Unlock()
	if len(keys) == 0 {
		return false
	}
	key := keys[0]
	result, err := sim.Reconcile(context.Background(), requestFor(key))
	if err != nil {
		t.Fatalf("%s: unexpected error: %v", key, err)
	}
	synctest.Wait()
	delete(sim.timers, key)
	if result.RequeueAfter > 0 {
		sim.timers[key] = time.Now().Add(result.RequeueAfter)
	}
	return true
}

// edit creates, updates or deletes the resource of a model, and enqueues the model.
func (sim *simulation) edit(t testing.TB, name, format, path string, deleted bool) {
	key, object := modelKey("ksp", types.NamespacedName{Namespace: "ns", Name: name}), client.Object(&v1alpha1.Predictor{})
	if strings.HasPrefix(name, "s") {
		key, object = modelKey("isvc", types.NamespacedName{Namespace: "ns", Name: name}), &v1beta1.InferenceService{}
	}
	sim.enqueue(key)
	_, objectKey := splitKey(key)
	exists := sim.client.Get(context.Background(), objectKey, object) == nil
	object.SetName(name)
	object.SetNamespace("ns")
	var err error
	switch o := object.(type) {
	case *v1alpha1.Predictor:
		o.Spec = v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: format}, Storage: &v1alpha1.Storage{Path: &path}}
		if !exists {
			o.Status = newPredictor().Status
		}
	case *v1beta1.InferenceService:
		o.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
		o.Spec.Predictor = v1beta1.PredictorSpec{Model: &v1beta1.ModelSpec{
			ModelFormat: v1beta1.ModelFormat{Name: format}, PredictorExtension: v1beta1.PredictorExtension{Storage: &v1beta1.ModelStorage{Path: &path}},
		}}
	}
	switch {
	case deleted && exists:
		err = sim.client.Delete(context.Background(), object)
	case deleted:
	case exists:
		err = sim.client.Update(context.Background(), object)
	default:
		sim.created++
		object.SetResourceVersion("")
		object.SetUID(types.UID(strconv.Itoa(sim.created)))
		err = sim.client.Create(context.Background(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// After any sequence of changes of resources, restarts of the operator, and faults of the mesh and of etcd, each model has the expected
// status, the mesh has no other models, and no call to the mesh is scheduled.
func TestStatusConvergesAfterRandomEvents(t *testing.T) {
	actions := rapid.SampledFrom([]string{"edit", "edit", "delete", "reconcile", "reconcile", "reconcile", "two seconds", "pods", "mesh", "disconnect etcd", "relist etcd", "restart", "five seconds"})
	step := rapid.Custom(func(rt *rapid.T) simulationStep {
		return simulationStep{
			action: actions.Draw(rt, "step"), name: rapid.SampledFrom([]string{"p1", "p2", "s1"}).Draw(rt, "name"),
			path: rapid.SampledFrom([]string{"good", "better", "bad"}).Draw(rt, "path"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(step, 1, 25).Draw(rt, "steps")
		var problem error
		simulate(t, func(t *testing.T, sim *simulation) {
			want := map[string]string{}
			for _, s := range steps {
				sim.step(t, s, want)
			}
			sim.endFaults(t)
			problem = sim.check(t, want)
		})
		if problem != nil {
			rt.Fatal(problem) // outside of the bubble, so that rapid can reduce the steps
		}
	})
}

type simulationStep struct{ action, name, path string }

func (sim *simulation) step(t testing.TB, s simulationStep, want map[string]string) {
	switch s.action {
	case "edit":
		want[s.name] = s.path
		sim.edit(t, s.name, "a", s.path, false)
	case "delete":
		delete(want, s.name)
		sim.edit(t, s.name, "a", "", true)
	case "reconcile":
		sim.reconcile(t)
	case "two seconds":
		elapse(2 * time.Second)
	case "pods":
		sim.togglePods(t)
	case "mesh":
		sim.mesh.unreachable = !sim.mesh.unreachable
	case "disconnect etcd":
		sim.mu.Lock()
		sim.watching = false
		sim.mu.Unlock()
	case "relist etcd":
		sim.relist(t)
	case "restart":
		sim.restartOperator(t)
	case "five seconds":
		elapse(5 * time.Second)
	}
}

// togglePods starts or stops the pod.
func (sim *simulation) togglePods(t testing.TB) {
	var running []modelmesh.Instance
	if !sim.mesh.hasPods {
		running = append(running, podOfFormatA)
	}
	if err := sim.mesh.SetInstances(context.Background(), running); err != nil {
		t.Fatal(err)
	}
	elapse(time.Second)
	sim.mesh.hasPods = !sim.mesh.hasPods
	sim.onEndpointsChanged()
}

// onEndpointsChanged does the same as eventSource.onEndpointsChanged.
func (sim *simulation) onEndpointsChanged() {
	sim.breakers.reset("ns")
	sim.enqueue(sim.states.markPodsChanged("ns")...)
}

// endFaults ends all faults and waits until no call is scheduled.
func (sim *simulation) endFaults(t testing.TB) {
	sim.mesh.unreachable = false
	if !sim.mesh.hasPods {
		sim.togglePods(t)
	}
	sim.relist(t)
	waited := false
	for range 500 {
		sim.run(t, 5*time.Second)
		switch {
		case len(sim.timers) > 0:
		case waited:
			return
		default:
			elapse(8 * time.Minute) // the mesh loads models without an instance every 7 minutes
			waited = true
		}
	}
	t.Fatalf("calls are still scheduled: %v", sim.timers)
}

// check compares the vmodels of the mesh and the status of each model with the expected paths by name.
func (sim *simulation) check(t testing.TB, want map[string]string) error {
	all, err := sim.mesh.store.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var vmodels []string
	for key := range all {
		if name, isVModel := strings.CutPrefix(key, "vmodels/"); isVModel {
			vmodels = append(vmodels, name)
		}
	}
	slices.Sort(vmodels)
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(vmodels, names) {
		return fmt.Errorf("vmodels %q, want %q", vmodels, names)
	}
	for name, path := range want {
		s := sim.statusOf(t, name)
		served := s.ActiveModelState == v1alpha1.Loaded || s.ActiveModelState == v1alpha1.Standby
		switch {
		case path != "bad":
			if !s.Available || !served || s.TransitionStatus != v1alpha1.UpToDate || s.LastFailureInfo != nil {
				return fmt.Errorf("%s: status %+v, want it loaded and up to date", name, s)
			}
		case s.TransitionStatus == v1alpha1.UpToDate:
			if s.Available || s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo == nil {
				return fmt.Errorf("%s: status %+v, want FailedToLoad", name, s)
			}
		case s.TransitionStatus != v1alpha1.BlockedByFailedLoad || s.TargetModelState != v1alpha1.FailedToLoad:
			return fmt.Errorf("%s: status %+v, want BlockedByFailedLoad", name, s)
		}
	}
	return nil
}

func (sim *simulation) statusOf(t testing.TB, name string) v1alpha1.PredictorStatus {
	key := types.NamespacedName{Namespace: "ns", Name: name}
	s, p := &v1beta1.InferenceService{}, &v1alpha1.Predictor{}
	if strings.HasPrefix(name, "s") {
		if err := sim.client.Get(context.Background(), key, s); err != nil {
			t.Fatal(err)
		}
		return toPredictorStatus(&s.Status)
	}
	if err := sim.client.Get(context.Background(), key, p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}
