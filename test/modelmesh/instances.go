package modelmesh

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// migrationDelay is the time from the termination of an instance to the migration of its models.
const migrationDelay = 80 * time.Millisecond

// instance is the state of an instance that has a record.
type instance struct {
	Instance
	number int // in the order of their starts
	// reachable: other instances know its address; terminating: it got SIGTERM; dead: it was killed, and its record expires later.
	reachable, terminating, dead bool
}

// alive reports whether the instance can serve and load models.
func (i *instance) alive() bool { return i.reachable && !i.terminating && !i.dead }

// SetInstances sets the running pods. A new instance becomes reachable after a delay; a removed one first migrates its models.
func (l *Layer) SetInstances(_ context.Context, running []Instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := map[string]bool{}
	for _, i := range running {
		ready[i.ID] = true
		if _, known := l.instances[i.ID]; known {
			continue
		}
		if err := l.addInstance(i); err != nil {
			return err
		}
		l.after(l.options.StartDelay, func() { l.setReachable(i.ID) })
	}
	for id, i := range l.instances {
		if !ready[id] && !i.terminating && !i.dead {
			l.terminate(id)
		}
	}
	return nil
}

// addInstance adds an instance and writes its record.
func (l *Layer) addInstance(i Instance) error {
	text, err := json.Marshal(map[string]any{"labels": i.Labels, "startTime": l.clock.Now().UnixMilli()})
	if err != nil {
		return fmt.Errorf("encoding an instance: %w", err)
	}
	if err := l.store.Commit(l.ctx, map[string][]byte{keyInstances + i.ID: text}); err != nil {
		return l.unavailable()
	}
	l.started++
	l.instances[i.ID] = &instance{Instance: i, number: l.started}
	return nil
}

// setReachable makes an instance reachable, and loads the models whose records list it.
func (l *Layer) setReachable(id string) {
	i := l.instances[id]
	if i == nil || i.reachable {
		return
	}
	i.reachable = true
	for name, m := range l.models {
		if _, had := m.Instances[id]; had && l.modelCopies[name][id] == nil {
			l.startLoad(name, m, id)
		}
	}
}

// terminate handles SIGTERM: it starts to load the models on other instances, where possible, before it removes the instance.
func (l *Layer) terminate(id string) {
	l.instances[id].terminating = true
	l.after(migrationDelay, func() {
		for _, name := range slices.Sorted(maps.Keys(l.models)) {
			if _, has := l.models[name].Instances[id]; has {
				l.migrate(name, id)
			}
		}
		l.removeInstance(id)
	})
}

func (l *Layer) migrate(name, from string) {
	if available := l.availableInstances(l.models[name]); len(available) > 0 && len(l.modelCopies[name]) == 1 && l.modelCopies[name][from] != nil {
		l.log(l.start(name, available[0], 0), "Loading a model on another instance failed")
	}
	l.cancel(name, from)
	next := l.models[name].clone()
	delete(next.Instances, from)
	l.log(l.commit(change{models: map[string]*model{name: next}}), "Removing a model from an instance failed")
}

// Kill kills an instance: it loses its models. The records of the models are kept, and that of the instance until its lease expires.
func (l *Layer) Kill(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instances[id].dead = true
	for name := range l.modelCopies {
		l.cancel(name, id)
	}
	l.after(leaseTime, func() { l.removeInstance(id) })
}

// removeInstance removes an instance and deletes its record.
func (l *Layer) removeInstance(id string) {
	delete(l.instances, id)
	l.log(l.store.Commit(l.ctx, map[string][]byte{keyInstances + id: nil}), "Deleting the record of an instance failed")
}

func (l *Layer) log(err error, text string) {
	if err != nil && l.ctx.Err() == nil {
		l.options.Log.Error(err, text)
	}
}

// candidates returns the instances, except terminating ones, whose labels match the type of a model. Some may not be able to load it now.
func (l *Layer) candidates(m *model) []*instance {
	var out []*instance
	for _, i := range l.instances {
		if !i.terminating && l.constraints.matches(m.Type, i.Labels) {
			out = append(out, i)
		}
	}
	return out
}

// availableInstances returns the instances that can load a model now, newest first.
func (l *Layer) availableInstances(m *model) []string {
	available := slices.DeleteFunc(l.candidates(m), func(i *instance) bool { return !i.alive() || m.FailedIn[i.ID] != 0 })
	slices.SortFunc(available, func(a, b *instance) int { return b.number - a.number })
	var out []string
	for _, i := range available {
		out = append(out, i.ID)
	}
	return out
}
