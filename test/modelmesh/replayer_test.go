package modelmesh

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// replayer replays a recording against a fake routing layer.
type replayer struct {
	t         *testing.T
	recording recording
	layer     *Layer
	store     *Memory
	startTime time.Time
	delay     time.Duration  // time by which the layer is later than the recording
	newest    string         // the instance that was added last
	waiting   sync.WaitGroup // requests that wait for a load

	mu           sync.Mutex
	initializing bool
	writes       map[string][]string // writes to each key of etcd that were not compared yet
	// starts and cancelled are the loads that were started or cancelled, and not compared yet. An entry is "model on instance".
	starts, cancelled []string
	gates             map[string]chan error // sending to the gate of an entry ends its load
}

// never is longer than any recording.
const never = 1000 * time.Hour

// recordedInstance returns an instance of the recordings with its labels. All except i1 support onnx; `i1:onnx` supports it too.
func recordedInstance(name string) Instance {
	id, onnx, _ := strings.Cut(name, ":")
	labels := []string{"mt:sklearn", "mt:sklearn:0", "rt:mlserver-1.x"}
	if onnx != "" || id != "i1" {
		labels = append(labels, "mt:onnx", "mt:onnx:1", "rt:ovms-1.x")
	}
	return Instance{ID: id, Labels: labels}
}

func newReplayer(t *testing.T, r recording) *replayer {
	p := &replayer{t: t, recording: r, initializing: true, writes: map[string][]string{}, gates: map[string]chan error{}}
	p.store = &Memory{OnCommit: p.recordWrites}
	options := LayerOptions{Store: p.store, Loader: p.load, Log: logr.Discard(), StartDelay: never, FirstRound: never}
	if strings.Contains(r.Settings, "failure expiry") {
		options.FailureExpiry, options.FailureCheck = time.Minute, 20*time.Second
	}
	if r.Name == "long-run" {
		options.FailureCheck, options.FirstRound = 159*time.Second, 0 // the times of the checks in this recording
	}
	if strings.Contains(r.Settings, "1024 MiB") {
		options.Capacity, options.Size = 1024, sizeOf
	}
	var err error
	if p.layer, err = NewLayer(options); err != nil {
		t.Fatal(err)
	}
	required := map[string]map[string][]string{"_default": {"required": {"_no_runtime"}}}
	for _, label := range []string{"mt:sklearn", "mt:sklearn:0", "rt:mlserver-1.x", "mt:onnx", "mt:onnx:1", "rt:ovms-1.x"} {
		required[label] = map[string][]string{"required": {label}}
	}
	document, err := json.Marshal(required)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.layer.SetConstraints(document); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *replayer) close() {
	if err := p.layer.Close(); err != nil {
		p.t.Error(err)
	}
	p.waiting.Wait()
}

// join adds an instance.
func (p *replayer) join(name string, reachable bool) {
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	i := recordedInstance(name)
	if err := p.layer.addInstance(i); err != nil {
		p.t.Fatal(err)
	}
	p.newest = i.ID
	if reachable {
		p.layer.setReachable(i.ID)
	}
}

// createState creates the state at the start of the recording.
func (p *replayer) createState() {
	names, found := initialInstances[p.recording.Name]
	if !found {
		names = []string{"i1"}
	}
	for _, name := range names {
		p.join(name, true)
	}
	switch p.recording.Name {
	case "instance-dies":
		p.addModel("earlier-digits", "mt:sklearn", "i1", "i2")
	case "instance-died-long-ago":
		p.addModel("earlier-digits", "mt:sklearn", "i1", "i2")
		p.addModel("onlythere", "mt:onnx", "i2")
		p.layer.Kill("i2")
		time.Sleep(time.Minute)
	case "failure-expires":
		p.addFailedModel("set__ksp-1", 13*time.Second)
	}
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.initializing = false
	clear(p.writes)
}

// addModel registers a model and loads it on the instances.
func (p *replayer) addModel(name, modelType string, loadedOn ...string) {
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	id := name + "__ksp-1"
	m := &model{Type: modelType, Path: "1s/m", Key: `{"storage_key":"k"}`, Refs: 1, AutoDel: true, LastUsed: time.Now().Add(-ageIfLoadedNow).UnixMilli()}
	v := &vmodel{Owner: "ksp", Active: id, Target: id}
	if err := p.layer.commit(change{vmodels: map[string]*vmodel{name: v}, models: map[string]*model{id: m}}); err != nil {
		p.t.Fatal(err)
	}
	for _, instance := range loadedOn {
		if err := p.layer.start(id, instance, 0); err != nil {
			p.t.Fatal(err)
		}
	}
}

