package modelmesh

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	yaml "go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// recording is one situation of testdata/answers.yaml, with the recorded responses and writes of the real routing layer.
type recording struct {
	Name, Before, Settings string
	Of                     int
	Steps                  []step
}

// step is a call with its response, a write to etcd, a request to a runtime, or an action on instances, etcd or the storage.
type step struct {
	At, Until   float64
	Times, Ms   int
	Call, On    string
	Class       string
	Request     map[string]any
	Answer      any
	Error       callError
	Etcd, Key   string
	Value       any
	Runtime     string
	Model, Path string
	Code, Text  string
	Happens     string
}

type callError struct{ Code, Text string }

// UnmarshalYAML ignores an error that is a string, which is recorded when the load of a runtime was cancelled.
func (e *callError) UnmarshalYAML(node *yaml.Node) error {
	type plain callError
	if node.Kind != yaml.MappingNode {
		return nil
	}
	return node.Decode((*plain)(e))
}

// unsupported are the situations in which the fake differs from the routing layer, with the difference. Other situations cover the
// behaviour that the manager depends on: two copies of a model (instance-dies), a wiped etcd (etcd-wiped), an unreachable etcd
// (etcd-stops, etcd-away-20s) and a transition that does not end (replace-by-homeless).
var unsupported = map[string]string{
	// The second copy depends on average request rates over minutes. The manager does not request copies, but only counts the reported ones.
	"used-much": "creates no second copy of a frequently used model",
	// Until the revision of the new etcd exceeds that of the old one, watches of an instance deliver no changes, so its memory and its
	// transitions miss even its own writes. The store of the fake has no revisions.
	"etcd-away-after-wipe":     "after a wipe, keeps the models that are registered again while the store is unreachable",
	"replace-after-wipe":       "after a wipe, starts transitions",
	"replace-after-wipe-later": "continues replace-after-wipe",
}

// initialInstances are the instances at the start of a recording; the default is i1.
var initialInstances = map[string][]string{
	"instance-starts": {}, "asked-at-another-instance": {"i1", "i2:onnx"}, "load-fails-on-two": {"i1", "i2"},
	"instance-dies": {"i1", "i2:onnx"}, "instance-died-long-ago": {"i1", "i2", "i4"}, "etcd-wiped-then-set-lazily": {"i1", "i4"},
}

// missingEvents are the actions that happened during a recording without an entry in it.
var missingEvents = map[string][]step{"long-run": {
	{At: 238, Happens: "i2 joins"}, {At: 300, Happens: "i2 gets SIGTERM"}, {At: 365.8, Happens: "i3 joins"}, {At: 366.7, Happens: "i3 gets SIGTERM"},
	{At: 420, Happens: "i4 joins"},
}}

// The fake sends the recorded responses of model-mesh v0.12.0 and writes the same records.
func TestFakeConformsToRecordings(t *testing.T) {
	text, err := os.ReadFile("testdata/answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 64 {
		t.Fatalf("%d situations, want 64", len(all))
	}
	for _, r := range all {
		if unsupported[r.Name] != "" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { replay(t, r) }) })
	}
}

// replay executes the steps of a recording at their times. The layer may react later than in the recording.
func replay(t *testing.T, r recording) {
	p := newReplayer(t, r)
	defer p.close()
	p.createState()
	p.startTime = time.Now()
	for _, s := range timeline(append(missingEvents[r.Name], r.Steps...)) {
		if wait := time.Until(p.startTime.Add(p.delay + time.Duration(s.At*float64(time.Second)))); wait > 0 {
			time.Sleep(wait)
		}
		synctest.Wait()
		if err := p.retry(func() error { return p.step(s) }); err != nil {
			t.Fatalf("at %.2f (%s late): %v", s.At, p.delay, err)
		}
	}
	p.checkUnexpected()
}

