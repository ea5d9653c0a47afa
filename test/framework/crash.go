package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// runIdleTime is the time without requests after which a run is complete: requests such as Events can follow its last change.
const runIdleTime = time.Second

// Crasher is a proxy between the manager and the API server. It kills the manager after the API server has executed a chosen write and before
// the manager receives the response. It can also inject errors.
type Crasher struct {
	env     *Env
	manager *Manager
	server  *httptest.Server
	timeout time.Duration

	mu         sync.Mutex
	writesLeft int           // until the crash; 0 disables it
	counted    string        // part of the paths of the writes that count
	crashed    chan struct{} // closed when the manager was killed
	fault      Fault         // injects errors
}

// Fault returns the reason with which a request is refused, or an empty reason to forward the request.
type Fault func(*http.Request) metav1.StatusReason

// FaultText is the message of each injected error.
const FaultText = "injected by the test"

// statusCodes maps the reasons that a Fault returns; the default is 500.
var statusCodes = map[metav1.StatusReason]int{metav1.StatusReasonForbidden: http.StatusForbidden, metav1.StatusReasonInvalid: http.StatusUnprocessableEntity}

// Inject sets the fault; nil removes it.
func (c *Crasher) Inject(fault Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// refuse responds with the error of the fault, if any, and reports whether it did.
func (c *Crasher) refuse(w http.ResponseWriter, r *http.Request) bool {
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	if fault == nil {
		return false
	}
	reason := fault(r)
	if reason == "" {
		return false
	}
	code := statusCodes[reason]
	if code == 0 {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	response := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: reason, Message: FaultText, Code: int32(code)}
	_ = json.NewEncoder(w).Encode(response) // the client may have disconnected
	return true
}

// StartCrasher routes the requests of a manager through a Crasher until the end of the spec. The timeout bounds each wait of a scenario.
func (e *Env) StartCrasher(ctx context.Context, manager *Manager, timeout time.Duration) *Crasher {
	ginkgo.GinkgoHelper()
	config, err := clientcmd.LoadFromFile(manager.Kubeconfig)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	original := config.DeepCopy()
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	target, err := url.Parse(cluster.Server)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	roots := x509.NewCertPool()
	gomega.Expect(roots.AppendCertsFromPEM(cluster.CertificateAuthorityData)).To(gomega.BeTrue())
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	c := &Crasher{env: e, manager: manager, timeout: timeout}
	c.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.refuse(w, r) {
			return
		}
		if !c.isLastWrite(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		c.killManager(ctx)
		panic(http.ErrAbortHandler)
	}))
	// Clients send the token of a kubeconfig only over TLS.
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	cluster.Server, cluster.CertificateAuthorityData = c.server.URL, ca
	gomega.Expect(clientcmd.WriteToFile(*config, manager.Kubeconfig)).To(gomega.Succeed())
	manager.Restart(ctx)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		gomega.Expect(clientcmd.WriteToFile(*original, manager.Kubeconfig)).To(gomega.Succeed())
		manager.Restart(ctx)
		c.server.CloseClientConnections()
		c.server.Close()
	}, ginkgo.NodeTimeout(timeout))
	return c
}

// arm makes the proxy kill the manager after the given number of writes. It returns a channel that is closed when the manager was killed.
func (c *Crasher) arm(writes int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writesLeft, c.crashed = writes, make(chan struct{})
	return c.crashed
}

// disarm makes the proxy forward all further writes, and reports whether the manager was or will be killed.
func (c *Crasher) disarm() (reached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reached = c.writesLeft == 0
	c.writesLeft = 0
	return reached
}

// CountOnly makes the following scenarios count only writes whose path contains a text, such as "/jobs".
func (c *Crasher) CountOnly(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted = path
}

// isLastWrite counts a write, unless of a Lease, Event or review, and reports whether the manager is killed after the write.
func (c *Crasher) isLastWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	for _, excluded := range []string{"/leases", "/events", "reviews"} {
		if strings.Contains(r.URL.Path, excluded) {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writesLeft == 0 || !strings.Contains(r.URL.Path, c.counted) {
		return false
	}
	c.writesLeft--
	return c.writesLeft == 0
}

func (c *Crasher) killManager(ctx context.Context) {
	defer ginkgo.GinkgoRecover()
	defer close(c.crashed)
	c.manager.Kill(ctx)
}

// CrashAfterEvery runs a scenario with a crash after its first write, then after its second, and so on, until a run ends without a crash. It
// returns the number of crashes. Each run starts with begin and ends when done passes; then check is called with the number of the write.
func (c *Crasher) CrashAfterEvery(ctx context.Context, begin func(), done func(gomega.Gomega), check func(write int)) int {
	ginkgo.GinkgoHelper()
	for write := 1; ; write++ {
		crashed := c.CrashAfter(ctx, write, begin, done)
		check(write)
		if !crashed {
			return write - 1
		}
	}
}

// CrashAfter runs a scenario with a crash after the given write, and reports whether the scenario had that many writes.
func (c *Crasher) CrashAfter(ctx context.Context, write int, begin func(), done func(gomega.Gomega)) bool {
	ginkgo.GinkgoHelper()
	crashed := c.arm(write)
	begin()
	completed := false
	gomega.Eventually(func(g gomega.Gomega) {
		select {
		case <-crashed:
			completed = false
		default:
			done(g)
			completed = true
		}
	}).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.Succeed())
	if completed {
		c.env.WaitIdle(c.manager.User, runIdleTime, c.timeout)
	}
	if !c.disarm() {
		return false
	}
	gomega.Eventually(crashed).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.BeClosed()) // even if the crash was after the last write
	c.manager.Restart(ctx)
	gomega.Eventually(done).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.Succeed(), "after a crash at write %d", write)
	c.env.WaitIdle(c.manager.User, runIdleTime, c.timeout)
	return true
}
