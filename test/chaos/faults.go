package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchange is a request in the proxy.
type exchange struct {
	request

	w http.ResponseWriter
	r *http.Request
	// forward sends the request to the API server and writes the response.
	forward func(http.ResponseWriter)
	// lifted is closed when the fault ends.
	lifted <-chan struct{}
	after  func(time.Duration) <-chan time.Time
}

// fault handles an exchange and reports whether it is complete; otherwise the proxy continues with it.
type fault func(*exchange) bool

// delay delays a request.
func delay(d time.Duration) fault {
	return func(x *exchange) bool {
		select {
		case <-x.after(d):
		case <-x.lifted:
		case <-x.r.Context().Done():
		}
		return false
	}
}

// silence simulates the loss of all packets: the request is forwarded when the fault ends, like a retransmitted packet, unless
// the client has canceled it.
func silence(x *exchange) bool {
	select {
	case <-x.lifted:
		return false
	case <-x.r.Context().Done():
		return true
	}
}

// reset closes the connection without a response.
func reset(x *exchange) bool {
	if conn, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
		if inner, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = inner.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // the client gets RST instead of FIN
		}
		_ = conn.Close() // the connection is no longer needed
		return true
	}
	panic(http.ErrAbortHandler) // closes a connection without Hijack
}

var reasons = map[int]metav1.StatusReason{
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonExpired,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
}

func failure(code int) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: reasons[code], Message: "injected by the campaign", Code: int32(code),
	}
}

// answer responds with an error in place of the API server.
func respond(code int) fault {
	return func(x *exchange) bool {
		x.w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			x.w.Header().Set("Retry-After", strconv.Itoa(1))
		}
		x.w.WriteHeader(code)
		_ = json.NewEncoder(x.w).Encode(failure(code)) // the client may have disconnected
		return true
	}
}

// stillExists ends a watch as an API server does whose watch cache lacks the requested resourceVersion.
func expireWatch(x *exchange) bool {
	x.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.w).Encode(map[string]any{"type": "ERROR", "object": failure(http.StatusGone)}) // the client may have disconnected
	return true
}

// doneThen executes the request, drops its response, and applies another fault.
func doneThen(then fault) fault {
	return func(x *exchange) bool {
		x.forward(httptest.NewRecorder())
		return then(x)
	}
}

// pastVersion responds to lists with the state at a resourceVersion, like an API server with a stale watch cache. A list without a
// resourceVersion reads from etcd and is not changed. Streaming lists are rejected, so that clients fall back to lists.
func pastVersion(version string) fault {
	return func(x *exchange) bool {
		query := x.r.URL.Query()
		if x.verb == "watch" && query.Get("sendInitialEvents") != "" {
			return respond(http.StatusUnprocessableEntity)(x)
		}
		if x.verb == "list" && query.Get("resourceVersion") != "" {
			query.Set("resourceVersion", version)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			x.r.URL.RawQuery = query.Encode()
		}
		return false
	}
}
