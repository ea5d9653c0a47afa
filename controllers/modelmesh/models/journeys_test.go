package models

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/mesh"
	"github.com/odh-platform/odh-platform-operator/pkg/mesh/meshpb"
)

// simulation is a mesh with state: what the wire protocol says of vmodels, and loads that take a while. Paths with "bad" fail.
type simulation struct {
	vmodels map[string]*simulated
	models  map[string]*simulatedModel
	// pods tells that somebody answers, silent that a call gets nowhere although there are addresses.
	pods, silent bool
	// wrote is told what is written into etcd, unless nobody listens.
	wrote     func(owner, name string)
	listening bool
}

type simulated struct{ owner, active, target string }

type simulatedModel struct {
	path  string
	state meshpb.ModelStatusInfo_ModelStatus
}

func (s *simulation) reachable() error {
	switch {
	case !s.pods:
		return mesh.ErrNoAddress
	case s.silent:
		return status.Error(codes.Unavailable, "connection refused")
	default:
		return nil
	}
}

func (s *simulation) Endpoints() (grpc, http string) { return grpcAddress, "" }

func (s *simulation) tell(name string, v *simulated) {
	if s.listening {
		s.wrote(v.owner, name)
	}
}

func (s *simulation) SetVModel(_ context.Context, r *meshpb.SetVModelRequest) (*meshpb.VModelStatusInfo, error) {
	if err := s.reachable(); err != nil {
		return nil, err
	}
	v := s.vmodels[r.GetVModelId()]
	if v != nil && v.owner != r.GetOwner() {
		return nil, alreadyExists()
	}
	if v == nil {
		v = &simulated{owner: r.GetOwner(), active: r.GetTargetModelId()}
		s.vmodels[r.GetVModelId()] = v
	}
	m := s.models[r.GetTargetModelId()]
	if m == nil {
		m = &simulatedModel{path: r.GetModelInfo().GetPath(), state: notLoaded}
		s.models[r.GetTargetModelId()] = m
	}
	changed := v.target != r.GetTargetModelId()
	v.target = r.GetTargetModelId()
	if m.state != loaded && (r.GetLoadNow() || v.active != v.target) && (m.state != loadFailed || changed) && m.state != loading {
		m.state, changed = loading, true
	}
	if changed {
		s.tell(r.GetVModelId(), v)
	}
	return s.describe(v), nil
}

func (s *simulation) DeleteVModel(_ context.Context, r *meshpb.DeleteVModelRequest) (*meshpb.DeleteVModelResponse, error) {
	if err := s.reachable(); err != nil {
		return nil, err
	}
	if v := s.vmodels[r.GetVModelId()]; v != nil && v.owner == r.GetOwner() {
		delete(s.vmodels, r.GetVModelId())
		delete(s.models, v.active)
		delete(s.models, v.target)
		s.tell(r.GetVModelId(), v)
	}
	return &meshpb.DeleteVModelResponse{}, nil
}

func (s *simulation) GetVModelStatus(_ context.Context, r *meshpb.GetVModelStatusRequest) (*meshpb.VModelStatusInfo, error) {
	if err := s.reachable(); err != nil {
		return nil, err
	}
	if v := s.vmodels[r.GetVModelId()]; v != nil && v.owner == r.GetOwner() {
		return s.describe(v), nil
	}
	return &meshpb.VModelStatusInfo{ActiveModelStatus: concrete(notFound)}, nil
}

func (s *simulation) describe(v *simulated) *meshpb.VModelStatusInfo {
	of := func(id string) *meshpb.ModelStatusInfo {
		m := s.models[id]
		if m.state == loadFailed {
			return with(concrete(m.state, "cannot load"), copyAt("a", m.state, at(0)))
		}
		return with(concrete(m.state), copyAt("a", m.state, at(0)))
	}
	info := &meshpb.VModelStatusInfo{
		Status: defined, Owner: v.owner, ActiveModelId: v.active, TargetModelId: v.target, ActiveModelStatus: of(v.active), TargetModelStatus: of(v.target),
	}
	if v.active != v.target {
		if info.Status = transitioning; s.models[v.target].state == loadFailed {
			info.Status = blocked
		}
	}
	return info
}

