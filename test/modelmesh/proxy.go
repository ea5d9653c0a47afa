package modelmesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServeHTTP implements http.Handler: a proxy for CONNECT requests to the gRPC ports of ready runtime pods.
func (n *Network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "the proxy supports only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	pod, err := n.podAt(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	config, err := serverTLS(r.Context(), n.api, pod)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	member := n.memberFor(pod.Namespace)
	if member == nil {
		http.Error(w, "the routing layer of namespace "+pod.Namespace+" is not running", http.StatusBadGateway)
		return
	}
	if err := proxyConnection(w, member, pod, config); err != nil {
		n.options.Log.V(1).Info("Proxying a connection failed", "pod", pod.Name, "error", err.Error())
	}
}

// proxyConnection passes the connection of a request to a routing layer. It hijacks the connection before it responds, because the
// HTTP server would otherwise read the data that the client sends after the response.
func proxyConnection(w http.ResponseWriter, m *member, pod *corev1.Pod, config *tls.Config) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("hijacking a connection: %w", err)
	}
	if buffered.Reader.Buffered() > 0 {
		return errors.Join(errors.New("the client did not wait for the response to CONNECT"), conn.Close())
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return errors.Join(fmt.Errorf("responding to CONNECT: %w", err), conn.Close())
	}
	var accepted net.Conn = &podConn{Conn: conn, pod: pod.Name, member: m}
	m.addConnection(pod.Name, conn)
	if config != nil {
		accepted = tls.Server(accepted, config)
	}
	return m.listener.offer(accepted)
}

// podAt returns the ready pod whose gRPC port has the address.
func (n *Network) podAt(ctx context.Context, address string) (*corev1.Pod, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	var pods corev1.PodList
	if err := n.cache.List(ctx, &pods, client.HasLabels{serviceLabel}); err != nil {
		return nil, fmt.Errorf("finding the pod at %s: %w", address, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if isReady(pod) && pod.Status.PodIP == host && strconv.Itoa(int(grpcPortOf(pod))) == port {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("no ready runtime pod listens on %s", address)
}

// podConn is a connection that is removed from its member when it is closed.
type podConn struct {
	net.Conn
	pod    string
	member *member
}

// Close implements net.Conn.
func (c *podConn) Close() error {
	c.member.removeConnection(c.pod, c.Conn)
	return c.Conn.Close()
}

// connListener is a listener for the connections that are passed to offer.
type connListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newConnListener() *connListener {
	return &connListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *connListener) offer(conn net.Conn) error {
	select {
	case l.conns <- conn:
		return nil
	case <-l.done:
		return errors.Join(net.ErrClosed, conn.Close())
	}
}

// Accept implements net.Listener.
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *connListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *connListener) Addr() net.Addr { return &net.UnixAddr{Name: "modelmesh", Net: "proxy"} }
