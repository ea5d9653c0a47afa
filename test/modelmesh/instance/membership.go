package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// member is the record of an instance for the other instances.
type member struct {
	Address string   `json:"address"`
	Labels  []string `json:"labels"`
}

// join writes the record of the instance and starts the leader election.
func (i *instance) join(ctx context.Context) (*concurrency.Session, error) {
	session, err := concurrency.NewSession(i.etcd, concurrency.WithTTL(leaseSeconds))
	if err != nil {
		return nil, fmt.Errorf("joining the other instances: %w", err)
	}
	record, err := json.Marshal(member{Address: i.peerAddress(), Labels: i.labels})
	if err != nil {
		return nil, fmt.Errorf("joining the other instances: %w", err)
	}
	if _, err := i.etcd.Put(ctx, i.base+keyPods+i.id, string(record), clientv3.WithLease(session.Lease())); err != nil {
		return nil, fmt.Errorf("joining the other instances: %w", err)
	}
	election := concurrency.NewElection(session, i.base+keyLeader)
	go i.observe(ctx, election)
	leaderCtx, stop := context.WithCancel(ctx)
	var elections sync.WaitGroup
	elections.Go(func() {
		if err := i.runLeader(leaderCtx, election); leaderCtx.Err() == nil {
			i.fail(err)
		}
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.session, i.resign = session, func() { stop(); elections.Wait() }
	return session, nil
}

// observe stores the address of each new leader.
func (i *instance) observe(ctx context.Context, election *concurrency.Election) {
	for ctx.Err() == nil {
		for leader := range election.Observe(ctx) {
			i.mu.Lock()
			i.leader = string(leader.Kvs[0].Value)
			i.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(statusInterval):
		}
	}
}

// runLeader waits for the election of this instance, and then runs the layer of all instances.
func (i *instance) runLeader(ctx context.Context, election *concurrency.Election) error {
	if err := election.Campaign(ctx, i.peerAddress()); err != nil {
		return fmt.Errorf("waiting for leadership: %w", err)
	}
	f, err := newFleet(i)
	if err != nil {
		return err
	}
	i.log.Info("Became the leader")
	defer func() {
		i.setFleet(nil)
		if err := f.layer.Close(); err != nil {
			i.log.Error(err, "Closing the layer failed")
		}
	}()
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		if err := f.updateLayer(ctx); err != nil {
			return err
		}
		i.setFleet(f)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (i *instance) setFleet(f *fleet) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fleet = f
}

// ready reports whether a leader is known.
func (i *instance) ready() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leader != ""
}

// leave removes the record of the instance, waits for the migration of its models, and resigns as leader. The instance continues to
// forward requests.
func (i *instance) leave(ctx context.Context) {
	i.leaveOnce.Do(func() {
		defer close(i.left)
		i.mu.Lock()
		session, resign := i.session, i.resign
		i.mu.Unlock()
		if session == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
		defer cancel()
		_, err := i.etcd.Delete(ctx, i.base+keyPods+i.id)
		err = errors.Join(err, i.waitUnlisted(ctx))
		resign()
		if err := errors.Join(err, session.Close()); err != nil {
			i.log.Error(err, "Leaving the other instances failed")
		}
	})
	<-i.left
}

// waitUnlisted returns when no layer lists this instance.
func (i *instance) waitUnlisted(ctx context.Context) error {
	for {
		response, err := i.etcd.Get(ctx, i.base+keyInstances+i.id, clientv3.WithCountOnly())
		if err != nil || response.Count == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(refreshInterval):
		}
	}
}
