package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	readyPollInterval = 100 * time.Millisecond
	readHeaderTimeout = 10 * time.Second
	firstListener     = 3 // the file descriptor after stdin, stdout and stderr
)

// Run runs a node in the namespaces of [Isolate]: the registry and containerd, and, once the API server is ready, the kubelet,
// kube-proxy, the volume provisioner and the NetworkPolicies. If one of them ends, Run stops the programs.
func Run(ctx context.Context, s Settings) error {
	if err := s.writeConfig(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := s.forward(ctx, group); err != nil {
		return err
	}
	group.Go(func() error { return serveImages(ctx, s) })
	group.Go(func() error { return s.runProgram(ctx, "containerd", "--config="+s.file("containerd.toml")) })
	group.Go(func() error {
		client, err := s.client(ctx)
		if err != nil {
			return err
		}
		group.Go(func() error {
			return s.runProgram(ctx, "kubelet", "--config="+s.file("kubelet.yaml"), "--kubeconfig="+s.secret("kubelet.kubeconfig"),
				"--hostname-override="+s.Name, "--node-ip="+Address)
		})
		group.Go(func() error { return s.runProgram(ctx, "kube-proxy", "--config="+s.file("kube-proxy.yaml")) })
		group.Go(func() error { return s.provisionVolumes(ctx, client) })
		group.Go(func() error { return enforcePolicies(ctx, client) })
		return nil
	})
	return group.Wait()
}

// runProgram runs a program. It always returns an error, because no program may exit.
func (s Settings) runProgram(ctx context.Context, name string, args ...string) error {
	log, err := os.OpenFile(s.file(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own descriptor
	command := exec.CommandContext(ctx, s.Programs[name], args...)
	// containerd searches the PATH for its shim.
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(s.Programs["containerd"])+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s exited, see %s: %w", name, log.Name(), err)
	}
	return fmt.Errorf("%s exited, see %s", name, log.Name())
}

func serveImages(ctx context.Context, s Settings) error {
	server := &http.Server{Addr: registryAddress, Handler: s.Images, ReadHeaderTimeout: readHeaderTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return fmt.Errorf("serving images: %w", server.ListenAndServe())
}

// client waits until the API server is ready, and returns a client for it.
func (s Settings) client(ctx context.Context) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.secret("node.kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the node: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, readyPollInterval, true, func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the API server: %w", err)
	}
	return client, nil
}

// forward forwards connections from ports of the machine to the same ports of the node. The listeners are inherited, because a socket
// remains in the network namespace in which it was created.
func (s Settings) forward(ctx context.Context, group *errgroup.Group) error {
	for number, port := range s.Ports {
		file := os.NewFile(uintptr(firstListener+number), "listener")
		listener, err := net.FileListener(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("listening on the machine: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		target := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
		group.Go(func() error {
			for {
				outside, err := listener.Accept()
				if err != nil {
					return fmt.Errorf("listening on the machine: %w", err)
				}
				go proxyConnection(ctx, outside, target)
			}
		})
	}
	return nil
}

// proxyConnection forwards a connection to the target until both are closed. If the target is unreachable, it closes the connection.
func proxyConnection(ctx context.Context, outside net.Conn, target string) {
	inside, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		_ = outside.Close()
		return
	}
	done := make(chan struct{})
	forward := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // a broken connection ends the copy in both directions
		_ = to.(*net.TCPConn).CloseWrite()
		done <- struct{}{}
	}
	go forward(inside, outside)
	go forward(outside, inside)
	<-done
	<-done
	_, _ = inside.Close(), outside.Close()
}
