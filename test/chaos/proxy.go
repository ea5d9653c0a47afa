package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
)

// rule applies a fault to the requests that match.
type rule struct {
	match match
	// share of the matching requests; 0 means all.
	share float64
	fault fault
	// streams is set if the fault also delays the events of open watches.
	streams bool

	ended chan struct{}
}

// proxy is a proxy between the manager and the API server. It uses HTTP/1.1, so a fault can close the connection of a single request.
type proxy struct {
	server  *httptest.Server
	forward *httputil.ReverseProxy
	clock   clock.Clock
	// cancel ends all requests, including those of clients that reconnect while the server closes.
	cancel context.CancelFunc

	mu     sync.Mutex
	random *rand.Rand
	rules  []*rule
	open   map[*exchange]context.CancelFunc // watches
	writes int
	// hits counts the requests that a rule matched, and the delays of the events of a watch.
	hits int
}

// newProxy starts a proxy for the API server at target.
func newProxy(target *url.URL, transport http.RoundTripper, clk clock.Clock, seed uint64) *proxy {
	p := &proxy{clock: clk, random: rand.New(rand.NewPCG(seed, 0)), open: map[*exchange]context.CancelFunc{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // flush events of watches immediately
		ModifyResponse: p.wrapWatch,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:       log.New(io.Discard, "", 0), // broken connections are expected
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = p.forward.ErrorLog
	var baseContext context.Context
	baseContext, p.cancel = context.WithCancel(context.Background())
	p.server.Config.BaseContext = func(net.Listener) context.Context { return baseContext }
	p.server.StartTLS()
	return p
}

// startProxy starts a proxy for the cluster of a kubeconfig, and writes a copy of the kubeconfig that points to the proxy.
func startProxy(kubeconfig, proxied string, clk clock.Clock, seed uint64) (*proxy, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	cluster, err := currentCluster(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cluster.Server)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cluster.CertificateAuthorityData) {
		return nil, errors.New("the kubeconfig has no CA")
	}
	p := newProxy(target, &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100,
	}, clk, seed)
	// Clients send tokens of a kubeconfig only over TLS.
	cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	cluster.Server = p.server.URL
	if err := clientcmd.WriteToFile(*config, proxied); err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return p, nil
}

func currentCluster(config *clientcmdapi.Config) (*clientcmdapi.Cluster, error) {
	if current := config.Contexts[config.CurrentContext]; current != nil {
		if cluster := config.Clusters[current.Cluster]; cluster != nil {
			return cluster, nil
		}
	}
	return nil, errors.New("the kubeconfig has no cluster")
}

func (p *proxy) close() {
	p.removeRules()
	p.cancel()
	p.server.CloseClientConnections()
	p.server.Close()
}

// addRule adds a rule after the existing ones. The returned function removes it and may be called repeatedly.
func (p *proxy) addRule(r rule) (removeRule func()) {
	added := &r
	added.ended = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.rules, added); i >= 0 {
			p.rules = slices.Delete(p.rules, i, i+1)
			close(added.ended)
		}
	}
}

func (p *proxy) removeRules() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		close(r.ended)
	}
	p.rules = nil
}

// closeWatches closes the matching watches and returns their number.
func (p *proxy) closeWatches(m match) (ended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x, cancel := range p.open {
		if m.matches(x.request) {
			cancel()
			ended++
		}
	}
	return ended
}

// hitCount returns how often current and removed rules matched a request or delayed the events of a watch.
func (p *proxy) hitCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// writeCount returns the number of write requests of components.
func (p *proxy) writeCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// next returns the first matching rule that is not in applied. A rule with a share matches at random.
func (p *proxy) next(q request, applied []*rule) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if slices.Contains(applied, r) || !r.match.matches(q) || r.share > 0 && p.random.Float64() >= r.share {
			continue
		}
		p.hits++
		return r
	}
	return nil
}

type exchangeKey struct{}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &exchange{request: parse(r), w: w, after: p.clock.After}
	x.r = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	x.forward = func(w http.ResponseWriter) { p.forward.ServeHTTP(w, x.r) }
	p.mu.Lock()
	if x.writes() {
		p.writes++
	}
	if x.verb == "watch" {
		p.open[x] = cancel
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.open, x)
		p.mu.Unlock()
	}()
	var applied []*rule
	for hit := p.next(x.request, applied); hit != nil; hit = p.next(x.request, applied) {
		applied = append(applied, hit)
		x.ended = hit.ended
		if hit.fault != nil && hit.fault(x) {
			return
		}
	}
	x.forward(w)
}

// wrapWatch wraps the body of a watch, so rules can delay its events.
func (p *proxy) wrapWatch(response *http.Response) error {
	if x, ok := response.Request.Context().Value(exchangeKey{}).(*exchange); ok && x.verb == "watch" {
		response.Body = &stream{ReadCloser: response.Body, proxy: p, x: x}
	}
	return nil
}

type stream struct {
	io.ReadCloser

	proxy *proxy
	x     *exchange
}

// Read returns data after the end of the rule that delays the watch, if any. A rule that is added in the meantime delays only later data.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	if delayed := s.proxy.delayedUntil(s.x.request); delayed != nil && n > 0 {
		select {
		case <-delayed:
		case <-s.x.r.Context().Done():
			return 0, context.Cause(s.x.r.Context())
		}
	}
	return n, err
}

// delayedUntil returns the channel that is closed when the rule that delays a watch ends, nil if no rule delays it.
func (p *proxy) delayedUntil(q request) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.streams && r.match.matches(q) {
			p.hits++
			return r.ended
		}
	}
	return nil
}
