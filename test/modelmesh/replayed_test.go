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

// replayed is a layer in the situation of a recording.
type replayed struct {
	t         *testing.T
	recording recording
	layer     *Layer
	store     *Memory
	begun     time.Time
	late      time.Duration
	arriving  string // the instance that started last
	waiting   sync.WaitGroup

	mu                sync.Mutex
	arranging         bool
	writes            map[string][]string
	starts, cancelled []string
	gates             map[string]chan error
}

// never is longer than any recording.
const never = 1000 * time.Hour

// labelsOf returns an instance of the recordings with its labels: all but i1 have also those of onnx.
func labelsOf(name string) Instance {
	id, onnx, _ := strings.Cut(name, ":")
	labels := []string{"mt:sklearn", "mt:sklearn:0", "rt:mlserver-1.x"}
	if onnx != "" || id != "i1" {
		labels = append(labels, "mt:onnx", "mt:onnx:1", "rt:ovms-1.x")
	}
	return Instance{ID: id, Labels: labels}
}

func newReplayed(t *testing.T, r recording) *replayed {
	p := &replayed{t: t, recording: r, arranging: true, writes: map[string][]string{}, gates: map[string]chan error{}}
	p.store = &Memory{OnCommit: p.committed}
	options := LayerOptions{Store: p.store, Loader: p.load, Log: logr.Discard(), StartDelay: never, FirstRound: never}
	if strings.Contains(r.Settings, "failure expiry") {
		options.FailureExpiry, options.FailureCheck = time.Minute, 20*time.Second
	}
	if r.Name == "long-run" {
		options.FailureCheck, options.FirstRound = 159*time.Second, 0 // the times of the checks in the recordings
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

func (p *replayed) close() {
	if err := p.layer.Close(); err != nil {
		p.t.Error(err)
	}
	p.waiting.Wait()
}

// join adds an instance, reachable immediately if reachable is set.
func (p *replayed) join(name string, reachable bool) {
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	i := labelsOf(name)
	if err := p.layer.add(i); err != nil {
		p.t.Fatal(err)
	}
	p.arriving = i.ID
	if reachable {
		p.layer.reach(i.ID)
	}
}

// createState creates the state before the recording.
func (p *replayed) createState() {
	names, special := running[p.recording.Name]
	if !special {
		names = []string{"i1"}
	}
	for _, name := range names {
		p.join(name, true)
	}
	switch p.recording.Name {
	case "instance-dies":
		p.loadedOn("earlier-digits", "mt:sklearn", "i1", "i2")
	case "instance-died-long-ago":
		p.loadedOn("earlier-digits", "mt:sklearn", "i1", "i2")
		p.loadedOn("onlythere", "mt:onnx", "i2")
		p.layer.Kill("i2")
		time.Sleep(time.Minute)
	case "failure-expires":
		p.failedBefore("set__ksp-1", 13*time.Second)
	}
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arranging = false
	clear(p.writes)
}

// loadedOn registers a model that instances have.
func (p *replayed) loadedOn(name, kind string, instances ...string) {
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	id := name + "__ksp-1"
	m := &model{Type: kind, Path: "1s/m", Key: `{"storage_key":"k"}`, Refs: 1, AutoDel: true, LastUsed: time.Now().Add(-ageIfLoadedNow).UnixMilli()}
	v := &vmodel{Owner: "ksp", Active: id, Target: id}
	if err := p.layer.commit(change{vmodels: map[string]*vmodel{name: v}, models: map[string]*model{id: m}}); err != nil {
		p.t.Fatal(err)
	}
	for _, instance := range instances {
		if err := p.layer.start(id, instance, 0); err != nil {
			p.t.Fatal(err)
		}
	}
}

// failedBefore registers a model that i1 has failed to load; the failure is forgotten after a while.
func (p *replayed) failedBefore(id string, forgotten time.Duration) {
	p.loadedOn(strings.TrimSuffix(id, "__ksp-1"), "mt:sklearn")
	p.layer.mu.Lock()
	defer p.layer.mu.Unlock()
	now, m := time.Now(), p.layer.models[id]
	m.Path = "1s/bad/m"
	m.FailedIn = map[string]int64{"i1": now.UnixMilli()}
	m.Fails = map[string]failure{"i1": {Message: "INVALID_ARGUMENT: the store has no such file"}}
	p.layer.after(forgotten, func() { p.layer.forget(id, "i1", now) })
}

// committed stores the writes to models.
func (p *replayed) committed(values map[string][]byte) {
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
			text = withoutTimes(document)
		}
		p.writes[key] = append(p.writes[key], text)
	}
}

