package modelmesh

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// goodbye is the time from the termination of an instance to the handover of its models.
const goodbye = 80 * time.Millisecond

// instance is an instance with a record.
type instance struct {
	Instance
	number int // in the order of their starts
	// reachable: others know its address; ending: it was stopped; dead: it was killed, but its record is kept for a while.
	reachable, ending, dead bool
}

// alive reports whether the instance can serve and load.
func (i *instance) alive() bool { return i.reachable && !i.ending && !i.dead }

// SetInstances sets the running pods. A new instance is unreachable for a moment; a terminating one hands over its models first.
func (l *Layer) SetInstances(_ context.Context, running []Instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := map[string]bool{}
	for _, i := range running {
		ready[i.ID] = true
		if _, known := l.instances[i.ID]; known {
			continue
		}
		if err := l.add(i); err != nil {
			return err
		}
		l.after(l.options.StartDelay, func() { l.reach(i.ID) })
	}
	for id, i := range l.instances {
		if !ready[id] && !i.ending && !i.dead {
			l.end(id)
		}
	}
	return nil
}

// add writes the record of an instance.
func (l *Layer) add(i Instance) error {
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

// reach makes an instance reachable for others. It loads again the models that it had when the layer was closed.
func (l *Layer) reach(id string) {
	i := l.instances[id]
	if i == nil || i.reachable {
		return
	}
	i.reachable = true
	for name, m := range l.models {
		if _, had := m.Instances[id]; had && l.runs[name][id] == nil {
			l.startLoad(name, m, id)
		}
	}
}

// end handles SIGTERM: models that other instances may load are loaded there first.
func (l *Layer) end(id string) {
	l.instances[id].ending = true
	l.after(goodbye, func() {
		for _, name := range slices.Sorted(maps.Keys(l.models)) {
			if _, has := l.models[name].Instances[id]; has {
				l.handOver(name, id)
			}
		}
		l.drop(id)
	})
}

func (l *Layer) handOver(name, from string) {
	if available := l.availableInstances(l.models[name]); len(available) > 0 && len(l.runs[name]) == 1 && l.runs[name][from] != nil {
		l.log(l.start(name, available[0], 0), "Loading a model on another instance failed")
	}
	l.cancel(name, from)
	next := l.models[name].clone()
	delete(next.Instances, from)
	l.log(l.commit(change{models: map[string]*model{name: next}}), "Removing a model from an instance failed")
}

// Kill kills an instance: its models are lost, but its record and those of the models are kept.
func (l *Layer) Kill(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instances[id].dead = true
	for name := range l.runs {
		l.cancel(name, id)
	}
	l.after(leaseTime, func() { l.drop(id) })
}

// drop removes the record of an instance.
func (l *Layer) drop(id string) {
	delete(l.instances, id)
	l.log(l.store.Commit(l.ctx, map[string][]byte{keyInstances + id: nil}), "The record of an instance was not removed")
}

func (l *Layer) log(err error, text string) {
	if err != nil && l.ctx.Err() == nil {
		l.options.Log.Error(err, text)
	}
}

// candidates returns the instances whose labels fit a model, by the records.
func (l *Layer) candidates(m *model) []*instance {
	var out []*instance
	for _, i := range l.instances {
		if !i.ending && l.constraints.matches(m.Type, i.Labels) {
			out = append(out, i)
		}
	}
	return out
}

// availableInstances returns the instances that can load a model now, the newest first.
func (l *Layer) availableInstances(m *model) []string {
	available := slices.DeleteFunc(l.candidates(m), func(i *instance) bool { return !i.alive() || m.FailedIn[i.ID] != 0 })
	slices.SortFunc(available, func(a, b *instance) int { return b.number - a.number })
	var out []string
	for _, i := range available {
		out = append(out, i.ID)
	}
	return out
}
