package modelmesh

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// member is the routing layer of one namespace of a Network, with its server.
type member struct {
	layer    *Layer
	service  string
	etcd     map[string][]byte
	listener *connListener
	server   *grpc.Server
	served   sync.WaitGroup

	mu   sync.Mutex
	open map[string]map[net.Conn]bool // by pod
}

func newMember(options LayerOptions) (*member, error) {
	layer, err := NewLayer(options)
	if err != nil {
		return nil, err
	}
	m := &member{
		layer: layer, service: options.Service, etcd: options.Etcd,
		listener: newConnListener(), server: grpc.NewServer(), open: map[string]map[net.Conn]bool{},
	}
	meshpb.RegisterModelMeshServer(m.server, layer)
	m.served.Go(func() { _ = m.server.Serve(m.listener) }) // ends with Stop
	return m, nil
}

// uses reports whether the layer has the Service and the etcd of the pods.
func (m *member) uses(service string, etcd map[string][]byte) bool {
	return m.service == service && maps.EqualFunc(m.etcd, etcd, bytes.Equal)
}

func (m *member) hold(pod string, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[pod] == nil {
		m.open[pod] = map[net.Conn]bool{}
	}
	m.open[pod][conn] = true
}

func (m *member) release(pod string, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open[pod], conn)
}

// closeConnections closes the connections of deleted pods.
func (m *member) closeConnections(runs func(pod string) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for pod, conns := range m.open {
		if runs(pod) {
			continue
		}
		for conn := range conns {
			errs = append(errs, conn.Close())
		}
		delete(m.open, pod)
	}
	return errors.Join(errs...)
}

// close stops the server and the layer immediately.
func (m *member) close() error {
	m.server.Stop()
	m.served.Wait()
	return m.layer.Close()
}
