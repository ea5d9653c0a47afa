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

// layered is the mesh of one namespace: the fake of the routing layer, over a store in memory. Paths with "bad" fail.
type layered struct {
	*modelmesh.Layer
	store *modelmesh.Memory
	// silent makes calls fail although there are addresses; pods reports whether any pod exists.
	silent, pods bool
	// taking is how long a load takes, and loads are those that began, by path.
	taking time.Duration
	mu     sync.Mutex
	loads  map[string]int
}

var sklearnPod = modelmesh.Instance{ID: "one", Labels: []string{"mt:a"}}

const journeyConstraints = `{"_default":{"required":["_no_runtime"]},"mt:a":{"required":["mt:a"]},"mt:b":{"required":["mt:b"]}}`

// newLayered opens the mesh with one pod, for models of format a.
func newLayered(t testing.TB, change ...func(*modelmesh.LayerOptions)) *layered {
	t.Helper()
	m := &layered{store: &modelmesh.Memory{}, pods: true, taking: time.Second, loads: map[string]int{}}
	options := modelmesh.LayerOptions{Store: m.store, Loader: m.load, Log: logr.Discard()}
	for _, c := range change {
		c(&options)
	}
	var err error
	if m.Layer, err = modelmesh.NewLayer(options); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.SetConstraints([]byte(journeyConstraints)), m.SetInstances(t.Context(), []modelmesh.Instance{sklearnPod})); err != nil {
		t.Fatal(err)
	}
	elapse(time.Second) // until it can be reached
	return m
}

// elapse lets time go by, and lets all other goroutines finish what they do at its end: which acts first in a moment is chance.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (m *layered) load(ctx context.Context, l modelmesh.Load) error {
	m.mu.Lock()
	m.loads[l.Path]++
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.taking):
	}
	if strings.Contains(l.Path, "bad") {
		return status.Error(codes.InvalidArgument, "cannot load")
	}
	return nil
}

// loadCount is how many loads of a path began.
func (m *layered) loadCount(path string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads[path]
}

func (m *layered) reachable() error {
	switch {
	case !m.pods:
		return meshclient.ErrNoAddress
	case m.silent:
		return status.Error(codes.Unavailable, "connection refused")
	default:
		return nil
	}
}

func (m *layered) URLs() (grpc, http string) { return grpcAddress, "" }

func (m *layered) SetVModel(ctx context.Context, r *meshpb.SetVModelRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	if err := m.reachable(); err != nil {
		return nil, err
	}
	return m.Layer.SetVModel(ctx, r)
}

func (m *layered) DeleteVModel(ctx context.Context, r *meshpb.DeleteVModelRequest, _ ...grpc.CallOption) (*meshpb.DeleteVModelResponse, error) {
	if err := m.reachable(); err != nil {
		return nil, err
	}
	return m.Layer.DeleteVModel(ctx, r)
}

func (m *layered) GetVModelStatus(ctx context.Context, r *meshpb.GetVModelStatusRequest, _ ...grpc.CallOption) (*meshpb.VModelStatusInfo, error) {
	if err := m.reachable(); err != nil {
		return nil, err
	}
	return m.Layer.GetVModelStatus(ctx, r)
}

// journey is a test environment with a mesh, a queue and timers, in a time of its own.
type journey struct {
	*testEnv
	mesh   *layered
	timers map[types.NamespacedName]time.Time
	// created counts resources, each of which has a uid of its own.
	created int

	mu        sync.Mutex // the mesh writes at any moment
	queue     map[types.NamespacedName]bool
	listening bool
}

func newJourney(t *testing.T, change ...func(*modelmesh.LayerOptions)) *journey {
	j := &journey{testEnv: newTestEnv(t), queue: map[types.NamespacedName]bool{}, timers: map[types.NamespacedName]time.Time{}, listening: true}
	j.mesh = newLayered(t, change...)
	j.mesh.store.OnCommit = j.deliverEvents
	j.modelReconciler.client = func(string) (meshclient.Client, bool) { return j.mesh, true }
	j.modelReconciler.clock = clock.RealClock{}
	j.modelReconciler.recorder = events.NewFakeRecorder(10000)
	return j
}

