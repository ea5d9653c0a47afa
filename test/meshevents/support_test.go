package meshevents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// waitTimeout limits every wait; it is long enough for a machine under load.
const waitTimeout = 90 * time.Second

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	binaries, err := cluster.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = binaries[cluster.Etcd]
	code := m.Run()
	if leak := goleak.Find(); code == 0 && leak != nil {
		fmt.Fprintln(os.Stderr, leak)
		return 1
	}
	return code
}

// etcd is a process that can be killed and started again at the same address.
type etcd struct {
	t       *testing.T
	address string // host and port for clients
	scheme  string
	peer    string
	health  string
	dir     string
	args    []string
	process *exec.Cmd
}

func (e *etcd) url() string { return e.scheme + e.address }

func startEtcd(t *testing.T) *etcd {
	t.Helper()
	return startEtcdWith(t, "http://")
}

// startEtcdWith starts an etcd with additional arguments.
func startEtcdWith(t *testing.T, scheme string, args ...string) *etcd {
	t.Helper()
	e := &etcd{t: t, dir: t.TempDir(), scheme: scheme, args: args}
	t.Cleanup(e.kill)
	// Another process may take the free port before etcd listens on it.
	var err error
	for range 3 {
		e.address, e.peer, e.health = freeAddress(t), "http://"+freeAddress(t), "http://"+freeAddress(t)
		if err = e.startOnce(); err == nil {
			return e
		}
	}
	t.Fatal(err)
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func (e *etcd) startOnce() error {
	e.process = exec.Command(binary, append([]string{
		"--name=m", "--data-dir=" + e.dir, "--unsafe-no-fsync", "--log-level=error", "--listen-metrics-urls=" + e.health,
		"--listen-client-urls=" + e.url(), "--advertise-client-urls=" + e.url(), "--bcrypt-cost=4",
		"--listen-peer-urls=" + e.peer, "--initial-advertise-peer-urls=" + e.peer, "--initial-cluster=m=" + e.peer,
	}, e.args...)...)
	if err := e.process.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func(p *exec.Cmd) { _ = p.Wait(); close(exited) }(e.process)
	deadline := time.After(waitTimeout)
	for {
		if err := e.healthy(); err == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("etcd exited before it was healthy")
		case <-deadline:
			return errors.New("etcd was not healthy in time")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *etcd) healthy() error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(e.health + "/health")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// restart starts a killed etcd again.
func (e *etcd) restart() {
	e.t.Helper()
	must(e.t, e.startOnce())
}

// kill kills etcd, as a crash would, and waits until its port is free.
func (e *etcd) kill() {
	if e.process == nil || e.process.Process == nil {
		return
	}
	_ = e.process.Process.Kill()
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if connection, err := net.Dial("tcp", e.address); err != nil {
			return
		} else {
			_ = connection.Close()
		}
	}
}

// replaceDataDir gives etcd an empty data directory from its next start on.
func (e *etcd) replaceDataDir() {
	e.t.Helper()
	e.dir = e.t.TempDir()
}

// client returns a client for the writes of the routing layer.
func (e *etcd) client(user, password string) *clientv3.Client {
	e.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.url()}, Username: user, Password: password, DialTimeout: waitTimeout, Logger: zap.NewNop()})
	must(e.t, err)
	e.t.Cleanup(func() { _ = c.Close() })
	return c
}

// secret returns the data of the Secret for this etcd.
func (e *etcd) secret(user, password string) map[string][]byte {
	return map[string][]byte{meshetcd.ConnectionKey: fmt.Appendf(nil, `{"endpoints":%q,"root_prefix":"root","userid":%q,"password":%q}`, e.url(), user, password)}
}

// stream is a running Watcher and the events that it reported since the last successful expect.
type stream struct {
	*meshevents.Watcher
	mu       sync.Mutex
	reported []meshevents.Event
}

func startStream(t *testing.T) *stream {
	t.Helper()
	s := &stream{Watcher: meshevents.NewWatcher(meshevents.Options{OperatorNamespace: "home", Clock: clock.RealClock{}, Log: testr.New(t)})}
	s.Subscribe(t.Context(), func(e meshevents.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reported = append(s.reported, e)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	return s
}

// expect waits until these events are reported. It returns all events that were reported since the last call.
func (s *stream) expect(t *testing.T, want ...meshevents.Event) (reported []meshevents.Event) {
	t.Helper()
	deadline := time.After(waitTimeout)
	for {
		s.mu.Lock()
		missing := slices.IndexFunc(want, func(e meshevents.Event) bool { return !slices.Contains(s.reported, e) })
		if missing < 0 {
			reported, s.reported = s.reported, nil
		}
		s.mu.Unlock()
		if missing < 0 {
			return reported
		}
		select {
		case <-deadline:
			t.Fatalf("event %v was not reported in time", want[missing])
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
