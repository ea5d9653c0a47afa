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

// crashQuiet is how long a manager must send nothing after a run is done, because requests such as Events can follow.
const crashQuiet = time.Second

// Crasher is a proxy between the manager and the API server. It kills the manager after a chosen write was executed and before the response
// is sent. It can also inject errors.
type Crasher struct {
	env     *Env
	manager *Manager
	server  *httptest.Server
	timeout time.Duration

	mu      sync.Mutex
	left    int           // writes until the crash; 0 disables it
	crashed chan struct{} // closed when the manager was killed
	fault   Fault         // injects errors
}

// Fault returns the reason with which a request is refused, or an empty reason to forward the request.
type Fault func(*http.Request) metav1.StatusReason

// FaultText is the message of each injected error.
const FaultText = "injected by the test"

// codes maps the reasons that a Fault returns to status codes; the default is 500.
var codes = map[metav1.StatusReason]int{metav1.StatusReasonForbidden: http.StatusForbidden, metav1.StatusReasonInvalid: http.StatusUnprocessableEntity}

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
	code := codes[reason]
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

// StartCrasher routes the requests of a manager through a Crasher until the end of the spec. The timeout is for one run of a scenario.
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
	forward := &httputil.ReverseProxy{
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
		if !c.counts(r) {
			forward.ServeHTTP(w, r)
			return
		}
		forward.ServeHTTP(httptest.NewRecorder(), r)
		c.crash(ctx)
		panic(http.ErrAbortHandler)
	}))
	// A kubeconfig sends its token only over TLS.
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	cluster.Server, cluster.CertificateAuthorityData = c.server.URL, authority
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

// arm kills the manager after the given number of writes, and returns a channel that is closed then.
func (c *Crasher) arm(writes int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.crashed = writes, make(chan struct{})
	return c.crashed
}

// disarm forwards all further writes, and reports whether the crash was reached: the manager was killed or will be.
func (c *Crasher) disarm() (reached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reached = c.left == 0
	c.left = 0
	return reached
}

// counts reports whether a request is the write after which the manager is killed.
func (c *Crasher) counts(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	for _, other := range []string{"/leases", "/events", "reviews"} {
		if strings.Contains(r.URL.Path, other) {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return false
	}
	c.left--
	return c.left == 0
}

func (c *Crasher) crash(ctx context.Context) {
	defer ginkgo.GinkgoRecover()
	defer close(c.crashed)
	c.manager.Kill(ctx)
}

// CrashAfterEvery runs a scenario with a crash after its first write, then after its second, and so on, until a run ends without a crash.
// Each run starts with begin and ends when done passes. CrashAfterEvery returns the number of crashes.
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

// CrashAfter runs a scenario with a crash after the given write, and reports whether the scenario had so many writes.
func (c *Crasher) CrashAfter(ctx context.Context, write int, begin func(), done func(gomega.Gomega)) bool {
	ginkgo.GinkgoHelper()
	crashed := c.arm(write)
	begin()
	survived := false
	gomega.Eventually(func(g gomega.Gomega) {
		select {
		case <-crashed:
			survived = false
		default:
			done(g)
			survived = true
		}
	}).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.Succeed())
	if survived {
		c.env.WaitIdle(c.manager.User, crashQuiet, c.timeout)
	}
	if !c.disarm() {
		return false
	}
	gomega.Eventually(crashed).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.BeClosed()) // even if the crash was after the last write
	c.manager.Restart(ctx)
	gomega.Eventually(done).WithContext(ctx).WithTimeout(c.timeout).Should(gomega.Succeed(), "after a crash at write %d", write)
	c.env.WaitIdle(c.manager.User, crashQuiet, c.timeout)
	return true
}