// deliverEvents delivers the values as events of the stream.
func (j *journey) deliverEvents(values map[string][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key := range values {
		name, found := strings.CutPrefix(key, "vmodels/")
		if id, is := strings.CutPrefix(key, "registry/"); is {
			name, _, found = strings.Cut(id, "__")
		}
		if found && j.listening {
			j.enqueueName(name)
		}
	}
}

// enqueueName queues a model by its name: those of InferenceServices begin with s.
func (j *journey) enqueueName(name string) {
	source := "ksp"
	if strings.HasPrefix(name, "s") {
		source = "isvc"
	}
	key := modelKey(source, types.NamespacedName{Namespace: "ns", Name: name})
	j.states.markDirty(key)
	j.queue[key] = true
}

func (j *journey) enqueue(keys ...types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range keys {
		j.queue[key] = true
	}
}

// run lets time go by.
func (j *journey) run(t testing.TB, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); elapse(50 * time.Millisecond) {
		for j.reconcile(t) {
		}
	}
}

// startManager starts a manager: it has no state, reconciles every resource, and lists the models of the mesh.
func (j *journey) startManager(t testing.TB) {
	j.states.entries, j.breakers.byNamespace = map[types.NamespacedName]modelState{}, nil
	clear(j.timers)
	j.enqueue(j.resources(t)...)
	j.relist(t)
}

// relist reports a new listing of etcd, as the watcher does after a connection.
func (j *journey) relist(t testing.TB) {
	all, err := j.mesh.store.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	j.mu.Lock()
	j.listening = true
	j.mu.Unlock()
	j.deliverEvents(all)
	for _, source := range []string{"ksp", "isvc"} { // keys that have vanished are emitted too
		for _, key := range j.states.keysOfSource(source) {
			j.states.markDirty(key)
			j.enqueue(key)
		}
	}
}

