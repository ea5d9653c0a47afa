package modelmesh

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

const (
	// maxAttempts is the number of instances that try to load a model, attemptDelay the time from a failure to the next attempt.
	maxAttempts  = 3
	attemptDelay = 600 * time.Millisecond
	// writeDelay is the time from a failure to its record, and from the record to the end of a transition.
	writeDelay = 150 * time.Millisecond
	// targetDelay is the time from the response that reports a transition to the load of its target, and the time until a load fails
	// again on an instance that still keeps the failed model.
	targetDelay = 100 * time.Millisecond
	// unloadDelay is how long an instance keeps a model after a failure.
	unloadDelay = time.Second
	// recordDelay is the time from the end of an outage to the removal of a failure whose record or removal could not be written.
	recordDelay = 21 * time.Second
)

const (
	messageNoInstance = "Nowhere available to load"
	exceptionPrefix   = "io.grpc.StatusRuntimeException: "
	recordErrorPrefix = "ModelLoadException(message:KV store error attempting to prune model record: " + exceptionPrefix + "UNAVAILABLE: io exception, instanceId:"
)

// modelCopy is a copy of a model on an instance: loaded, loading, or waiting for a free thread.
type modelCopy struct {
	cancel          context.CancelFunc
	loaded, waiting bool
	size            int
	order           int // the newest waiting copy starts first
}

// failedCopy is a failed model that an instance has not unloaded yet.
type failedCopy struct {
	instance, text string
	until          time.Time
}

// ensureLoaded starts to load a model that has no copy, for a request to the given instance; "" means any. It returns a status only
// if the response must differ from the result of describe. used is the time of the last use; 0 keeps it.
func (l *Layer) ensureLoaded(id, instanceID string, used int64) (*meshpb.ModelStatusInfo, error) {
	m := l.models[id]
	if m == nil || len(l.modelCopies[id]) > 0 {
		return nil, nil
	}
	candidates, available := l.candidates(m), l.availableInstances(m)
	untried := slices.ContainsFunc(candidates, func(i *instance) bool { return m.FailedIn[i.ID] == 0 })
	switch {
	case len(m.FailedIn) >= maxAttempts || len(candidates) > 0 && !untried:
		return nil, nil
	case len(candidates) == 0 && len(m.FailedIn) == 0:
		return noInstance(m, l.constraints.noInstanceError(m.Type)), nil
	case len(available) == 0 && len(m.FailedIn) == 0:
		return noInstance(m, messageNoInstance), nil
	case len(available) == 0:
		return nil, nil
	}
	before := &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING, Errors: problems(m), ModelCopyInfos: copies(m)}
	if err := l.start(id, available[0], used); err != nil || instanceID == "" || instanceID == available[0] {
		return nil, err
	}
	return before, nil
}

// start adds an instance to the record of a model and starts the load.
func (l *Layer) start(id, instance string, used int64) error {
	next := l.models[id].clone()
	next.Instances[instance] = l.clock.Now().UnixMilli()
	if used != 0 {
		next.LastUsed = used
	}
	if err := l.commit(change{models: map[string]*model{id: next}}); err != nil {
		return err
	}
	l.startLoad(id, next, instance)
	return nil
}

func (l *Layer) startLoad(id string, m *model, instance string) {
	if l.modelCopies[id] == nil {
		l.modelCopies[id] = map[string]*modelCopy{}
	}
	busy, last := 0, 0
	for _, byInstance := range l.modelCopies {
		if r := byInstance[instance]; r != nil && !r.loaded {
			last = max(last, r.order)
			if !r.waiting {
				busy++
			}
		}
	}
	r := &modelCopy{cancel: func() {}, order: last + 1, waiting: busy >= loadThreads}
	l.modelCopies[id][instance] = r
	if g := l.failedCopies[id]; g.instance == instance && l.clock.Now().Before(g.until) {
		l.after(targetDelay, func() {
			if l.modelCopies[id][instance] == r {
				l.fail(id, instance, r, g.text)
			}
		})
		return
	}
	if !r.waiting {
		l.launch(id, m, instance, r)
	}
}