// withoutTimes returns a record with the last use as an age in hours, and without the other times.
func withoutTimes(document map[string]any) string {
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

// compareWrite compares the next write to a key with the recorded one.
func (p *replayed) compareWrite(s step) error {
	if id, is := strings.CutPrefix(s.Key, keyInstances); is {
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
		p.layer.reach(p.arriving)
		return nil
	}
	if !strings.HasPrefix(s.Key, keyVModels) && !strings.HasPrefix(s.Key, keyModels) {
		return nil // written by the election of the leader
	}
	if p.recording.Name == "memory-short" && s.At > 17.6 {
		return nil // the routing layer drops a model that would still fit seconds later, for internal reasons
	}
	want := "deleted"
	if document, ok := s.Value.(map[string]any); ok && s.Etcd == "put" {
		want = withoutTimes(document)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.writes[s.Key]
	if len(got) == 0 {
		return fmt.Errorf("%s is not written, want %s", s.Key, want)
	}
	if difference := cmp.Diff(want, got[0]); difference != "" {
		return fmt.Errorf("%s is written otherwise (-want +got):\n%s", s.Key, difference)
	}
	p.writes[s.Key] = got[1:]
	return nil
}

func (p *replayed) leftovers() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, texts := range p.writes {
		if len(texts) > 0 {
			p.t.Errorf("%s is written in vain: %q", key, texts)
		}
	}
	if len(p.starts) > 0 {
		p.t.Errorf("loaded in vain: %q", p.starts)
	}
}

// call sends a request and compares the answer. If the request waits for a load, the answer is compared after later steps.
func (p *replayed) call(s step) error {
	if s.Class != "waits-for-load" {
		return differs(s, p.send(s))
	}
	p.waiting.Go(func() {
		if err := differs(s, p.send(s)); err != nil {
			p.t.Errorf("at %.2f: %v", s.At, err)
		}
	})
	synctest.Wait()
	return nil
}

type answered struct {
	response proto.Message
	err      error
}

func (p *replayed) send(s step) answered {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	view := p.layer.At(s.On)
	text, err := json.Marshal(s.Request)
	if err != nil {
		return answered{err: err}
	}
	var a answered
	switch s.Call {
	case "SetVModel":
		a.response, a.err = ask(ctx, text, &meshpb.SetVModelRequest{}, view.SetVModel)
	case "DeleteVModel":
		a.response, a.err = ask(ctx, text, &meshpb.DeleteVModelRequest{}, view.DeleteVModel)
	case "GetVModelStatus":
		a.response, a.err = ask(ctx, text, &meshpb.GetVModelStatusRequest{}, view.GetVModelStatus)
	case "GetModelStatus":
		a.response, a.err = ask(ctx, text, &meshpb.GetStatusRequest{}, view.GetModelStatus)
	case "EnsureLoaded":
		a.response, a.err = ask(ctx, text, &meshpb.EnsureLoadedRequest{}, view.EnsureLoaded)
	case "UnregisterModel":
		a.response, a.err = ask(ctx, text, &meshpb.UnregisterModelRequest{}, view.UnregisterModel)
	case "inference":
		id, _ := s.Request["header mm-vmodel-id"].(string)
		a.response, a.err = &meshpb.DeleteVModelResponse{}, view.Use(ctx, id)
	default:
		a.err = fmt.Errorf("no such call: %s", s.Call)
	}
	return a
}

func ask[Q, A proto.Message](ctx context.Context, text []byte, request Q, method func(context.Context, Q) (A, error)) (proto.Message, error) {
	if err := protojson.Unmarshal(text, request); err != nil {
		return nil, err
	}
	return method(ctx, request)
}

// differs compares an answer with the recorded one.
func differs(s step, a answered) error {
	if s.Error.Code != "" {
		got := status.Convert(a.err)
		gone := func(code codes.Code) bool { return code == codes.Unavailable || code == codes.DeadlineExceeded }
		same := got.Code() == codeOf(s.Error.Code) && strings.TrimPrefix(got.Message(), exceptionPrefix) == strings.TrimPrefix(s.Error.Text, exceptionPrefix)
		if same || a.err != nil && gone(got.Code()) && gone(codeOf(s.Error.Code)) {
			return nil
		}
		return fmt.Errorf("%s %v: %v, %v, want %v", s.Call, s.Request, a.response, got, s.Error)
	}
	if a.err != nil {
		return fmt.Errorf("%s %v: %w", s.Call, s.Request, a.err)
	}
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(a.response)
	if err != nil {
		return err
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	allowDifferences(s.Answer, got)
	if difference := cmp.Diff(withoutTimestamps(s.Answer), withoutTimestamps(got)); difference != "" {
		return fmt.Errorf("%s on %s %v is answered otherwise (-want +got):\n%s", s.Call, s.On, s.Request, difference)
	}
	return nil
}

// allowDifferences removes the copy that loads the target of a transition from an answer if the recording lacks it: the recording machine was
// slow, and the load starts only after the first answer.
func allowDifferences(want, got any) {
	target := func(response any) map[string]any {
		whole, _ := response.(map[string]any)
		part, _ := whole["targetModelStatus"].(map[string]any)
		return part
	}
	w, g := target(want), target(got)
	if none, ok := w["modelCopyInfos"].([]any); ok && len(none) == 0 && w["status"] == "LOADING" && g["status"] == "LOADING" {
		g["modelCopyInfos"] = none
	}
}

// withoutTimestamps returns an answer without times and without the temporary prefix of texts of failures.
func withoutTimestamps(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, part := range v {
			if name != "time" {
				out[name] = withoutTimestamps(part)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, part := range v {
			out = append(out, withoutTimestamps(part))
		}
		return out
	case string:
		return strings.TrimPrefix(v, exceptionPrefix)
	default:
		return v
	}
}
