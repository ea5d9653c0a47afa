package modelmesh

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	etcdProcess      = "modelmesh-etcd"
	etcdPollInterval = 50 * time.Millisecond
	etcdTimeout      = time.Minute
)

// Etcd is an etcd for routing layers, separate from that of a control plane, so it can fail while Kubernetes runs.
type Etcd struct {
	// URL of etcd, on loopback.
	URL string

	instance *cluster.Instance
	args     []string
}

// StartEtcd starts an etcd that stops with the instance, and returns when it is healthy.
func StartEtcd(ctx context.Context, instance *cluster.Instance) (*Etcd, error) {
	ports, err := instance.ReservePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	clientURL, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	e := &Etcd{URL: clientURL, instance: instance, args: etcdArgs(instance.Dir()+"/"+etcdProcess, clientURL, peer)}
	return e, e.Restart(ctx)
}

func etcdArgs(dir, clientURL, peer string) []string {
	return []string{
		"--name=modelmesh", "--data-dir=" + dir, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=modelmesh=" + peer,
	}
}

// Running reports whether the process of etcd is running.
func (e *Etcd) Running() bool { return e.instance.Process(etcdProcess).Running() }

// Kill kills etcd and keeps its data.
func (e *Etcd) Kill(ctx context.Context) error { return e.instance.Process(etcdProcess).Kill(ctx) }

// Restart starts etcd again with its data, and returns when it is healthy.
func (e *Etcd) Restart(ctx context.Context) error {
	if _, err := e.instance.StartProcess(etcdProcess, e.instance.Process(cluster.Etcd).Path, e.args, nil); err != nil {
		return err
	}
	if err := waitEtcd(ctx, e.URL); err != nil {
		return fmt.Errorf("%w\n%s", err, e.instance.Process(etcdProcess).LogTail())
	}
	return nil
}

func waitEtcd(ctx context.Context, url string) error {
	client := &http.Client{Timeout: etcdTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	err := wait.PollUntilContextTimeout(ctx, etcdPollInterval, etcdTimeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", http.NoBody)
		if err != nil {
			return false, fmt.Errorf("creating a request for %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for etcd at %s: %w", url, err)
	}
	return nil
}

// SecretData returns the data of the Secret model-serving-etcd for an etcd.
func SecretData(url, rootPrefix string) (map[string][]byte, error) {
	text, err := json.Marshal(meshetcd.Connection{Endpoints: url, RootPrefix: rootPrefix})
	if err != nil {
		return nil, fmt.Errorf("encoding the connection to etcd: %w", err)
	}
	return map[string][]byte{meshetcd.ConnectionKey: text}, nil
}