// addFailedModel registers a model with a failure on i1, which is removed after expiry.
func (p *replayer) addFailedModel(id string, expiry time.Duration) {
	p.addModel(strings.TrimSuffix(id, "__ksp-1"), "mt:sklearn")
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	now, m := time.Now(), p.layer.models[id]
	m.Path = "1s/bad/m"
	m.FailedIn = map[string]int64{"i1": now.UnixMilli()}
	m.Fails = map[string]failure{"i1": {Message: "INVALID_ARGUMENT: the store has no such file"}}
	p.layer.after(expiry, func() { p.layer.removeFailure(id, "i1", now) })
}

// recordWrites stores the writes to vmodels and models.
func (p *replayer) recordWrites(values map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, value := range values {
		if strings.HasPrefix(key, keyInstances) {
			continue
		}
		text := "deleted"
		if value != nil {
			var document map[string]any
			if err := json.Unmarshal(value, &document); err != nil {
				p.t.Error(err)
			}
			text = normalizeRecord(document)
		}
		p.writes[key] = append(p.writes[key], text)
	}
}

// normalizeRecord returns an etcd record as JSON: the last use as an age in hours, without the other times.
func normalizeRecord(document map[string]any) string {
	out := maps.Clone(document)
	for _, name := range []string{"instanceIds", "failedIn"} {
		if times, ok := out[name].(map[string]any); ok {
			out[name] = slices.Sorted(maps.Keys(times))
		}
	}
	switch used := out["lu"].(type) {
	case float64:
		hours := math.Round(time.Since(time.UnixMilli(int64(used))).Hours())
		out["lu"] = fmt.Sprintf("<set-%gh>", hours)
	case string:
		var seconds float64
		if n, _ := fmt.Sscanf(used, "<at %f>", &seconds); n == 1 && seconds < -3000 {
			out["lu"] = "<set-1h>"
		} else if !strings.HasPrefix(used, "<set-") {
			out["lu"] = "<set-0h>"
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// handleWrite processes a recorded write to etcd: it adds instances, makes the newest one reachable, and compares writes to vmodels and
// models.
func (p *replayer) handleWrite(s step) error {
	if id, ok := strings.CutPrefix(s.Key, keyInstances); ok {
		p.layer.mu.Lock()
		known := p.layer.instances[id] != nil
		p.layer.mu.Unlock()
		if !known && s.Etcd == "put" {
			p.join(id, false)
		}
		return nil
	}
	if strings.Contains(s.Key, "litelinks") && s.Etcd == "put" {
		p.layer.mu.Lock()
		defer p.layer.mu.Unlock()
		p.layer.setReachable(p.newest)
		return nil
	}
	if !strings.HasPrefix(s.Key, keyVModels) && !strings.HasPrefix(s.Key, keyModels) {
		return nil // the record of the leader election
	}
	if p.recording.Name == "memory-short" && s.At > 17.6 {
		return nil // in the recording, ModelMesh evicts a model that still fits into memory; the fake does not
	}
	want := "deleted"
	if document, ok := s.Value.(map[string]any); ok && s.Etcd == "put" {
		want = normalizeRecord(document)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.writes[s.Key]
	if len(got) == 0 {
		return fmt.Errorf("%s was not written, want %s", s.Key, want)
	}
	if difference := cmp.Diff(want, got[0]); difference != "" {
		return fmt.Errorf("%s differs (-want +got):\n%s", s.Key, difference)
	}
	p.writes[s.Key] = got[1:]
	return nil
}

// checkUnexpected reports writes and loads that the recording does not contain.
func (p *replayer) checkUnexpected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, texts := range p.writes {
		if len(texts) > 0 {
			p.t.Errorf("unexpected writes to %s: %q", key, texts)
		}
	}
	if len(p.starts) > 0 {
		p.t.Errorf("unexpected loads: %q", p.starts)
	}
}

// call sends a request and compares the response, in the background if the request waits for a load.
func (p *replayer) call(s step) error {
	if s.Class != "waits-for-load" {
		return compareResult(s, p.send(s))
	}
	p.waiting.Go(func() {
		if err := compareResult(s, p.send(s)); err != nil {
			p.t.Errorf("at %.2f: %v", s.At, err)
		}
	})
	synctest.Wait()
	return nil
}

type callResult struct {
	response proto.Message
	err      error
}

func (p *replayer) send(s step) callResult {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	view := p.layer.At(s.On)
	text, err := json.Marshal(s.Request)
	if err != nil {
		return callResult{err: err}
	}
	var result callResult
	switch s.Call {
	case "SetVModel":
		result.response, result.err = invoke(ctx, text, &meshpb.SetVModelRequest{}, view.SetVModel)
	case "DeleteVModel":
		result.response, result.err = invoke(ctx, text, &meshpb.DeleteVModelRequest{}, view.DeleteVModel)
	case "GetVModelStatus":
		result.response, result.err = invoke(ctx, text, &meshpb.GetVModelStatusRequest{}, view.GetVModelStatus)
	case "GetModelStatus":
		result.response, result.err = invoke(ctx, text, &meshpb.GetStatusRequest{}, view.GetModelStatus)
	case "EnsureLoaded":
		result.response, result.err = invoke(ctx, text, &meshpb.EnsureLoadedRequest{}, view.EnsureLoaded)
	case "UnregisterModel":
		result.response, result.err = invoke(ctx, text, &meshpb.UnregisterModelRequest{}, view.UnregisterModel)
	case "inference":
		id, _ := s.Request["header mm-vmodel-id"].(string)
		result.response, result.err = &meshpb.DeleteVModelResponse{}, view.Use(ctx, id)
	default:
		result.err = fmt.Errorf("unknown call %s", s.Call)
	}
	return result
}

func invoke[Request, Response proto.Message](ctx context.Context, text []byte, request Request, method func(context.Context, Request) (Response, error)) (proto.Message, error) {
	if err := protojson.Unmarshal(text, request); err != nil {
		return nil, err
	}
	return method(ctx, request)
}

// compareResult compares the result of a call with the recorded one.
func compareResult(s step, result callResult) error {
	if s.Error.Code != "" {
		got := status.Convert(result.err)
		unreachable := func(code codes.Code) bool { return code == codes.Unavailable || code == codes.DeadlineExceeded }
		same := got.Code() == codeOf(s.Error.Code) && strings.TrimPrefix(got.Message(), exceptionPrefix) == strings.TrimPrefix(s.Error.Text, exceptionPrefix)
		if same || result.err != nil && unreachable(got.Code()) && unreachable(codeOf(s.Error.Code)) {
			return nil
		}
		return fmt.Errorf("%s %v: %v, %v, want %v", s.Call, s.Request, result.response, got, s.Error)
	}
	if result.err != nil {
		return fmt.Errorf("%s %v: %w", s.Call, s.Request, result.err)
	}
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(result.response)
	if err != nil {
		return err
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	ignoreLoadingCopy(s.Answer, got)
	if difference := cmp.Diff(normalizeResponse(s.Answer), normalizeResponse(got)); difference != "" {
		return fmt.Errorf("the response to %s on %s %v differs (-want +got):\n%s", s.Call, s.On, s.Request, difference)
	}
	return nil
}

// ignoreLoadingCopy clears targetModelStatus.modelCopyInfos of got if want has none while the target is loading: the load starts only
// after the first response, and was late on the machine of the recording.
func ignoreLoadingCopy(want, got any) {
	target := func(response any) map[string]any {
		fields, _ := response.(map[string]any)
		targetStatus, _ := fields["targetModelStatus"].(map[string]any)
		return targetStatus
	}
	w, g := target(want), target(got)
	if none, ok := w["modelCopyInfos"].([]any); ok && len(none) == 0 && w["status"] == "LOADING" && g["status"] == "LOADING" {
		g["modelCopyInfos"] = none
	}
}

// normalizeResponse returns a response without times and exceptionPrefix.
func normalizeResponse(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, part := range v {
			if name != "time" {
				out[name] = normalizeResponse(part)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, part := range v {
			out = append(out, normalizeResponse(part))
		}
		return out
	case string:
		return strings.TrimPrefix(v, exceptionPrefix)
	default:
		return v
	}
}