func (j *journey) resources(t testing.TB) []types.NamespacedName {
	var keys []types.NamespacedName
	var predictors v1alpha1.PredictorList
	var services v1beta1.InferenceServiceList
	if err := j.client.List(context.Background(), &predictors); err != nil {
		t.Fatal(err)
	}
	if err := j.client.List(context.Background(), &services); err != nil {
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

// reconcile looks at one model of the queue.
func (j *journey) reconcile(t testing.TB) bool {
	j.mu.Lock()
	for key, due := range j.timers {
		if !time.Now().Before(due) {
			delete(j.timers, key)
			j.queue[key] = true
		}
	}
	waiting := slices.SortedFunc(maps.Keys(j.queue), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(waiting) > 0 {
		delete(j.queue, waiting[0])
	}
	j.mu.Unlock()
	if len(waiting) == 0 {
		return false
	}
	key := waiting[0]
	result, err := j.Reconcile(context.Background(), requestOf(key))
	if err != nil {
		t.Fatalf("%s: unexpected error: %v", key, err)
	}
	synctest.Wait()
	delete(j.timers, key)
	if result.RequeueAfter > 0 {
		j.timers[key] = time.Now().Add(result.RequeueAfter)
	}
	return true
}

// edit creates, changes or deletes the resource of a name, and queues it as its watch would.
func (j *journey) edit(t testing.TB, name, format, path string, deleted bool) {
	key, object := modelKey("ksp", types.NamespacedName{Namespace: "ns", Name: name}), client.Object(&v1alpha1.Predictor{})
	if strings.HasPrefix(name, "s") {
		key, object = modelKey("isvc", types.NamespacedName{Namespace: "ns", Name: name}), &v1beta1.InferenceService{}
	}
	j.enqueue(key)
	_, at := splitKey(key)
	exists := j.client.Get(context.Background(), at, object) == nil
	object.SetName(name)
	object.SetNamespace("ns")
	var err error
	switch o := object.(type) {
	case *v1alpha1.Predictor:
		o.Spec = v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: format}, Storage: &v1alpha1.Storage{Path: &path}}
		if !exists {
			o.Status = predictor().Status
		}
	case *v1beta1.InferenceService:
		o.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
		o.Spec.Predictor = v1beta1.PredictorSpec{Model: &v1beta1.ModelSpec{
			ModelFormat: v1beta1.ModelFormat{Name: format}, PredictorExtension: v1beta1.PredictorExtension{Storage: &v1beta1.ModelStorage{Path: &path}},
		}}
	}
	switch {
	case deleted && exists:
		err = j.client.Delete(context.Background(), object)
	case deleted:
	case exists:
		err = j.client.Update(context.Background(), object)
	default:
		j.created++
		object.SetResourceVersion("")
		object.SetUID(types.UID(strconv.Itoa(j.created)))
		err = j.client.Create(context.Background(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// After any sequence of events of resources, mesh, etcd and manager, and once all of them work, each model has its expected
// status, the mesh has no other models, and there are no more calls or writes.
func TestStatusConvergesAfterRandomEvents(t *testing.T) {
	kinds := rapid.SampledFrom([]string{"edit", "edit", "delete", "reconcile", "reconcile", "reconcile", "settle", "pods", "silence", "deaf", "hear", "restart", "later"})
	step := rapid.Custom(func(rt *rapid.T) journeyStep {
		return journeyStep{
			kind: kinds.Draw(rt, "step"), name: rapid.SampledFrom([]string{"p1", "p2", "s1"}).Draw(rt, "name"),
			path: rapid.SampledFrom([]string{"good", "better", "bad"}).Draw(rt, "path"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(step, 1, 25).Draw(rt, "steps")
		var problem error
		onJourney(t, func(t *testing.T, j *journey) {
			wanted := map[string]string{}
			for _, s := range steps {
				j.step(t, s, wanted)
			}
			j.endFaults(t)
			problem = j.check(t, wanted)
		})
		if problem != nil {
			rt.Fatal(problem) // out here, where rapid looks for the fewest steps
		}
	})
}

type journeyStep struct{ kind, name, path string }

func (j *journey) step(t testing.TB, s journeyStep, wanted map[string]string) {
	switch s.kind {
	case "edit":
		wanted[s.name] = s.path
		j.edit(t, s.name, "a", s.path, false)
	case "delete":
		delete(wanted, s.name)
		j.edit(t, s.name, "a", "", true)
	case "reconcile":
		j.reconcile(t)
	case "settle":
		elapse(2 * time.Second)
	case "pods":
		j.switchPods(t)
	case "silence":
		j.mesh.silent = !j.mesh.silent
	case "deaf":
		j.mu.Lock()
		j.listening = false
		j.mu.Unlock()
	case "hear":
		j.relist(t)
	case "restart":
		j.startManager(t)
	case "later":
		elapse(5 * time.Second)
	}
}

// switchPods lets the pod come or go.
func (j *journey) switchPods(t testing.TB) {
	var running []modelmesh.Instance
	if !j.mesh.pods {
		running = append(running, sklearnPod)
	}
	if err := j.mesh.SetInstances(context.Background(), running); err != nil {
		t.Fatal(err)
	}
	elapse(time.Second)
	j.mesh.pods = !j.mesh.pods
	j.onEndpointsChanged()
}

// onEndpointsChanged is the callback of the pool when addresses are added or removed.
func (j *journey) onEndpointsChanged() {
	j.breakers.reset("ns")
	j.enqueue(j.states.markPodsChanged("ns")...)
}

// endFaults ends all faults and waits until nothing happens.
func (j *journey) endFaults(t testing.TB) {
	j.mesh.silent = false
	if !j.mesh.pods {
		j.switchPods(t)
	}
	j.relist(t)
	tended := false
	for range 500 {
		j.run(t, 5*time.Second)
		switch {
		case len(j.timers) > 0:
		case tended:
			return
		default:
			elapse(8 * time.Minute) // a target that had no pod for a moment is loaded in the next round of the mesh
			tended = true
		}
	}
	t.Fatalf("the queue does not become empty: %v", j.timers)
}

func (j *journey) check(t testing.TB, wanted map[string]string) error {
	all, err := j.mesh.store.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for key := range all {
		if name, is := strings.CutPrefix(key, "vmodels/"); is {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	if want := slices.Sorted(maps.Keys(wanted)); !slices.Equal(has, want) {
		return fmt.Errorf("the mesh has %q, want %q", has, want)
	}
	for name, path := range wanted {
		s := j.statusOf(t, name)
		served := s.ActiveModelState == v1alpha1.Loaded || s.ActiveModelState == v1alpha1.Standby
		switch {
		case path != "bad":
			if !s.Available || !served || s.TransitionStatus != v1alpha1.UpToDate || s.LastFailureInfo != nil {
				return fmt.Errorf("%s: got status %+v, want it loaded and up to date", name, s)
			}
		case s.TransitionStatus == v1alpha1.UpToDate:
			if s.Available || s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo == nil {
				return fmt.Errorf("%s, failed: %+v", name, s)
			}
		case s.TransitionStatus != v1alpha1.BlockedByFailedLoad || s.TargetModelState != v1alpha1.FailedToLoad:
			return fmt.Errorf("%s, blocked: %+v", name, s)
		}
	}
	return nil
}

func (j *journey) statusOf(t testing.TB, name string) v1alpha1.PredictorStatus {
	at := types.NamespacedName{Namespace: "ns", Name: name}
	s, p := &v1beta1.InferenceService{}, &v1alpha1.Predictor{}
	if strings.HasPrefix(name, "s") {
		if err := j.client.Get(context.Background(), at, s); err != nil {
			t.Fatal(err)
		}
		return toPredictorStatus(&s.Status)
	}
	if err := j.client.Get(context.Background(), at, p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}
