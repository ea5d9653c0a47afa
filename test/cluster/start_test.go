package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/clock"
)

func supplyWith(name, path string) *supply {
	s := newSupply()
	s.add(name, path)
	return s
}

func TestWaitForReturnsLog(t *testing.T) {
	shell := lookPath(t, "sh")
	i := &Instance{Name: "a", dir: t.TempDir(), clock: clock.RealClock{}, programs: supplyWith(Etcd, shell)}
	if err := i.run(t.Context(), &Process{Name: Etcd, Args: []string{"-c", "echo the disk is full; exit 1"}}); err != nil {
		t.Fatal(err)
	}
	err := i.waitFor(t.Context(), Etcd, func(context.Context) error { return errors.New("no response") })
	for _, want := range []string{"waiting for etcd", "the process has exited", "no response", "the disk is full"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
}

func TestWaitForEndsWithContext(t *testing.T) {
	i := &Instance{Name: "a", dir: t.TempDir(), clock: clock.RealClock{}, programs: supplyWith(Etcd, lookPath(t, "sleep"))}
	if err := i.run(t.Context(), &Process{Name: Etcd, Args: []string{"600"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := i.waitFor(ctx, Etcd, func(context.Context) error {
		cancel()
		return errors.New("no response")
	})
	if err == nil || !strings.Contains(err.Error(), "no response") {
		t.Errorf("got error %v, want that of the check", err)
	}
	if err := i.Process(Etcd).Kill(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProbe(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	if err := probe(t.Context(), server.Client(), server.URL); err != nil {
		t.Error(err)
	}
	code = http.StatusInternalServerError
	if err := probe(t.Context(), server.Client(), server.URL); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("got error %v of a failing probe, want the status", err)
	}
	server.Close()
	if err := probe(t.Context(), server.Client(), server.URL); err == nil {
		t.Error("want an error for an unreachable server")
	}
}

func TestComponentArguments(t *testing.T) {
	i := &Instance{Name: "a", dir: t.TempDir(), state: state{Ports: []int{1, 2, 3, 4, 5}}}
	for _, c := range []struct {
		process *Process
		want    []string
	}{
		{i.etcd(), []string{"--unsafe-no-fsync", "--listen-client-urls=http://127.0.0.1:1", "--listen-peer-urls=http://127.0.0.1:2"}},
		{i.apiServer(), []string{
			"--authorization-mode=RBAC", "--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1", "--secure-port=3",
			"--audit-log-path=" + i.AuditLog(), "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		}},
		{i.controllerManager(), []string{"--use-service-account-credentials", "--secure-port=4", "--leader-elect=false"}},
		{i.scheduler(), []string{"--secure-port=5", "--bind-address=127.0.0.1"}},
		{i.kwok(), []string{"--node-lease-duration-seconds=40", "--manage-all-nodes=true"}},
	} {
		all := strings.Join(c.process.Args, "\n") + "\n"
		for _, want := range c.want {
			if !strings.Contains(all, want+"\n") {
				t.Errorf("%s has no argument %s", c.process.Name, want)
			}
		}
	}
}