func (l *Layer) launch(id string, m *model, instance string, r *modelCopy) {
	r.waiting = false
	ctx, cancel := context.WithCancel(l.ctx)
	r.cancel = cancel
	description := Load{Namespace: l.options.Namespace, ID: id, Instance: instance, Type: m.Type, Path: m.Path, Key: m.Key}
	l.running.Go(func() {
		err := l.options.Loader(ctx, description)
		l.mu.Lock()
		defer l.mu.Unlock()
		defer cancel()
		if ctx.Err() != nil || l.modelCopies[id][instance] != r {
			return
		}
		if err != nil {
			l.fail(id, instance, r, runtimeMessage(err))
		} else {
			l.loaded(id, instance, r, description)
		}
		l.startNextLoad(instance)
	})
}

// startNextLoad starts the newest waiting load of an instance.
func (l *Layer) startNextLoad(instance string) {
	var id string
	var newest *modelCopy
	for name, byInstance := range l.modelCopies {
		if r := byInstance[instance]; r != nil && r.waiting && (newest == nil || r.order > newest.order) {
			id, newest = name, r
		}
	}
	if newest != nil {
		l.launch(id, l.models[id], instance, newest)
	}
}

// runtimeMessage returns an error of the runtime in the format of the routing layer, with the name of its code.
func runtimeMessage(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		s = status.New(codes.Internal, err.Error())
	}
	name := regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(s.Code().String(), "${1}_$2")
	return strings.ToUpper(name) + ": " + s.Message()
}

// loaded completes a load and ends the transitions to the model. The records do not contain the end of a load.
func (l *Layer) loaded(id, instance string, r *modelCopy, description Load) {
	r.loaded = true
	if l.options.Size != nil {
		r.size = l.options.Size(description)
	}
	l.evict(instance)
	for name, v := range l.vmodels {
		if v.Target == id && v.Active != id {
			l.log(l.writeVModel(name, v, &vmodel{Owner: v.Owner, Active: id, Target: id}, nil), "Ending a transition failed")
		}
	}
}

// evict unloads the least recently used models of an instance until the others fit into its capacity.
func (l *Layer) evict(instance string) {
	for l.options.Capacity > 0 {
		total, oldest := 0, ""
		for id, byInstance := range l.modelCopies {
			if r := byInstance[instance]; r != nil && r.loaded {
				total += r.size
				if oldest == "" || l.models[id].LastUsed < l.models[oldest].LastUsed {
					oldest = id
				}
			}
		}
		if total <= l.options.Capacity {
			return
		}
		l.cancel(oldest, instance)
		next := l.models[oldest].clone()
		delete(next.Instances, instance)
		l.log(l.commit(change{models: map[string]*model{oldest: next}}), "Evicting a model failed")
	}
}

// cancel aborts the load of a model on an instance, or unloads the model.
func (l *Layer) cancel(id, instance string) {
	if r := l.modelCopies[id][instance]; r != nil {
		r.cancel()
		delete(l.modelCopies[id], instance)
		if len(l.modelCopies[id]) == 0 {
			delete(l.modelCopies, id)
		}
		if l.options.Unload != nil && !r.waiting {
			l.running.Go(func() {
				l.options.Unload(l.ctx, Load{Namespace: l.options.Namespace, ID: id, Instance: instance})
			})
		}
		if !r.loaded && !r.waiting {
			l.startNextLoad(instance)
		}
	}
}

// fail completes a failed load, and writes the failure after a delay.
func (l *Layer) fail(id, instance string, r *modelCopy, text string) {
	r.loaded = true // the thread of the load is free
	l.cancel(id, instance)
	now := l.clock.Now()
	next := l.models[id].clone()
	delete(next.Instances, instance)
	next.FailedIn[instance], next.Fails[instance] = now.UnixMilli(), failure{Message: exceptionPrefix + text}
	l.models[id] = next
	l.failedCopies[id] = failedCopy{instance: instance, text: text, until: now.Add(unloadDelay)}
	l.after(writeDelay, func() { l.recordFailure(id, instance, now, text) })
}

