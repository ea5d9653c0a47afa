package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxSnapshots limits the number of snapshots in the cache. A checkout needs one for each combination of platform and CRDs.
const maxSnapshots = 24

// snapshotPath returns the path of the snapshot of etcd for instances with these CRDs: the data of an API server of this version that
// serves them. The snapshot contains nothing specific to an instance, except addressKeys.
func (i *Instance) snapshotPath(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(crds)
	if err != nil {
		return "", fmt.Errorf("encoding CustomResourceDefinitions: %w", err)
	}
	hash := sha256.New()
	for _, name := range []string{Etcd, APIServer} {
		path, err := i.programs.path(ctx, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, path)
	}
	hash.Write(content)
	return filepath.Join(cache, "snapshots", hex.EncodeToString(hash.Sum(nil))[:keyLength]+".db"), nil
}

// restoreSnapshot writes the data of etcd from a snapshot, before etcd starts, and reports whether the snapshot exists.
func (i *Instance) restoreSnapshot(ctx context.Context, snapshot string) (bool, error) {
	if _, err := os.Stat(snapshot); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	etcdutl, err := BuildPeer(ctx, Etcdutl, i.options.Progress)
	if err != nil {
		return false, err
	}
	args := []string{"snapshot", "restore", snapshot, "--data-dir=" + i.file("etcd")}
	for _, arg := range i.etcd().Args {
		if strings.HasPrefix(arg, "--name=") || strings.HasPrefix(arg, "--initial-") {
			args = append(args, arg)
		}
	}
	if output, err := exec.CommandContext(ctx, etcdutl, args...).CombinedOutput(); err != nil {
		return false, fmt.Errorf("restoring etcd from %s: %w\n%s", snapshot, err, tail(string(output), tailLines))
	}
	return true, nil
}

// addressKeys are the prefixes under which an API server of a real node stores its own address in etcd.
var addressKeys = []string{"/registry/masterleases/", "/registry/services/endpoints/default/kubernetes", "/registry/endpointslices/default/kubernetes"}

// deleteStoredAddress deletes the stored address of the API server that created a snapshot. The next API server has another port, but
// updates only the IP.
func (i *Instance) deleteStoredAddress(ctx context.Context) error {
	client, err := i.etcdClient()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all requests have completed
	for _, key := range addressKeys {
		if _, err := client.Delete(ctx, key, clientv3.WithPrefix()); err != nil {
			return fmt.Errorf("removing %s from etcd: %w", key, err)
		}
	}
	return nil
}

// saveSnapshot writes a snapshot of etcd and removes the oldest ones. Several instances may save the same snapshot.
func (i *Instance) saveSnapshot(ctx context.Context, snapshot string) error {
	if err := os.MkdirAll(filepath.Dir(snapshot), 0o755); err != nil {
		return fmt.Errorf("creating the folder of snapshots: %w", err)
	}
	client, err := i.etcdClient()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all requests have completed
	content, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("reading a snapshot of etcd: %w", err)
	}
	all, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("reading a snapshot of etcd: %w", err)
	}
	if err := writeFile(snapshot, all); err != nil {
		return err
	}
	return removeOldest(filepath.Dir(snapshot), maxSnapshots)
}

// removeOldest removes all but the newest files of a folder.
func removeOldest(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // otherwise another instance has removed it
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, old := range files[min(keep, len(files)):] {
		if err := os.Remove(filepath.Join(dir, old.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old snapshot: %w", err)
		}
	}
	return nil
}

func (i *Instance) etcdClient() (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{loopback(i.state.Ports[etcdPort])}, DialTimeout: probeTimeout})
	if err != nil {
		return nil, fmt.Errorf("creating an etcd client: %w", err)
	}
	return client, nil
}
