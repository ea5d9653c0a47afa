package framework

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Service forwards connections to the webhooks of several managers. Like kube-proxy, it forwards each connection to one endpoint without
// health checks.
type Service struct {
	// Oldest chooses the oldest endpoint, the worst choice during a rollout, instead of each in turn. Set it before Add.
	Oldest bool

	mu    sync.Mutex
	ports []int // of the endpoints
	next  int
}

// Serve listens on a loopback port until the end of the calling spec or suite.
func Serve(port int) *Service {
	ginkgo.GinkgoHelper()
	listener, err := net.Listen("tcp", fmt.Sprintf("localhost:%d", port))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(listener.Close)
	s := &Service{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(connection)
		}
	}()
	return s
}

// endpointPort returns the port of the endpoint for a new connection, or 0 without endpoints.
func (s *Service) endpointPort() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ports) == 0 {
		return 0
	}
	if s.Oldest {
		return s.ports[0]
	}
	s.next++
	return s.ports[s.next%len(s.ports)]
}

func (s *Service) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	endpoint, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", s.endpointPort()))
	if err != nil {
		return
	}
	defer func() { _ = endpoint.Close() }()
	var copies sync.WaitGroup
	for to, from := range map[net.Conn]net.Conn{client: endpoint, endpoint: client} {
		copies.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.(*net.TCPConn).CloseWrite()
		})
	}
	copies.Wait()
}

// Add adds the endpoint that listens on a port.
func (s *Service) Add(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, port)
}

// Remove removes an endpoint. Existing connections continue.
func (s *Service) Remove(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = slices.DeleteFunc(s.ports, func(p int) bool { return p == port })
}
