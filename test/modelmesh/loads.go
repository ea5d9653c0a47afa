package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxAttempts is on how many instances a load is tried.
const maxAttempts = 3

// Load is one attempt to load a concrete model.
type Load struct {
	Namespace, ID, Instance string
	// Type is the label that decided where, Key the JSON for the puller.
	Type, Path, Key string
}

// Loader does what puller and runtime would: it returns when the model is loaded, or the error that users see. The context ends
// when the model or the instance goes.
type Loader func(context.Context, Load) error

// pullFailed begins what the puller says.
const pullFailed = "Failed to pull model from storage due to error"

// ByPath loads at once, unless there is no storage at all, or a part of the path says that nothing is there: `missing`, `invalid`.
func ByPath(_ context.Context, l Load) error {
	if !strings.Contains(l.Key, `"storage_key"`) && !strings.Contains(l.Key, `"storage_params"`) && l.Path == "" {
		return fmt.Errorf("%s: Predictor Storage field missing", pullFailed)
	}
	for part := range strings.FieldsFuncSeq(l.Path, func(r rune) bool { return r == '/' || r == '-' }) {
		if part == "missing" || part == "invalid" {
			return fmt.Errorf("%s: no objects found for path %q", pullFailed, l.Path)
		}
	}
	return nil
}

// load is one that is under way.
type load struct {
	instance string
	cancel   context.CancelFunc
}

// startLoad loads a model on an instance that may have it and has not failed to, unless it is loaded or being loaded.
func (l *Layer) startLoad(id string, m *model) {
	if l.closed || len(m.Instances) > 0 || l.loads[id] != nil {
		return
	}
	m.forget(l.gone, l.options.Clock.Now().Add(-failureExpiry))
	homes := slices.DeleteFunc(l.constraints.homes(m.Type, l.instances), func(instance string) bool { return m.FailedIn[instance] != 0 })
	if len(homes) == 0 || len(m.FailedIn) >= maxAttempts {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	run := &load{instance: homes[0], cancel: cancel}
	l.loads[id] = run
	what := Load{Namespace: l.options.Namespace, ID: id, Instance: run.instance, Type: m.Type, Path: m.Path, Key: m.Key}
	l.running.Go(func() {
		defer cancel()
		l.finish(ctx, what, run, l.options.Loader(ctx, what))
	})
}

// finish writes down what became of a load, unless it was given up.
func (l *Layer) finish(ctx context.Context, what Load, run *load, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loads[what.ID] != run || ctx.Err() != nil {
		return
	}
	delete(l.loads, what.ID)
	if err := l.record(ctx, what, failed); err != nil {
		l.options.Log.Error(err, "What became of a load could not be written down", "model", what.ID)
	}
}

func (l *Layer) record(ctx context.Context, what Load, failed error) error {
	m, err := read[model](ctx, l.store, keyModels+what.ID)
	if err != nil || m == nil {
		return err
	}
	if failed == nil {
		m.loaded(what.Instance, l.options.Clock.Now())
	} else {
		m.failed(what.Instance, failed.Error(), l.options.Clock.Now())
		l.startLoad(what.ID, m)
	}
	if err := l.store.put(ctx, keyModels+what.ID, m); err != nil {
		return err
	}
	if l.loads[what.ID] != nil {
		return nil // another instance tries
	}
	return l.endTransitions(ctx, what.ID, failed != nil)
}

// endTransitions lets the vmodels that wait for a target take it, or know that it cannot be had.
func (l *Layer) endTransitions(ctx context.Context, target string, failed bool) error {
	all, err := list[vmodel](ctx, l.store, keyVModels)
	if err != nil {
		return err
	}
	for id, v := range all {
		if v.Target != target || v.Active == target {
			continue
		}
		next := *v
		next.Failed = failed
		if !failed {
			next.Active = target
		}
		if next != *v {
			err = errors.Join(err, l.replace(ctx, id, v, &next))
		}
	}
	return err
}