// settle ends all loads.
func (s *simulation) settle() {
	for _, name := range slices.Sorted(maps.Keys(s.vmodels)) {
		v := s.vmodels[name]
		for _, id := range []string{v.active, v.target} {
			m := s.models[id]
			if m.state != loading {
				continue
			}
			if m.state = loaded; strings.Contains(m.path, "bad") {
				m.state = loadFailed
			}
			if id == v.target && m.state == loaded && v.active != id {
				delete(s.models, v.active)
				v.active = id
			}
			s.tell(name, v)
		}
	}
}

// journey is a world with a simulated mesh, a queue and timers.
type journey struct {
	*world
	mesh   *simulation
	queue  map[types.NamespacedName]bool
	timers map[types.NamespacedName]time.Time
	// created counts resources, each of which has a uid of its own.
	created int
}

func newJourney(t *testing.T) *journey {
	j := &journey{world: newWorld(t), queue: map[types.NamespacedName]bool{}, timers: map[types.NamespacedName]time.Time{}}
	j.mesh = &simulation{vmodels: map[string]*simulated{}, models: map[string]*simulatedModel{}, pods: true, listening: true}
	j.mesh.wrote = func(owner, name string) {
		key := join(owner, types.NamespacedName{Namespace: "ns", Name: name})
		j.memory.mark(key)
		j.queue[key] = true
	}
	j.models.client = func(string) (mesh.Client, bool) { return j.mesh, true }
	return j
}

// begin is a manager that starts: nothing is remembered, every resource is looked at, and the mesh lists what it has.
func (j *journey) begin(t *rapid.T) {
	j.memory, j.fuses = newMemory(), fuses{}
	clear(j.queue)
	clear(j.timers)
	for _, key := range j.resources(t) {
		j.queue[key] = true
	}
	j.relist()
}

// relist is what the stream of events does when it gets through to etcd.
func (j *journey) relist() {
	j.mesh.listening = true
	for name, v := range j.mesh.vmodels {
		j.mesh.wrote(v.owner, name)
	}
	for _, source := range []string{"ksp", "isvc"} { // keys that have vanished are told too
		for _, key := range j.memory.of(source) {
			j.memory.mark(key)
			j.queue[key] = true
		}
	}
}

func (j *journey) resources(t *rapid.T) []types.NamespacedName {
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
		keys = append(keys, join("ksp", client.ObjectKeyFromObject(&predictors.Items[i])))
	}
	for i := range services.Items {
		keys = append(keys, join("isvc", client.ObjectKeyFromObject(&services.Items[i])))
	}
	return keys
}

