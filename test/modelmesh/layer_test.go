package modelmesh

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/pkg/mesh/meshpb"
)

const testConstraints = `{"_default":{"required":["_no_runtime"]},"mt:onnx":{"required":["mt:onnx"]},` +
	`"mt:sklearn":{"required":["mt:sklearn"]},"rt:triton":{"required":["rt:triton"]}}`

var (
	onnx   = Instance{ID: "onnx-1", Labels: []string{"mt:onnx", "rt:triton"}}
	second = Instance{ID: "onnx-2", Labels: []string{"mt:onnx", "rt:triton"}}
)

// prefixOf is a part of etcd that this test has for itself.
func prefixOf(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", "-") }

func layer(t *testing.T, load Loader, running ...Instance) *Layer {
	t.Helper()
	data, err := SecretData(etcdURL, prefixOf(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLayer(LayerOptions{Namespace: "fraud", Etcd: data, Service: "modelmesh-serving", Loader: load, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := errors.Join(l.SetConstraints([]byte(testConstraints)), l.SetInstances(t.Context(), running)); err != nil {
		t.Fatal(err)
	}
	return l
}

// set registers a model of type mt:onnx under the name of the vmodel and a version.
func set(t *testing.T, l *Layer, name, version string, change ...func(*meshpb.SetVModelRequest)) *meshpb.VModelStatusInfo {
	t.Helper()
	answer, err := trySet(t, l, name, version, change...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func trySet(t *testing.T, l *Layer, name, version string, change ...func(*meshpb.SetVModelRequest)) (*meshpb.VModelStatusInfo, error) {
	r := &meshpb.SetVModelRequest{
		VModelId: name, TargetModelId: name + "__ksp-" + version, Owner: "ksp", AutoDeleteTargetModel: true, LoadNow: true,
		ModelInfo: &meshpb.ModelInfo{Type: "mt:onnx", Path: "models/" + version, Key: `{"storage_key":"s3"}`},
	}
	for _, c := range change {
		c(r)
	}
	return l.SetVModel(t.Context(), r)
}

func ask(t *testing.T, l *Layer, name string) *meshpb.VModelStatusInfo {
	t.Helper()
	answer, err := l.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{VModelId: name, Owner: "ksp"})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// until waits for a state that lasts.
func until(t *testing.T, l *Layer, name string, want func(*meshpb.VModelStatusInfo) bool) *meshpb.VModelStatusInfo {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		answer := ask(t, l, name)
		if want(answer) {
			return answer
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %v", answer)
		}
	}
}

func active(want meshpb.ModelStatusInfo_ModelStatus) func(*meshpb.VModelStatusInfo) bool {
	return func(v *meshpb.VModelStatusInfo) bool { return v.GetActiveModelStatus().GetStatus() == want }
}

func vstate(want meshpb.VModelStatusInfo_VModelStatus) func(*meshpb.VModelStatusInfo) bool {
	return func(v *meshpb.VModelStatusInfo) bool { return v.GetStatus() == want }
}

// stored returns all keys of the test below the service.
func stored(t *testing.T) map[string]string {
	t.Helper()
	base := prefixOf(t) + "/mm/modelmesh-serving/"
	answer, err := etcdClient(t).Get(t.Context(), base, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range answer.Kvs {
		out[strings.TrimPrefix(string(entry.Key), base)] = string(entry.Value)
	}
	return out
}

// gate is a loader that waits for a word on each path.
type gate struct {
	mu    sync.Mutex
	doors map[string]chan error
}

func (g *gate) door(path string) chan error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.doors == nil {
		g.doors = map[string]chan error{}
	}
	if g.doors[path] == nil {
		g.doors[path] = make(chan error, 8)
	}
	return g.doors[path]
}

func (g *gate) load(ctx context.Context, l Load) error {
	select {
	case err := <-g.door(l.Path):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAModelFromRegistrationToRemoval(t *testing.T) {
	g := &gate{}
	l := layer(t, g.load, onnx)
	if answer := ask(t, l, "digits"); answer.GetActiveModelId() != "" || !active(meshpb.ModelStatusInfo_NOT_FOUND)(answer) {
		t.Errorf("before: %v", answer)
	}
	answer := set(t, l, "digits", "1")
	if !active(meshpb.ModelStatusInfo_LOADING)(answer) || !vstate(meshpb.VModelStatusInfo_DEFINED)(answer) ||
		answer.GetTargetModelId() != "digits__ksp-1" || answer.GetActiveModelId() != "digits__ksp-1" || answer.GetOwner() != "ksp" {
		t.Errorf("registered: %v", answer)
	}
	want := map[string]string{
		"instances/onnx-1":       `{"labels":["mt:onnx","rt:triton"]}`,
		"vmodels/digits":         `{"o":"ksp","amid":"digits__ksp-1","tmid":"digits__ksp-1"}`,
		"registry/digits__ksp-1": `{"type":"mt:onnx","encKey":"{\"storage_key\":\"s3\"}","mPath":"models/1","refs":1,"autoDel":true}`,
	}
	if difference := cmp.Diff(want, stored(t)); difference != "" {
		t.Errorf("etcd (-want +got):\n%s", difference)
	}
	g.door("models/1") <- nil
	loaded := until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	if copies := loaded.GetActiveModelStatus().GetModelCopyInfos(); len(copies) != 1 || copies[0].GetLocation() != "onnx-1" || copies[0].GetTime() == 0 {
		t.Errorf("copies %v", copies)
	}
	if _, err := l.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits", Owner: "isvc"}); err != nil || len(stored(t)) != 3 {
		t.Errorf("another owner deletes nothing: %v, %v", err, stored(t))
	}
	for range 2 {
		if _, err := l.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits", Owner: "ksp"}); err != nil {
			t.Error(err)
		}
	}
	if left := slices.Collect(maps.Keys(stored(t))); !slices.Equal(left, []string{"instances/onnx-1"}) {
		t.Errorf("left in etcd: %v", left)
	}
	if calls := l.Calls(); calls["setVModel"] != 1 || calls["deleteVModel"] != 3 {
		t.Errorf("calls %v", calls)
	}
}

func TestSettingTheSameAgainWritesNothing(t *testing.T) {
	l := layer(t, ByPath, onnx)
	set(t, l, "digits", "1")
	until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	before, err := etcdClient(t).Get(t.Context(), "nothing")
	if err != nil {
		t.Fatal(err)
	}
	key := prefixOf(t) + "/mm/modelmesh-serving/"
	set(t, l, "digits", "1")
	ask(t, l, "digits")
	changed, err := etcdClient(t).Get(t.Context(), key, clientv3.WithPrefix(), clientv3.WithMinModRev(before.Header.Revision+1))
	if err != nil || len(changed.Kvs) != 0 {
		t.Errorf("written: %v, %v", changed.Kvs, err)
	}
}

func TestTransitions(t *testing.T) {
	g := &gate{}
	l := layer(t, g.load, onnx)
	set(t, l, "digits", "1")
	g.door("models/1") <- nil
	until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))

	under := set(t, l, "digits", "2")
	if !vstate(meshpb.VModelStatusInfo_TRANSITIONING)(under) || !active(meshpb.ModelStatusInfo_LOADED)(under) ||
		under.GetTargetModelStatus().GetStatus() != meshpb.ModelStatusInfo_LOADING {
		t.Errorf("under way: %v", under)
	}
	g.door("models/2") <- errors.New("no such object")
	blocked := until(t, l, "digits", vstate(meshpb.VModelStatusInfo_TRANSITION_FAILED))
	target := blocked.GetTargetModelStatus()
	if !active(meshpb.ModelStatusInfo_LOADED)(blocked) || blocked.GetActiveModelId() != "digits__ksp-1" ||
		target.GetStatus() != meshpb.ModelStatusInfo_LOADING_FAILED || !slices.Equal(target.GetErrors(), []string{"no such object"}) {
		t.Errorf("blocked: %v", blocked)
	}
	if again := set(t, l, "digits", "2"); !vstate(meshpb.VModelStatusInfo_TRANSITION_FAILED)(again) {
		t.Errorf("asked again: %v", again)
	}

	set(t, l, "digits", "3")
	g.door("models/3") <- nil
	done := until(t, l, "digits", vstate(meshpb.VModelStatusInfo_DEFINED))
	if done.GetActiveModelId() != "digits__ksp-3" || !active(meshpb.ModelStatusInfo_LOADED)(done) {
		t.Errorf("done: %v", done)
	}
	if keys := slices.Sorted(maps.Keys(stored(t))); !slices.Equal(keys, []string{"instances/onnx-1", "registry/digits__ksp-3", "vmodels/digits"}) {
		t.Errorf("the former models are gone: %v", keys)
	}
}

func TestATargetIsTakenAtOnceWhereNothingIsLoadedOrByForce(t *testing.T) {
	g := &gate{}
	l := layer(t, g.load, onnx)
	set(t, l, "digits", "1")
	g.door("models/1") <- errors.New("broken")
	until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADING_FAILED))
	if answer := set(t, l, "digits", "2"); answer.GetActiveModelId() != "digits__ksp-2" || !active(meshpb.ModelStatusInfo_LOADING)(answer) {
		t.Errorf("after a failure: %v", answer)
	}
	g.door("models/2") <- nil
	until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	answer := set(t, l, "digits", "3", func(r *meshpb.SetVModelRequest) { r.Force = true })
	if answer.GetActiveModelId() != "digits__ksp-3" || !vstate(meshpb.VModelStatusInfo_DEFINED)(answer) {
		t.Errorf("by force: %v", answer)
	}
}

func TestRefusals(t *testing.T) {
	l := layer(t, ByPath, onnx)
	set(t, l, "digits", "1")
	for name, c := range map[string]struct {
		model  string
		change func(*meshpb.SetVModelRequest)
		want   codes.Code
	}{
		"another owner":      {"digits", func(r *meshpb.SetVModelRequest) { r.Owner = "isvc" }, codes.AlreadyExists},
		"another path":       {"digits", func(r *meshpb.SetVModelRequest) { r.ModelInfo.Path = "else" }, codes.AlreadyExists},
		"another key":        {"digits", func(r *meshpb.SetVModelRequest) { r.ModelInfo.Key = "{}" }, codes.AlreadyExists},
		"another type":       {"digits", func(r *meshpb.SetVModelRequest) { r.ModelInfo.Type = "mt:sklearn" }, codes.AlreadyExists},
		"only an update":     {"new", func(r *meshpb.SetVModelRequest) { r.UpdateOnly = true }, codes.NotFound},
		"unexpected target":  {"digits", func(r *meshpb.SetVModelRequest) { r.ExpectedTargetModelId = "other" }, codes.FailedPrecondition},
		"unknown, no info":   {"new", func(r *meshpb.SetVModelRequest) { r.ModelInfo = nil }, codes.NotFound},
		"no target":          {"new", func(r *meshpb.SetVModelRequest) { r.TargetModelId = "" }, codes.InvalidArgument},
		"no owner means ksp": {"digits", func(r *meshpb.SetVModelRequest) { r.Owner = "" }, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := trySet(t, l, c.model, "1", c.change); status.Code(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestModelsWithoutAHome(t *testing.T) {
	l := layer(t, ByPath, onnx)
	for kind, want := range map[string]string{
		"mt:sklearn": "There are no running instances that meet the label requirements of type mt:sklearn: [mt:sklearn]",
		"mt:unheard": "There are no running instances that meet the label requirements of type mt:unheard: [_no_runtime]",
		"rt:unheard": "There are no running instances that meet the label requirements of type rt:unheard: [_no_runtime]",
	} {
		name := strings.ReplaceAll(kind, ":", "-")
		answer := set(t, l, name, "1", func(r *meshpb.SetVModelRequest) { r.ModelInfo.Type = kind })
		if state := answer.GetActiveModelStatus(); state.GetStatus() != meshpb.ModelStatusInfo_LOADING_FAILED || !slices.Equal(state.GetErrors(), []string{want}) {
			t.Errorf("%s: %v", kind, answer)
		}
	}
	if err := l.SetInstances(t.Context(), []Instance{onnx, {ID: "sklearn-1", Labels: []string{"mt:sklearn"}}}); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, l, "mt-sklearn"); !active(meshpb.ModelStatusInfo_NOT_LOADED)(answer) {
		t.Errorf("with a home: %v", answer)
	}
	set(t, l, "mt-sklearn", "1", func(r *meshpb.SetVModelRequest) { r.ModelInfo.Type = "mt:sklearn" })
	until(t, l, "mt-sklearn", active(meshpb.ModelStatusInfo_LOADED))
}

func TestInstancesThatGo(t *testing.T) {
	l := layer(t, ByPath, onnx)
	set(t, l, "digits", "1")
	until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	if err := l.SetInstances(t.Context(), []Instance{second}); err != nil {
		t.Fatal(err)
	}
	moved := until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	if copies := moved.GetActiveModelStatus().GetModelCopyInfos(); len(copies) != 1 || copies[0].GetLocation() != "onnx-2" {
		t.Errorf("copies %v", copies)
	}
	if err := l.SetInstances(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := trySet(t, l, "digits", "1"); status.Code(err) != codes.Unavailable {
		t.Errorf("nobody is there, but: %v", err)
	}
	if keys := slices.Sorted(maps.Keys(stored(t))); !slices.Equal(keys, []string{"registry/digits__ksp-1", "vmodels/digits"}) {
		t.Errorf("in etcd: %v", keys)
	}
}

func TestALoadThatIsUnderWayEndsWithItsInstance(t *testing.T) {
	g := &gate{}
	l := layer(t, g.load, onnx)
	set(t, l, "digits", "1")
	if err := l.SetInstances(t.Context(), []Instance{second}); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, l, "digits"); !active(meshpb.ModelStatusInfo_NOT_LOADED)(answer) {
		t.Errorf("given up: %v", answer)
	}
	set(t, l, "digits", "1")
	g.door("models/1") <- nil
	answer := until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADED))
	if copies := answer.GetActiveModelStatus().GetModelCopyInfos(); copies[0].GetLocation() != "onnx-2" {
		t.Errorf("copies %v", copies)
	}
}

func TestEveryInstanceIsTriedBeforeALoadHasFailed(t *testing.T) {
	tried := make(chan string, 4)
	l := layer(t, func(_ context.Context, l Load) error {
		tried <- l.Instance
		return errors.New("broken")
	}, onnx, second)
	set(t, l, "digits", "1")
	answer := until(t, l, "digits", active(meshpb.ModelStatusInfo_LOADING_FAILED))
	if copies := answer.GetActiveModelStatus().GetModelCopyInfos(); len(copies) != 2 || len(tried) != 2 {
		t.Errorf("%d attempts, copies %v", len(tried), copies)
	}
	set(t, l, "digits", "1")
	if len(tried) != 2 {
		t.Error("a fresh failure is not tried again")
	}
}

func TestARestartContinues(t *testing.T) {
	g := &gate{}
	former := layer(t, g.load, onnx)
	set(t, former, "digits", "1")
	g.door("models/1") <- nil
	until(t, former, "digits", active(meshpb.ModelStatusInfo_LOADED))
	set(t, former, "digits", "2")
	set(t, former, "other", "1")
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	next := layer(t, g.load, onnx)
	if answer := ask(t, next, "digits"); !vstate(meshpb.VModelStatusInfo_TRANSITIONING)(answer) || !active(meshpb.ModelStatusInfo_LOADED)(answer) {
		t.Errorf("after a restart: %v", answer)
	}
	if answer := ask(t, next, "other"); !active(meshpb.ModelStatusInfo_NOT_LOADED)(answer) {
		t.Errorf("what was being loaded: %v", answer)
	}
	set(t, next, "digits", "2")
	g.door("models/2") <- nil
	until(t, next, "digits", vstate(meshpb.VModelStatusInfo_DEFINED))
}

func TestByPath(t *testing.T) {
	for name, c := range map[string]struct {
		load Load
		want string
	}{
		"a path":            {Load{Path: "sklearn/mnist", Key: `{"storage_key":"s3"}`}, ""},
		"no storage":        {Load{}, "Predictor Storage field missing"},
		"missing":           {Load{Path: "models/missing"}, "no objects found"},
		"invalid":           {Load{Path: "invalid-path/model"}, "no objects found"},
		"part of a word":    {Load{Path: "admissing/model"}, ""},
		"only storage_key":  {Load{Key: `{"storage_key":"s3"}`}, ""},
		"only storage_type": {Load{Key: `{"storage_params":{"type":"s3"}}`}, ""},
	} {
		err := ByPath(t.Context(), c.load)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