// timeline expands repeated calls into at most six single ones, and sorts the steps by time.
func timeline(steps []step) []step {
	var out []step
	for _, s := range steps {
		// Recorded times are rounded to 0.01 s. Of the steps at the same time, a response with LOADING precedes the end of the load, and the
		// steps of a runtime precede the others.
		switch {
		case s.Runtime != "":
			s.At -= 0.005
		case strings.Contains(fmt.Sprint(s.Answer), " status:LOADING]") &&
			slices.ContainsFunc(steps, func(o step) bool { return o.Runtime == "load-end" && o.At == s.At }):
			s.At -= 0.006
		}
		times := min(max(s.Times, 1), 6)
		pause := 0.0
		if s.Times > 1 {
			pause = (s.Until - s.At) * float64(s.Times-1) / float64(s.Times) / float64(times)
		}
		for range times {
			out = append(out, s)
			s.At += pause
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return out
}

// retry calls try until it succeeds, and returns its last error if the layer does not react in time.
func (p *replayer) retry(try func() error) error {
	const interval = 20 * time.Millisecond
	timeout := 5 * time.Second
	if strings.Contains(p.recording.Settings, "expiry") {
		timeout = 25 * time.Second
	}
	err := try()
	for waited := time.Duration(0); err != nil && waited < timeout; waited += interval {
		time.Sleep(interval)
		synctest.Wait()
		p.delay += interval
		err = try()
	}
	return err
}

// step executes a step of the recording, or checks that the layer has executed it.
func (p *replayer) step(s step) error {
	switch {
	case s.Call == "GetVModelStatus" && s.Error.Code == "Unknown":
		return nil // recorded once, when a failure could not be written
	case s.Call != "":
		return p.call(s)
	case s.Happens != "":
		return p.runAction(s.Happens)
	case s.Etcd != "":
		return p.handleWrite(s)
	case s.Runtime == "load-start":
		return p.removeEntry(&p.starts, s.Model+" on "+s.On)
	case s.Runtime == "load-cancelled":
		return p.removeEntry(&p.cancelled, s.Model+" on "+s.On)
	case s.Runtime == "load-end":
		return p.release(s, nil)
	case s.Runtime == "load-failed":
		return p.release(s, status.Error(codeOf(s.Code), s.Text))
	default:
		return nil // recorded unload and inference requests of runtimes are not compared
	}
}

func codeOf(name string) codes.Code {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if code.String() == name {
			return code
		}
	}
	return codes.Unknown
}

// removeEntry removes an entry from a list.
func (p *replayer) removeEntry(list *[]string, entry string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := slices.Index(*list, entry)
	if index < 0 {
		return fmt.Errorf("%s is not among %q", entry, *list)
	}
	*list = slices.Delete(*list, index, index+1)
	return nil
}

// release ends a load with its recorded result.
func (p *replayer) release(s step, err error) error {
	p.mu.Lock()
	gate := p.gates[s.Model+" on "+s.On]
	delete(p.gates, s.Model+" on "+s.On)
	p.mu.Unlock()
	if gate == nil {
		return fmt.Errorf("%s is not being loaded on %s", s.Model, s.On)
	}
	gate <- err
	synctest.Wait()
	return nil
}

// load implements Loader: it returns when the recording ends the load or the layer cancels it.
func (p *replayer) load(ctx context.Context, l Load) error {
	entry := l.ID + " on " + l.Instance
	gate := make(chan error, 1)
	p.mu.Lock()
	if p.initializing {
		gate <- nil
	} else {
		p.starts = append(p.starts, entry)
		p.gates[entry] = gate
	}
	p.mu.Unlock()
	select {
	case err := <-gate:
		return err
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cancelled = append(p.cancelled, entry)
		delete(p.gates, entry)
		return ctx.Err()
	}
}

// runAction executes an action of the recording on the layer or its store, and ignores others. An instance that starts joins only when
// its record is written.
func (p *replayer) runAction(entry string) error {
	words := strings.Fields(entry)
	switch {
	case entry == "etcd stops":
		p.store.SetUnreachable(true)
	case entry == "etcd is back with its data":
		p.store.SetUnreachable(false)
	case entry == "etcd is back, empty":
		p.store.Wipe()
	case strings.HasSuffix(entry, " joins"):
		p.join(words[0], true)
	case strings.HasSuffix(entry, "is killed"):
		p.layer.Kill(words[0])
	case strings.HasSuffix(entry, "gets SIGTERM"):
		p.layer.mu.Lock()
		defer p.layer.mu.Unlock()
		p.layer.terminate(words[0])
	}
	synctest.Wait()
	return nil
}

// sizeOf returns the size in MiB from the path of a model; the default is 1.
func sizeOf(l Load) int {
	text, found := strings.CutPrefix(strings.Split(l.Path, "/")[0], "mib=")
	size, err := strconv.Atoi(text)
	if !found || err != nil {
		return 1
	}
	return size
}
