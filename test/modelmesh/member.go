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

	mu          sync.Mutex
	connections map[string]map[net.Conn]bool // by pod
}

func newMember(options LayerOptions) (*member, error) {
	layer, err := NewLayer(options)
	if err != nil {
		return nil, err
	}
	m := &member{
		layer: layer, service: options.Service, etcd: options.Etcd,
		listener: newConnListener(), server: grpc.NewServer(), connections: map[string]map[net.Conn]bool{},
	}
	meshpb.RegisterModelMeshServer(m.server, layer)
	m.served.Go(func() { _ = m.server.Serve(m.listener) }) // ends with Stop
	return m, nil
}

// uses reports whether the layer has the given Service and data of the etcd Secret.
func (m *member) uses(service string, etcd map[string][]byte) bool {
	return m.service == service && maps.EqualFunc(m.etcd, etcd, bytes.Equal)
}

func (m *member) addConnection(pod string, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.connections[pod] == nil {
		m.connections[pod] = map[net.Conn]bool{}
	}
	m.connections[pod][conn] = true
}

func (m *member) removeConnection(pod string, conn net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.connections[pod], conn)
}

// closeConnectionsExcept closes the connections of pods that are not ready.
func (m *member) closeConnectionsExcept(ready map[string]bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for pod, conns := range m.connections {
		if ready[pod] {
			continue
		}
		for conn := range conns {
			errs = append(errs, conn.Close())
		}
		delete(m.connections, pod)
	}
	return errors.Join(errs...)
}

// close stops the server and the layer immediately.
func (m *member) close() error {
	m.server.Stop()
	m.served.Wait()
	return m.layer.Close()
}
