package modelmesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// storeTimeout limits a request to etcd.
const storeTimeout = 5 * time.Second

const storeRetryInterval = 500 * time.Millisecond

const (
	keyVModels   = "vmodels/"
	keyModels    = "registry/"
	keyInstances = "instances/"
)

// Store keeps the state of one routing layer. Keys are relative to the prefix of its service.
type Store interface {
	// List returns all keys and values.
	List(ctx context.Context) (map[string][]byte, error)
	// Has reports whether a key exists.
	Has(ctx context.Context, key string) (bool, error)
	// Commit writes values in one transaction; nil deletes.
	Commit(ctx context.Context, values map[string][]byte) error
	Close() error
}

// etcdStore is a Store in an etcd.
type etcdStore struct {
	client *clientv3.Client
	base   string
}

// Dial creates a client of etcd from the data of the Secret of a pod, and returns the prefix of the keys of the service. With a
// password it connects to etcd; without one, a wrong address causes an error only in the first request.
func Dial(data map[string][]byte, service string) (client *clientv3.Client, base string, err error) {
	c, err := meshetcd.Parse(data)
	if err != nil {
		return nil, "", fmt.Errorf("connecting to etcd: %w", err)
	}
	if strings.HasPrefix(c.Endpoints, "https://") {
		return nil, "", errors.New("connecting to etcd: the fake does not support TLS; use http://")
	}
	client, err = clientv3.New(clientv3.Config{
		Endpoints: c.URLs(), Username: c.UserID, Password: c.Password, DialTimeout: storeTimeout, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to etcd: %w", err)
	}
	return client, c.RootPrefix + "/mm/" + service + "/", nil
}

func openEtcd(data map[string][]byte, service string) (*etcdStore, error) {
	client, base, err := Dial(data, service)
	return &etcdStore{client: client, base: base}, err
}

func (s *etcdStore) Close() error { return s.client.Close() }

func (s *etcdStore) List(ctx context.Context) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	response, err := s.client.Get(ctx, s.base, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.base, err)
	}
	out := map[string][]byte{}
	for _, entry := range response.Kvs {
		out[strings.TrimPrefix(string(entry.Key), s.base)] = entry.Value
	}
	return out, nil
}

func (s *etcdStore) Has(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	response, err := s.client.Get(ctx, s.base+key, clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", key, err)
	}
	return response.Count > 0, nil
}

func (s *etcdStore) Commit(ctx context.Context, values map[string][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var operations []clientv3.Op
	for key, value := range values {
		if value == nil {
			operations = append(operations, clientv3.OpDelete(s.base+key))
		} else {
			operations = append(operations, clientv3.OpPut(s.base+key, string(value)))
		}
	}
	if _, err := s.client.Txn(ctx).Then(operations...).Commit(); err != nil {
		return fmt.Errorf("writing to %s: %w", s.base, err)
	}
	return nil
}

// Memory is a Store in memory.
type Memory struct {
	// OnCommit receives each transaction; may be nil. It must not call the layer.
	OnCommit func(values map[string][]byte)

	mu          sync.Mutex
	unreachable bool
	data        map[string][]byte
}

var errUnreachable = errors.New("the store is unreachable")

// SetUnreachable sets whether all requests to the store fail.
func (s *Memory) SetUnreachable(unreachable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable = unreachable
}

// Wipe deletes all keys.
func (s *Memory) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = nil
}

// List implements Store.
func (s *Memory) List(context.Context) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return nil, errUnreachable
	}
	return maps.Clone(s.data), nil
}

// Has implements Store.
func (s *Memory) Has(_ context.Context, key string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return false, errUnreachable
	}
	return s.data[key] != nil, nil
}

// Commit implements Store.
func (s *Memory) Commit(_ context.Context, values map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return errUnreachable
	}
	if s.data == nil {
		s.data = map[string][]byte{}
	}
	for key, value := range values {
		if value == nil {
			delete(s.data, key)
		} else {
			s.data[key] = value
		}
	}
	if s.OnCommit != nil {
		s.OnCommit(values)
	}
	return nil
}

// Close implements Store.
func (s *Memory) Close() error { return nil }

// change has the records written in a single transaction; nil deletes.
type change struct {
	vmodels map[string]*vmodel
	models  map[string]*model
}

// commit writes a change, and then updates the memory unless the store was wiped.
func (l *Layer) commit(c change) error {
	values := map[string][]byte{}
	for id, v := range c.vmodels {
		if err := encode(values, keyVModels+id, v, v == nil); err != nil {
			return err
		}
	}
	for id, m := range c.models {
		if err := encode(values, keyModels+id, m, m == nil); err != nil {
			return err
		}
	}
	if err := l.store.Commit(l.ctx, values); err != nil {
		return l.unavailable()
	}
	if l.storeWiped {
		return nil
	}
	update(l.vmodels, c.vmodels)
	update(l.models, c.models)
	return nil
}

func encode(into map[string][]byte, key string, value any, deleted bool) error {
	if deleted {
		into[key] = nil
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return status.Errorf(codes.Internal, "encoding %s: %v", key, err)
	}
	into[key] = text
	return nil
}

func update[T any](into, changed map[string]*T) {
	for id, value := range changed {
		if value == nil {
			delete(into, id)
		} else {
			into[id] = value
		}
	}
}

// unavailable starts or continues an outage of the store, and returns the error for clients.
func (l *Layer) unavailable() error {
	l.lastOutage = l.clock.Now()
	if !l.retrying {
		l.retrying = true
		l.after(storeRetryInterval, l.retryStore)
	}
	return status.Error(codes.Unavailable, "io exception")
}

// retryStore retries the store until the outage ends.
func (l *Layer) retryStore() {
	l.retrying = false
	if _, err := l.store.Has(l.ctx, keyInstances); err != nil {
		_ = l.unavailable()
	}
}

// has reports whether a key exists. It returns an error while the store is unreachable.
func (l *Layer) has(key string) (bool, error) {
	found, err := l.store.Has(l.ctx, key)
	if err != nil {
		return false, l.unavailable()
	}
	return found, nil
}

// writable returns an error during an outage of the store and for some time after it.
func (l *Layer) writable() error {
	if _, err := l.has(keyInstances); err != nil {
		return err
	}
	if !l.lastOutage.IsZero() && l.clock.Since(l.lastOutage) < l.options.AfterOutage {
		return status.Error(codes.Unavailable, "io exception")
	}
	return nil
}

// read reads the state from the store into memory.
func (l *Layer) read() error {
	all, err := l.store.List(l.ctx)
	if err != nil {
		return l.unavailable()
	}
	l.vmodels, l.models, l.storeWiped = map[string]*vmodel{}, map[string]*model{}, false
	for key, value := range all {
		var err error
		if id, ok := strings.CutPrefix(key, keyVModels); ok {
			l.vmodels[id] = &vmodel{}
			err = json.Unmarshal(value, l.vmodels[id])
		}
		if id, ok := strings.CutPrefix(key, keyModels); ok {
			l.models[id] = &model{}
			err = json.Unmarshal(value, l.models[id])
		}
		if err != nil {
			return status.Errorf(codes.Internal, "decoding %s: %v", key, err)
		}
	}
	return nil
}
