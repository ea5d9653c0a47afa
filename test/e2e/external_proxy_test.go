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

// externalProxy is the proxy through which clients outside the cluster reach its servers, over TLS and by host name.
type externalProxy struct {
	// address is the IP of the proxy in the network of the node.
	address string
	// certificates holds the certificate of the proxy and its CA.
	certificates *machine.Certificates
	// wrongHostResponse is the prefix of the response to a request whose host differs from that of the TLS handshake.
	wrongHostResponse string
	// plainHTTPResponse is the prefix of the response to a request without TLS, empty if the proxy listens on no port for it.
	plainHTTPResponse string
}

// newExternalProxy returns an externalProxy with a certificate for the names.
func newExternalProxy(names ...string) *externalProxy {
	GinkgoHelper()
	certificates, err := machine.NewCertificates(GinkgoT().TempDir(), names...)
	Expect(err).NotTo(HaveOccurred())
	return &externalProxy{certificates: certificates, wrongHostResponse: "404 "}
}

// createSecret creates the Secret with the certificate of the proxy.
func (e *externalProxy) createSecret(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "create", "secret", "tls", name, "--cert="+e.certificates.Certificate, "--key="+e.certificates.Key)
}

// dial connects to the proxy from the network namespace of the node. It uses only the port of the address.
func (e *externalProxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
		runtime.LockOSThread() // never unlocked: Setns moves the thread to the network namespace of the node, so it must end with this goroutine
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

// get returns the body of the response to a request without TLS.
func (e *externalProxy) get(ctx context.Context, url string) (string, error) {
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

// client returns a client that trusts only the CA of the proxy and follows no redirects.
func (e *externalProxy) client() *http.Client {
	GinkgoHelper()
	trusted := x509.NewCertPool()
	Expect(trusted.AppendCertsFromPEM(e.certificates.CA)).To(BeTrue())
	return &http.Client{
		Transport:     &http.Transport{DialContext: e.dial, TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// call is a request to the proxy. Without a token, it has no credentials.
type call struct {
	method, url, token, body string
	// host is the Host header, if it differs from the server name (SNI), which is the host of the URL.
	host string
	// workspace is the workspace of MLflow.
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
func (e *externalProxy) send(ctx context.Context, c call) (string, error) {
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
	// artifactMiB is the size of an artifact whose transfer at slowMiBPerSecond exceeds 15 s, the default limit of Envoy for a response.
	artifactMiB      = 100
	slowMiBPerSecond = 4
)

// endlessReader returns bytes without end.
type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i)
	}
	return len(p), nil
}

// upload sends size MiB with at most rate MiB per second, zero means without limit, and returns the status code.
func (e *externalProxy) upload(ctx context.Context, c call, size, rate int) (int, error) {
	c.method = http.MethodPut
	request, err := c.request(ctx, io.LimitReader(newRateLimitedReader(ctx, endlessReader{}, rate), int64(size)*mebibyte))
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

// download receives at most rate MiB per second, zero means without limit, and returns the number of bytes.
func (e *externalProxy) download(ctx context.Context, c call, rate int) (int64, error) {
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

// newRateLimitedReader returns a reader that reads at most rate MiB per second from the source.
func newRateLimitedReader(ctx context.Context, source io.Reader, rate int) io.Reader {
	if rate == 0 {
		return source
	}
	return &rateLimitedReader{ctx: ctx, source: source, limit: flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)}
}

// rateLimitedReader reads one MiB for each token.
type rateLimitedReader struct {
	ctx       context.Context
	source    io.Reader
	limit     flowcontrol.RateLimiter
	remaining int
}

func (r *rateLimitedReader) Read(p []byte) (int, error) {
	if r.remaining == 0 {
		if err := r.limit.Wait(r.ctx); err != nil {
			return 0, err
		}
		r.remaining = mebibyte
	}
	n, err := r.source.Read(p[:min(len(p), r.remaining)])
	r.remaining -= n
	return n, err
}
