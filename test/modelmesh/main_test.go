package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// etcdURL is where the etcd of all tests of this package listens.
var etcdURL string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts a real etcd for the tests.
func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	binaries, err := cluster.Build(ctx, os.Stderr)
	if err != nil {
		return complain(err)
	}
	stop, err := startEtcd(ctx, binaries[cluster.Etcd])
	if err != nil {
		return complain(err)
	}
	code := m.Run()
	if leak := goleak.Find(); code == 0 && leak != nil {
		code = complain(leak)
	}
	if err := stop(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// startEtcd tries three times: between the search for a free port and its use somebody else may take it.
func startEtcd(ctx context.Context, binary string) (stop func() error, err error) {
	for range 3 {
		if stop, err = tryEtcd(ctx, binary); err == nil {
			return stop, nil
		}
	}
	return nil, err
}

func tryEtcd(ctx context.Context, binary string) (func() error, error) {
	own, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "modelmesh-")
	if err != nil {
		return nil, err
	}
	etcdURL = "http://" + own
	command := exec.Command(binary, etcdArgs(dir, etcdURL, "http://"+peer)...)
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func() error {
		err := command.Process.Kill()
		_ = command.Wait() // killed
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := awaitEtcd(ctx, etcdURL); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
