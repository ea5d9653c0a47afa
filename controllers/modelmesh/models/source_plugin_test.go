package models

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/mesh"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/modelsource"
)

// fakeSource has one model.
type fakeSource struct {
	entry    *modelsource.Entry
	fault    error
	refuses  bool
	wrote    []v1alpha1.PredictorStatus
	started  chan struct{}
	listener func(types.NamespacedName)
}

func (f *fakeSource) ID() string          { return "plug" }
func (f *fakeSource) DisplayName() string { return "a plugin" }

func (f *fakeSource) Start(context.Context) error {
	if f.started != nil {
		<-f.started
	}
	return f.fault
}

func (f *fakeSource) Get(name types.NamespacedName) *modelsource.Entry {
	if f.entry == nil || name != inCluster {
		return nil
	}
	return f.entry
}

func (f *fakeSource) List(string, func(*modelsource.Entry) bool) []*modelsource.Entry { return nil }

func (f *fakeSource) UpdateStatus(_ context.Context, e *modelsource.Entry, s v1alpha1.PredictorStatus) (bool, error) {
	if f.fault != nil {
		return false, f.fault
	}
	if f.refuses || e != f.entry {
		return false, nil
	}
	f.wrote = append(f.wrote, s)
	f.entry = &modelsource.Entry{Model: e.Model, Status: s, Version: e.Version + "+"}
	return true, nil
}

func (f *fakeSource) Subscribe(_ context.Context, listener func(types.NamespacedName)) {
	f.listener = listener
}

var ofPlugin = types.NamespacedName{Namespace: "plug_ns", Name: "digits"}

func newPluginWorld(t *testing.T) (*world, *fakeSource, *plugin) {
	t.Helper()
	w := newWorld(t)
	f := &fakeSource{entry: &modelsource.Entry{Model: modelmesh.FromPredictor(predictor()), Version: "1"}}
	p := newPlugin(f)
	w.sources["plug"] = p
	return w, f, p
}

func TestModelsOfAPlugin(t *testing.T) {
	w, f, p := newPluginWorld(t)
	w.memory.mark(ofPlugin)
	w.reconcile(ofPlugin)
	if w.mesh.calls() != 0 || len(f.wrote) != 0 {
		t.Error("the source has not said yet what it has")
	}
	close(p.known)
	w.mesh.fault = mesh.ErrNoAddress
	w.reconcile(ofPlugin)
	if len(f.wrote) != 1 || f.wrote[0].ActiveModelState != v1alpha1.Pending || f.wrote[0].LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy {
		t.Errorf("%+v", f.wrote)
	}
	if got := w.mesh.sets[0]; got.GetOwner() != "plug" || got.GetTargetModelId()[:13] != "digits__plug-" || !got.GetLoadNow() {
		t.Errorf("%v", got)
	}
	w.rests(ofPlugin)
	w.mesh.fault, w.mesh.answer = nil, says("x", concrete(loaded))
	w.memory.freshen("ns")
	f.refuses = true
	w.waits(ofPlugin)
	f.refuses = false
	w.reconcile(ofPlugin)
	if len(f.wrote) != 2 || !f.wrote[1].Available || len(w.told()) != 0 {
		t.Errorf("%+v", f.wrote)
	}
	w.rests(ofPlugin)
	f.entry = nil
	w.reconcile(ofPlugin)
	if got := w.mesh.deletes; len(got) != 1 || got[0].GetOwner() != "plug" {
		t.Errorf("%v", got)
	}
}

func TestAPluginThatFailsToStore(t *testing.T) {
	w, f, p := newPluginWorld(t)
	close(p.known)
	f.fault = errors.New("broken")
	w.mesh.answer = says("x", concrete(loaded))
	if _, err := w.Reconcile(t.Context(), requestOf(ofPlugin)); !errors.Is(err, f.fault) {
		t.Errorf("error %v", err)
	}
}

func TestRunOfAPlugin(t *testing.T) {
	w, q := newWakes(t)
	if err := w.feed.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	f := &fakeSource{started: make(chan struct{})}
	p := newPlugin(f)
	w.known["plug"] = p
	w.heard("plug", "ns", "orphan")
	queued(q)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.run(w, logr.Discard()).Start(ctx) }()
	select {
	case <-p.known:
		t.Fatal("the source does not know its models yet")
	default:
	}
	close(f.started)
	<-p.known
	item, _ := q.Get() // what was heard before is looked at now
	q.Done(item)
	if item.String() != "plug_ns/orphan" {
		t.Errorf("woken %s", item)
	}
	f.listener(inCluster)
	if got := queued(q); !slices.Equal(got, []string{"plug_ns/digits"}) {
		t.Errorf("woken %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAPluginThatDoesNotStart(t *testing.T) {
	w, _ := newWakes(t)
	p := newPlugin(&fakeSource{fault: errors.New("broken")})
	var lines atomic.Int32
	log := funcr.New(func(string, string) { lines.Add(1) }, funcr.Options{})
	if err := p.run(w, log).Start(t.Context()); err != nil || lines.Load() != 1 {
		t.Errorf("error %v, %d lines: nothing else must suffer from it", err, lines.Load())
	}
	if _, err := p.get(t.Context(), inCluster); !errors.Is(err, errAway) {
		t.Errorf("error %v", err)
	}
}