// modelWithFailure returns a copy of a model if it still has the failure of an instance, otherwise nil.
func (l *Layer) modelWithFailure(id, instance string, failed time.Time) *model {
	if m := l.models[id]; m != nil && m.FailedIn[instance] == failed.UnixMilli() {
		return m.clone()
	}
	return nil
}

func (l *Layer) recordFailure(id, instance string, failed time.Time, text string) {
	next := l.modelWithFailure(id, instance, failed)
	if next == nil {
		return
	}
	next.Fails[instance] = failure{Message: text}
	if l.commit(change{models: map[string]*model{id: next}}) != nil {
		next.Fails[instance] = failure{Message: recordErrorPrefix + instance + ", timeout:-2, causeStacktrace:<stack of the server>)"}
		l.models[id] = next
		l.retryRemoveFailure(id, instance, failed)
		return
	}
	l.after(writeDelay, func() { l.failTransitions(id) })
	l.after(attemptDelay-writeDelay, func() {
		if m := l.models[id]; m != nil && len(m.FailedIn) < maxAttempts && len(l.modelCopies[id]) == 0 {
			if available := l.availableInstances(m); len(available) > 0 {
				l.log(l.start(id, available[0], 0), "Starting the load on the next instance failed")
			}
		}
	})
	l.after(l.options.FailureExpiry+l.options.FailureCheck, func() { l.removeFailure(id, instance, failed) })
}

// removeFailure removes a failure from a model, unless its instance was removed.
func (l *Layer) removeFailure(id, instance string, failed time.Time) {
	next := l.modelWithFailure(id, instance, failed)
	if next == nil || l.instances[instance] == nil {
		return
	}
	delete(next.FailedIn, instance)
	delete(next.Fails, instance)
	if l.commit(change{models: map[string]*model{id: next}}) != nil {
		l.retryRemoveFailure(id, instance, failed)
		return
	}
	for _, v := range l.vmodels {
		if v.Target == id && v.Active != id {
			_, err := l.ensureLoaded(id, "", 0)
			l.log(err, "Loading the target of a transition again failed")
		}
	}
}

// retryRemoveFailure removes a failure, whose record or removal could not be written, once the store is reachable.
func (l *Layer) retryRemoveFailure(id, instance string, failed time.Time) {
	if _, err := l.store.Has(l.ctx, keyModels+id); err != nil {
		l.after(storeRetryInterval, func() { l.retryRemoveFailure(id, instance, failed) })
		return
	}
	l.after(recordDelay, func() { l.removeFailure(id, instance, failed) })
}

// failTransitions marks the transitions to a model as failed if no instance loads it, and none can load it now or all attempts have failed.
func (l *Layer) failTransitions(id string) {
	if l.models[id] == nil || len(l.modelCopies[id]) > 0 || len(l.availableInstances(l.models[id])) > 0 && len(l.models[id].FailedIn) < maxAttempts {
		return
	}
	for name, v := range l.vmodels {
		if v.Target == id && v.Active != id && !v.Failed {
			next := *v
			next.Failed = true
			l.log(l.commit(change{vmodels: map[string]*vmodel{name: &next}}), "Recording the failure of a transition failed")
		}
	}
}

// loadTarget loads the target of a transition.
func (l *Layer) loadTarget(id string) {
	_, err := l.ensureLoaded(id, "", 0)
	l.log(err, "Loading the target of a transition failed")
	l.failTransitions(id)
}

// loadMissing is a periodic task of the leader. It loads the models whose records have no instance.
func (l *Layer) loadMissing() {
	for id, m := range l.models {
		if len(m.Instances) == 0 {
			_, err := l.ensureLoaded(id, "", 0)
			l.log(err, "Loading a model without an instance failed")
		}
	}
	l.after(nextRound, l.loadMissing)
}

// waitLoaded returns when a model is loaded or no instance loads it. It releases the lock of the caller while it waits.
func (l *Layer) waitLoaded(ctx context.Context, id string) error {
	for {
		loading, loaded := l.loadState(id)
		if loaded || !loading {
			return nil
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-l.ctx.Done():
		case <-l.clock.After(10 * time.Millisecond):
		}
		l.mu.Lock()
		if err := errors.Join(ctx.Err(), l.ctx.Err()); err != nil {
			return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
		}
	}
}
