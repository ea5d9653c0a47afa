package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	readyTimeout      = 2 * time.Minute
	readyPollInterval = 200 * time.Millisecond
)

// peer describes how to run a peer.
type peer struct {
	name cluster.Peer
	// drop reports whether to omit an object of the manifests; nil omits none.
	drop func(*unstructured.Unstructured) bool
	// add lists objects that are installed in addition to the manifests.
	add []*unstructured.Unstructured
	// args returns the arguments of the program, after its objects are installed and its ports reserved. It may write files.
	args func(*launch) ([]string, error)
	// mount, if set, writes the files that a kubelet would mount. It is called repeatedly until the peer is ready.
	mount func(context.Context, *launch) error
	// env returns additional variables; nil for none.
	env func(*launch) []string
}

// launch is a peer that is being started.
type launch struct {
	instance  *cluster.Instance
	objects   []*unstructured.Unstructured
	installed *operator.Installed
	// health and metrics are the loopback addresses of its listeners; the webhook port is in installed.
	health, metrics string
	// dir is the folder of the peer below that of the instance.
	dir string
}

// start builds, installs and runs a peer, and returns when its /readyz succeeds.
func start(ctx context.Context, instance *cluster.Instance, p peer, progress io.Writer) (*cluster.Process, error) {
	binary, err := cluster.BuildPeer(ctx, p.name, progress)
	if err != nil {
		return nil, err
	}
	l := &launch{instance: instance, dir: filepath.Join(instance.Dir(), string(p.name))}
	if err := l.read(ctx, p); err != nil {
		return nil, err
	}
	if l.installed, err = operator.InstallObjects(ctx, instance, l.objects); err != nil {
		return nil, fmt.Errorf("installing %s: %w", p.name, err)
	}
	ports, err := instance.ReservePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	l.health, l.metrics = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	account := l.installed.ServiceAccount
	kubeconfig, err := operator.Kubeconfig(ctx, instance, account, string(p.name), account.Namespace)
	if err != nil {
		return nil, err
	}
	args, err := p.args(l)
	if err != nil {
		return nil, err
	}
	env := []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + account.Namespace}
	if p.env != nil {
		env = append(env, p.env(l)...)
	}
	process, err := instance.StartProcess(string(p.name), binary, args, env)
	if err != nil {
		return nil, err
	}
	return process, l.waitReady(ctx, p, process)
}

// shippedObjects returns the objects in the manifests of a peer's module.
func shippedObjects(ctx context.Context, name cluster.Peer) ([]*unstructured.Unstructured, error) {
	files, err := cluster.PeerDir(ctx, name)
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join("config", "default")
	if name == cluster.TrainingOperator {
		manifests = filepath.Join("manifests", "overlays", "standalone")
	}
	return operator.Kustomize(filepath.Join(files, manifests))
}

// read sets the objects to install and creates the folder of the peer.
func (l *launch) read(ctx context.Context, p peer) error {
	objects, err := shippedObjects(ctx, p.name)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if p.drop == nil || !p.drop(object) {
			l.objects = append(l.objects, object)
		}
	}
	l.objects = append(l.objects, p.add...)
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", p.name, err)
	}
	return nil
}

// write writes a file into the peer's folder and returns its path.
func (l *launch) write(name string, content []byte) (string, error) {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

func (l *launch) waitReady(ctx context.Context, p peer, process *cluster.Process) error {
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if !process.Running() {
			return false, errors.New("the process has exited")
		}
		if p.mount != nil {
			if err := p.mount(ctx, l); err != nil {
				return false, err
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.health+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		return responds(request), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be ready: %w\n%s", process.Name, err, process.LogTail())
	}
	return nil
}

// responds reports whether a request returns 200.
func responds(request *http.Request) bool {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
