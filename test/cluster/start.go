package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	readyPollInterval = 50 * time.Millisecond
	probeTimeout      = 5 * time.Second
)

// startAPI starts the API server and its dependencies, and creates the initial objects.
func (i *Instance) startAPI(ctx context.Context) error {
	if err := i.prepare(); err != nil {
		return err
	}
	if err := i.startNode(ctx); err != nil {
		return err
	}
	crds, err := ReadSet(ctx, slices.Concat(platformSets[i.options.Platform], i.options.Sets)...)
	if err != nil {
		return err
	}
	crds = append(crds, i.options.CRDs...)
	if err := i.serve(ctx, crds); err != nil {
		return err
	}
	i.logf("API server ready at %s", i.URL())
	if err := i.createInitialObjects(ctx, crds); err != nil {
		return err
	}
	i.logf("APIs of platform %s served", i.options.Platform)
	return nil
}

// serve starts etcd and the API server with CRDs. An ephemeral instance starts from the snapshot of an earlier one, if any, which halves
// the start-up work of the API server.
func (i *Instance) serve(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	snapshot, restored, err := "", false, error(nil)
	if i.options.Ephemeral {
		if snapshot, err = i.snapshotPath(ctx, crds); err != nil {
			return err
		}
		if restored, err = i.restoreSnapshot(ctx, snapshot); err != nil {
			return err
		}
	}
	if err := i.run(ctx, i.etcd()); err != nil {
		return err
	}
	if err := i.waitFor(ctx, Etcd, i.etcdHealthy); err != nil {
		return err
	}
	prepareEtcd := func(ctx context.Context) error { return i.seedCRDs(ctx, crds) }
	if restored {
		prepareEtcd = i.deleteStoredAddress
	}
	if err := prepareEtcd(ctx); err != nil {
		return err
	}
	if err := i.run(ctx, i.apiServer()); err != nil {
		return err
	}
	if err := i.waitFor(ctx, APIServer, i.apiServerReady); err != nil {
		return err
	}
	if snapshot == "" || restored {
		return nil
	}
	config, err := i.Config()
	if err != nil {
		return err
	}
	if err := waitCRDs(ctx, config, crds...); err != nil {
		return err
	}
	return i.saveSnapshot(ctx, snapshot)
}

// run starts one of the built programs.
func (i *Instance) run(ctx context.Context, p *Process) error {
	path, err := i.programs.path(ctx, p.Name)
	if err != nil {
		return err
	}
	p.Path, p.Log = path, i.file(p.Name+".log")
	p.Env = append(p.Env, i.runtimeEnv(p.Name)...)
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.launch(p)
}

// runtimeEnv returns variables of the Go runtime that save processor time. Otherwise, garbage collection takes a sixth of the time of the
// API server, and scheduling on several processors takes a third of the time of the other programs, which are mostly idle.
func (i *Instance) runtimeEnv(program string) []string {
	growth, limit := "GOGC=400", "1GiB"
	if program == APIServer && i.options.Ephemeral { // several busy instances run in parallel
		growth, limit = "GOGC=800", "1536MiB"
	}
	variables := []string{growth, "GOMEMLIMIT=" + cmp.Or(i.state.Memory, limit)}
	if slices.Contains([]string{Etcd, ControllerManager, Scheduler, Kwok}, program) && i.state.Memory == "" {
		variables = append(variables, "GOMAXPROCS=1")
	}
	return variables
}

// waitReady waits until every part of the control plane is ready.
func (i *Instance) waitReady(ctx context.Context) error {
	checks := []struct {
		process string
		ready   func(context.Context) error
	}{
		{Etcd, i.etcdHealthy},
		{APIServer, i.apiServerReady},
		{ControllerManager, func(ctx context.Context) error { return i.healthz(ctx, controllerPort) }},
		{Scheduler, func(ctx context.Context) error { return i.healthz(ctx, schedulerPort) }},
		{i.kubeletProcess(), i.nodesReady},
		{ControllerManager, i.defaultAccountExists},
		{i.kubeletProcess(), i.dnsReady},
	}
	for _, check := range checks {
		if err := i.waitFor(ctx, check.process, check.ready); err != nil {
			return err
		}
	}
	return nil
}

// waitFor calls a check of a process until it succeeds. It returns an error when the process has exited.
func (i *Instance) waitFor(ctx context.Context, name string, ready func(context.Context) error) error {
	p := i.Process(name)
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPollInterval, true, func(ctx context.Context) (bool, error) {
		if last = ready(ctx); last == nil {
			return true, nil
		}
		if !p.Running() {
			return false, errors.New("the process has exited")
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w\n%s", name, errors.Join(err, last), p.LogTail())
	}
	return nil
}

func (i *Instance) etcdHealthy(ctx context.Context) error {
	return probe(ctx, http.DefaultClient, "http://"+loopback(i.state.Ports[etcdPort])+"/health")
}

func (i *Instance) apiServerReady(ctx context.Context) error {
	config, err := i.Config()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return probe(ctx, client, i.URL()+"/readyz")
}

// healthz probes the controller manager or the scheduler, whose serving certificates are self-signed.
func (i *Instance) healthz(ctx context.Context, port int) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // health on loopback
	}}
	return probe(ctx, client, "https://"+loopback(i.state.Ports[port])+"/healthz")
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("requesting %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("requesting %s: %w", url, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("requesting %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("requesting %s: %s", url, response.Status)
	}
	return nil
}
