package main

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// compact compacts the etcd of a control plane to the current revision.
func compact(ctx context.Context, port int) error {
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", port)}, DialTimeout: waitTimeout})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = store.Close() }() // no request is pending
	now, err := store.Get(ctx, "nothing")
	if err != nil {
		return fmt.Errorf("reading the revision of etcd: %w", err)
	}
	if _, err := store.Compact(ctx, now.Header.Revision); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// isInNamespace reports whether an object, given as kind and namespace/name, is in a namespace.
func isInNamespace(name, namespace string) bool {
	_, path, _ := strings.Cut(name, " ")
	return strings.HasPrefix(path, namespace+"/")
}
