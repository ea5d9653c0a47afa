package instance

import (
	"context"
	"path"

	"google.golang.org/grpc/status"
)

// loading is the result of loading a model; done is closed when the result is known.
type loading struct {
	done  chan struct{}
	reply frame
	err   error
}

// manageModels has the adapter of this pod load and unload models. A load is not cancelled, and a loaded or loading model is
// not loaded again: a new leader continues with the loads of its predecessor.
func (i *instance) manageModels(ctx context.Context, method string, request frame) (frame, error) {
	id, err := extract(request, []uint32{1})
	if err != nil {
		return nil, err
	}
	switch path.Base(method) {
	case "loadModel":
		l := i.loadOnce(context.WithoutCancel(ctx), id, method, request)
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-l.done:
			return l.reply, l.err
		}
	case "unloadModel":
		i.mu.Lock()
		l := i.loads[id]
		delete(i.loads, id)
		i.mu.Unlock()
		if l != nil {
			<-l.done
		}
	}
	return call(ctx, i.adapter, method, request)
}

func (i *instance) loadOnce(ctx context.Context, id, method string, request frame) *loading {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.loads[id]; l != nil {
		return l
	}
	l := &loading{done: make(chan struct{})}
	i.loads[id] = l
	go func() {
		defer close(l.done)
		if l.reply, l.err = call(ctx, i.adapter, method, request); l.err != nil {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.loads[id] == l {
				delete(i.loads, id)
			}
		}
	}()
	return l
}
