package modelmesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/pkg/meshetcd"
)

// storeTimeout is how long one request to etcd may take.
const storeTimeout = 5 * time.Second

const (
	keyVModels   = "vmodels/"
	keyModels    = "registry/"
	keyInstances = "instances/"
)

// store keeps the state of one routing layer in etcd. Its errors have the gRPC status with which a call is answered.
type store struct {
	client *clientv3.Client
	base   string
}

// openStore connects as a pod with that Secret would. What is wrong with the address shows at the first request.
func openStore(data map[string][]byte, service string) (*store, error) {
	c, err := meshetcd.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	if strings.HasPrefix(c.Endpoints, "https://") {
		return nil, errors.New("connecting to etcd: the stand-in knows no TLS there; use http://")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.URLs(), Username: c.UserID, Password: c.Password, DialTimeout: storeTimeout, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &store{client: client, base: c.RootPrefix + "/mm/" + service + "/"}, nil
}

func (s *store) close() error { return s.client.Close() }

// read decodes the value of a key; nil means that there is none.
func read[T any](ctx context.Context, s *store, key string) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	answer, err := s.client.Get(ctx, s.base+key)
	if err != nil {
		return nil, unavailable("reading "+key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return decode[T](key, answer.Kvs[0].Value)
}

// list decodes all values below a prefix, by what follows it.
func list[T any](ctx context.Context, s *store, prefix string) (map[string]*T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	answer, err := s.client.Get(ctx, s.base+prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, unavailable("listing "+prefix, err)
	}
	out := map[string]*T{}
	for _, entry := range answer.Kvs {
		id := strings.TrimPrefix(string(entry.Key), s.base+prefix)
		if out[id], err = decode[T](prefix+id, entry.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decode[T any](key string, value []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(value, out); err != nil {
		return nil, status.Errorf(codes.Internal, "decoding %s: %v", key, err)
	}
	return out, nil
}

func (s *store) put(ctx context.Context, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return status.Errorf(codes.Internal, "encoding %s: %v", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := s.client.Put(ctx, s.base+key, string(text)); err != nil {
		return unavailable("writing "+key, err)
	}
	return nil
}

func (s *store) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := s.client.Delete(ctx, s.base+key); err != nil {
		return unavailable("deleting "+key, err)
	}
	return nil
}

func unavailable(what string, err error) error {
	return status.Errorf(codes.Unavailable, "%s in etcd: %v", what, err)
}
