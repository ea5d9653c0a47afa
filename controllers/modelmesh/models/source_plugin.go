package models

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelsource"
)

// plugin is a source that was compiled in.
type plugin struct {
	modelsource.Source
	// known is closed when the source knows its models: before, that it has one not says nothing.
	known chan struct{}
}

func newPlugin(s modelsource.Source) *plugin { return &plugin{Source: s, known: make(chan struct{})} }

func (p *plugin) get(_ context.Context, name types.NamespacedName) (*record, error) {
	select {
	case <-p.known:
	default:
		return nil, errAway
	}
	e := p.Get(name)
	if e == nil {
		return nil, nil
	}
	m := e.Model
	m.Source, m.Namespace, m.Name = p.ID(), name.Namespace, name.Name
	status := *e.Status.DeepCopy()
	if status.ActiveModelState == v1alpha1.NoState {
		status.ActiveModelState = v1alpha1.Pending // no schema has given it a default
	}
	return &record{Model: m, status: status, problem: m.Invalid(), entry: e}, nil
}

func (p *plugin) write(ctx context.Context, r *record, status v1alpha1.PredictorStatus) (written, error) {
	if equality.Semantic.DeepEqual(r.status, status) {
		return written{}, nil
	}
	stored, err := p.UpdateStatus(ctx, r.entry, status)
	if err != nil {
		return written{}, fmt.Errorf("writing the status of a model of %s: %w", p.DisplayName(), err)
	}
	return written{outdated: !stored}, nil
}

// run keeps a source going while the component runs, and has its models looked at as soon as it knows them. One that does not start
// is away for good, and nothing else suffers from that.
func (p *plugin) run(w *wakes, log logr.Logger) runnable {
	return func(ctx context.Context) error {
		p.Subscribe(ctx, func(name types.NamespacedName) { w.feed.add(join(p.ID(), name)) })
		if err := p.Start(ctx); err != nil {
			log.Error(err, "A source of models did not start; its models are left as they are", "source", p.DisplayName())
			return nil
		}
		close(p.known)
		w.back(p.ID())
		<-ctx.Done()
		return nil
	}
}

// runnable is a function that the manager runs on the leader.
type runnable func(context.Context) error

// Start implements manager.Runnable.
func (r runnable) Start(ctx context.Context) error { return r(ctx) }

// addPlugins makes sources known, and has the manager run them.
func addPlugins(mgr ctrl.Manager, w *wakes, sources []modelsource.Source) error {
	if err := modelsource.Validate(sources); err != nil {
		return err
	}
	for _, s := range sources {
		p := newPlugin(s)
		w.known[s.ID()] = p
		if err := mgr.Add(p.run(w, mgr.GetLogger().WithName("models"))); err != nil {
			return fmt.Errorf("adding the source of models %s to the manager: %w", s.DisplayName(), err)
		}
	}
	return nil
}
