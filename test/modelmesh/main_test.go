package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// etcdURL is the URL of the etcd that all tests of this package share; it is empty until realEtcd starts it.
var (
	etcdURL  string
	etcdOnce sync.Once
	etcdErr  error
	stopEtcd func() error
)

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

// runAll runs the tests, checks for leaked goroutines and stops etcd.
func runAll(m *testing.M) int {
	code := m.Run()
	if leak := goleak.Find(); code == 0 && leak != nil {
		code = exitWithError(leak)
	}
	if stopEtcd != nil {
		if err := stopEtcd(); err != nil {
			return exitWithError(err)
		}
	}
	return code
}

// realEtcd starts the etcd of this package if it is not running.
func realEtcd(t *testing.T) {
	t.Helper()
	etcdOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		binaries, err := cluster.Build(ctx, os.Stderr)
		if err == nil {
			stopEtcd, err = startEtcd(ctx, binaries[cluster.Etcd])
		}
		etcdErr = err
	})
	if etcdErr != nil {
		t.Fatal(etcdErr)
	}
}

func exitWithError(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// startEtcd tries three times, because another process can use the free port before etcd listens on it.
func startEtcd(ctx context.Context, binary string) (stop func() error, err error) {
	for range 3 {
		if stop, err = tryEtcd(ctx, binary); err == nil {
			return stop, nil
		}
	}
	return nil, err
}

func tryEtcd(ctx context.Context, binary string) (func() error, error) {
	address, err := freeAddress(ctx)
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
	etcdURL = "http://" + address
	command := exec.Command(binary, etcdArgs(dir, etcdURL, "http://"+peer)...)
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func() error {
		err := command.Process.Kill()
		_ = command.Wait() // killed
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := waitEtcd(ctx, etcdURL); err != nil {
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
