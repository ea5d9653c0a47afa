package instance

import (
	"context"
	"path"

	"google.golang.org/grpc/status"
)

// loadCall is a load request to the adapter; done is closed when the result is set.
type loadCall struct {
	done  chan struct{}
	reply frame
	err   error
}

// manageModels forwards a request to the adapter of this pod. Loads of a model are shared and not cancelled, so that a new leader
// continues the loads of its predecessor.
func (i *instance) manageModels(ctx context.Context, method string, request frame) (frame, error) {
	id, err := extract(request, []uint32{1})
	if err != nil {
		return nil, err
	}
	switch path.Base(method) {
	case "loadModel":
		load := i.loadOnce(context.WithoutCancel(ctx), id, method, request)
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-load.done:
			return load.reply, load.err
		}
	case "unloadModel":
		i.mu.Lock()
		load := i.loads[id]
		delete(i.loads, id)
		i.mu.Unlock()
		if load != nil {
			<-load.done
		}
	}
	return call(ctx, i.adapter, method, request)
}

func (i *instance) loadOnce(ctx context.Context, id, method string, request frame) *loadCall {
	i.mu.Lock()
	defer i.mu.Unlock()
	if load := i.loads[id]; load != nil {
		return load
	}
	load := &loadCall{done: make(chan struct{})}
	i.loads[id] = load
	go func() {
		defer close(load.done)
		if load.reply, load.err = call(ctx, i.adapter, method, request); load.err != nil {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.loads[id] == load {
				delete(i.loads, id)
			}
		}
	}()
	return load
}
