package instance

import (
	"context"
	"path"

	"google.golang.org/grpc/status"
)

// loading is a load request to the adapter; done is closed when the result is set.
type loading struct {
	done  chan struct{}
	reply frame
	err   error
}

// manageModels requests the adapter of this pod to load or unload a model. A load is not cancelled, and a loaded or loading model
// is not loaded again, so a new leader continues the loads of its predecessor.
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
