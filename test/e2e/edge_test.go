//go:build e2e

package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// edge is the proxy through which clients outside of the cluster reach its servers, by name and TLS.
type edge struct {
	// address is the IP of the proxy in the network of the node.
	address string
	// certificates are those of the proxy.
	certificates *machine.Certificates
	// otherHost begins the response to a request for another host than that of the TLS handshake, noTLS that to one without TLS; empty
	// means that nothing listens.
	otherHost, noTLS string
}

// newEdge issues the certificates for the names.
func newEdge(names ...string) *edge {
	GinkgoHelper()
	certificates, err := machine.NewCertificates(GinkgoT().TempDir(), names...)
	Expect(err).NotTo(HaveOccurred())
	return &edge{certificates: certificates, otherHost: "404 "}
}

// secret stores the certificate for the proxy.
func (e *edge) secret(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "create", "secret", "tls", name, "--cert="+e.certificates.Certificate, "--key="+e.certificates.Key)
}

// dial connects to the proxy from the network of the node, where no pod runs. The address of the URL only has the port.
func (e *edge) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	node, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", env.Instance.Process(cluster.RealNode).PID))
	if err != nil {
		return nil, err
	}
	type result struct {
		net.Conn
		error
	}
	dialed := make(chan result)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread must end with this goroutine, because it leaves the network of the machine
		var conn net.Conn
		err := unix.Setns(int(node.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(e.address, port))
		}
		dialed <- result{conn, errors.Join(err, node.Close())}
	}()
	r := <-dialed
	return r.Conn, r.error
}

// get returns the body of a response of a server without TLS at the address.
func (e *edge) get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DialContext: e.dial}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

// client trusts the CA of the proxy alone and follows no redirects.
func (e *edge) client() *http.Client {
	GinkgoHelper()
	trusted := x509.NewCertPool()
	Expect(trusted.AppendCertsFromPEM(e.certificates.CA)).To(BeTrue())
	return &http.Client{
		Transport:     &http.Transport{DialContext: e.dial, TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// call is a request to the proxy. Without token, it has no credentials.
type call struct {
	method, url, token, body string
	// host replaces that of the URL in the request, but not in the TLS handshake.
	host string
	// workspace is that of MLflow.
	workspace string
}

func (c call) request(ctx context.Context, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return nil, err
	}
	if c.host != "" {
		request.Host = c.host
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.workspace != "" {
		request.Header.Set("X-MLFLOW-WORKSPACE", c.workspace)
	}
	return request, nil
}

// send sends a request and returns status, location and body of the response, such as `302 /there/ `.
func (e *edge) send(ctx context.Context, c call) (string, error) {
	request, err := c.request(ctx, strings.NewReader(c.body))
	if err != nil {
		return "", err
	}
	client := e.client()
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s %s", response.StatusCode, response.Header.Get("Location"), body), errors.Join(err, response.Body.Close())
}

const (
	mebibyte = 1 << 20
	// artifactSize is that of an artifact which takes longer than the default limit of Envoy for a response, 15 s, at slowRate.
	artifactSize, slowRate = 100, 4
)

// repeated is an endless content.
type repeated struct{}

func (repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// upload sends as many MiB as slowly as a link of rate MiB per second would; zero means without limit.
func (e *edge) upload(ctx context.Context, c call, size, rate int) (int, error) {
	c.method = http.MethodPut
	request, err := c.request(ctx, io.LimitReader(newRateLimitedReader(ctx, repeated{}, rate), int64(size)*mebibyte))
	if err != nil {
		return 0, err
	}
	request.ContentLength = int64(size) * mebibyte
	response, err := e.client().Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// download returns the number of bytes that it received at the rate, in MiB per second; zero means without limit.
func (e *edge) download(ctx context.Context, c call, rate int) (int64, error) {
	c.method = http.MethodGet
	request, err := c.request(ctx, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := e.client().Do(request)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, errors.Join(errors.New(response.Status), response.Body.Close())
	}
	received, err := io.Copy(io.Discard, newRateLimitedReader(ctx, response.Body, rate))
	return received, errors.Join(err, response.Body.Close())
}

// newRateLimitedReader reads from a reader at a rate in MiB per second.
func newRateLimitedReader(ctx context.Context, from io.Reader, rate int) io.Reader {
	if rate == 0 {
		return from
	}
	return &slowReader{ctx: ctx, from: from, limit: flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)}
}

// slowReader reads one MiB for each token.
type slowReader struct {
	ctx   context.Context
	from  io.Reader
	limit flowcontrol.RateLimiter
	left  int
}

func (s *slowReader) Read(p []byte) (int, error) {
	if s.left == 0 {
		if err := s.limit.Wait(s.ctx); err != nil {
			return 0, err
		}
		s.left = mebibyte
	}
	n, err := s.from.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
