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

// rule says what happens to which requests.
type rule struct {
	match match
	// share of the requests that it concerns; 0 means all.
	share float64
	fault fault
	// streams holds back what comes through open watches, too.
	streams bool

	lifted chan struct{}
	hits   int
}

// proxy stands between the manager and the API server. It speaks HTTP/1.1, so that each request can lose its connection.
type proxy struct {
	server  *httptest.Server
	forward *httputil.ReverseProxy
	clock   clock.Clock
	// cancel ends all requests, also those of a client that connects again while the server closes.
	cancel context.CancelFunc

	mu     sync.Mutex
	random *rand.Rand
	rules  []*rule
	open   map[*exchange]context.CancelFunc // watches
	writes int
}

// newProxy starts a proxy for the API server of a kubeconfig; transport reaches it.
func newProxy(target *url.URL, transport http.RoundTripper, clk clock.Clock, seed uint64) *proxy {
	p := &proxy{clock: clk, random: rand.New(rand.NewPCG(seed, 0)), open: map[*exchange]context.CancelFunc{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: p.guardStream,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:       log.New(io.Discard, "", 0), // broken connections are what it is for
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.Config.ErrorLog = p.forward.ErrorLog
	var every context.Context
	every, p.cancel = context.WithCancel(context.Background())
	p.server.Config.BaseContext = func(net.Listener) context.Context { return every }
	p.server.StartTLS()
	return p
}

// interpose writes a copy of a kubeconfig that leads through the proxy.
func interpose(kubeconfig, through string, clk clock.Clock, seed uint64) (*proxy, error) {
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
	// A kubeconfig gives its token to TLS servers only.
	cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	cluster.Server = p.server.URL
	if err := clientcmd.WriteToFile(*config, through); err != nil {
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

// close ends all connections.
func (p *proxy) close() {
	p.liftAll()
	p.cancel()
	p.server.CloseClientConnections()
	p.server.Close()
}

// with puts a rule in force, behind those that are, until it is lifted; lifting it twice does nothing.
func (p *proxy) with(r rule) (lift func()) {
	added := &r
	added.lifted = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.rules, added); i >= 0 {
			p.rules = slices.Delete(p.rules, i, i+1)
			close(added.lifted)
		}
	}
}

// liftAll ends every fault.
func (p *proxy) liftAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		close(r.lifted)
	}
	p.rules = nil
}

// cut ends the open watches that match.
func (p *proxy) cut(m match) (ended int) {
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

// met counts what the rules in force did.
func (p *proxy) met() (hits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		hits += r.hits
	}
	return hits
}

// written counts the writes for components that reached the proxy.
func (p *proxy) written() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// next returns the first rule from a position that concerns a request; rules whose share spares it are left out.
func (p *proxy) next(q request, after []*rule) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if slices.Contains(after, r) || !r.match.matches(q) || r.share > 0 && p.random.Float64() >= r.share {
			continue
		}
		r.hits++
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
	var met []*rule
	for hit := p.next(x.request, met); hit != nil; hit = p.next(x.request, met) {
		met = append(met, hit)
		x.lifted = hit.lifted
		if hit.fault != nil && hit.fault(x) {
			return
		}
	}
	x.forward(w)
}

// guardStream lets rules hold back what comes through a watch.
func (p *proxy) guardStream(response *http.Response) error {
	if x, ok := response.Request.Context().Value(exchangeKey{}).(*exchange); ok && x.verb == "watch" {
		response.Body = &stream{ReadCloser: response.Body, proxy: p, x: x}
	}
	return nil
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser

	proxy *proxy
	x     *exchange
}

// Read hands on what has come when no rule holds it back.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	for held := s.proxy.holding(s.x.request); held != nil && n > 0; held = s.proxy.holding(s.x.request) {
		select {
		case <-held:
		case <-s.x.r.Context().Done():
			return 0, context.Cause(s.x.r.Context())
		}
	}
	return n, err
}

// holding returns what is closed when the rule ends that holds back a watch; nil when none does.
func (p *proxy) holding(q request) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if r.streams && r.match.matches(q) {
			r.hits++
			return r.lifted
		}
	}
	return nil
}