// pass looks at one model of the queue.
func (j *journey) pass(t *rapid.T) bool {
	for key, due := range j.timers {
		if !j.clock.Now().Before(due) {
			delete(j.timers, key)
			j.queue[key] = true
		}
	}
	waiting := slices.SortedFunc(maps.Keys(j.queue), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(waiting) == 0 {
		return false
	}
	key := waiting[0]
	delete(j.queue, key)
	result, err := j.Reconcile(context.Background(), requestOf(key))
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if result.RequeueAfter > 0 {
		j.timers[key] = j.clock.Now().Add(result.RequeueAfter)
	}
	return true
}

// edit creates, changes or deletes the resource of a name, and queues it as its watch would.
func (j *journey) edit(t *rapid.T, name, path string, gone bool) {
	key, object := join("ksp", types.NamespacedName{Namespace: "ns", Name: name}), client.Object(&v1alpha1.Predictor{})
	if strings.HasPrefix(name, "s") {
		key, object = join("isvc", types.NamespacedName{Namespace: "ns", Name: name}), &v1beta1.InferenceService{}
	}
	j.queue[key] = true
	_, at := split(key)
	exists := j.client.Get(context.Background(), at, object) == nil
	object.SetName(name)
	object.SetNamespace("ns")
	var err error
	switch o := object.(type) {
	case *v1alpha1.Predictor:
		o.Spec = v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "a"}, Storage: &v1alpha1.Storage{Path: &path}}
		if !exists {
			o.Status = predictor().Status
		}
	case *v1beta1.InferenceService:
		o.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}
		o.Spec.Predictor = v1beta1.PredictorSpec{Model: &v1beta1.ModelSpec{
			ModelFormat: v1beta1.ModelFormat{Name: "a"}, PredictorExtension: v1beta1.PredictorExtension{Storage: &v1beta1.ModelStorage{Path: &path}},
		}}
	}
	switch {
	case gone && exists:
		err = j.client.Delete(context.Background(), object)
	case gone:
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

// Whatever happens, in whatever order, to resources, mesh, etcd and manager: once all are well, each model has the status that it
// has to have, the mesh has no other models, and nothing is asked or written any more.
func TestJourneys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := newJourney(t)
		names := []string{"p1", "p2", "s1"}
		wanted := map[string]string{}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"edit", "edit", "delete", "pass", "pass", "pass", "settle", "pods", "silence", "deaf", "hear", "restart", "later"}).Draw(rt, "step") {
			case "edit":
				name := rapid.SampledFrom(names).Draw(rt, "name")
				wanted[name] = rapid.SampledFrom([]string{"good", "better", "bad"}).Draw(rt, "path")
				j.edit(rt, name, wanted[name], false)
			case "delete":
				name := rapid.SampledFrom(names).Draw(rt, "name")
				delete(wanted, name)
				j.edit(rt, name, "", true)
			case "pass":
				j.pass(rt)
			case "settle":
				j.mesh.settle()
			case "pods":
				j.mesh.pods = !j.mesh.pods
				j.moved()
			case "silence":
				j.mesh.silent = !j.mesh.silent
			case "deaf":
				j.mesh.listening = false
			case "hear":
				j.relist()
			case "restart":
				j.begin(rt)
			case "later":
				j.clock.SetTime(j.clock.Now().Add(5 * time.Second))
			}
		}
		j.arrive(rt)
		j.check(rt, wanted)
	})
}

// moved is what the pool tells when addresses come or go.
func (j *journey) moved() {
	j.fuses.replace("ns")
	for _, key := range j.memory.freshen("ns") {
		j.queue[key] = true
	}
}

// arrive makes everything well and waits until nothing happens any more.
func (j *journey) arrive(t *rapid.T) {
	j.mesh.silent = false
	if !j.mesh.pods {
		j.mesh.pods = true
		j.moved()
	}
	if !j.mesh.listening {
		j.relist()
	}
	for range 500 {
		for j.pass(t) {
			j.mesh.settle()
		}
		if len(j.timers) == 0 && len(j.queue) == 0 {
			return
		}
		j.clock.SetTime(j.clock.Now().Add(time.Minute))
	}
	t.Fatalf("it never comes to rest: %v", j.timers)
}

func (j *journey) check(t *rapid.T, wanted map[string]string) {
	has := slices.Sorted(maps.Keys(j.mesh.vmodels))
	if want := slices.Sorted(maps.Keys(wanted)); !slices.Equal(has, want) {
		t.Fatalf("the mesh has %q, want %q", has, want)
	}
	for name, path := range wanted {
		s := j.statusOf(t, name)
		v := j.mesh.vmodels[name]
		switch {
		case path != "bad":
			if !s.Available || s.ActiveModelState != v1alpha1.Loaded || s.TransitionStatus != v1alpha1.UpToDate || s.LastFailureInfo != nil {
				t.Fatalf("%s: %+v", name, s)
			}
		case v.active == v.target:
			if s.Available || s.ActiveModelState != v1alpha1.FailedToLoad || s.LastFailureInfo == nil {
				t.Fatalf("%s, failed: %+v", name, s)
			}
		case s.TransitionStatus != v1alpha1.BlockedByFailedLoad || s.TargetModelState != v1alpha1.FailedToLoad:
			t.Fatalf("%s, blocked: %+v", name, s)
		}
	}
}

func (j *journey) statusOf(t *rapid.T, name string) v1alpha1.PredictorStatus {
	at := types.NamespacedName{Namespace: "ns", Name: name}
	s, p := &v1beta1.InferenceService{}, &v1alpha1.Predictor{}
	if strings.HasPrefix(name, "s") {
		if err := j.client.Get(context.Background(), at, s); err != nil {
			t.Fatal(err)
		}
		return predictorStatus(&s.Status)
	}
	if err := j.client.Get(context.Background(), at, p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}
