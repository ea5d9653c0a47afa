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
	// ended is closed when the fault ends.
	ended <-chan struct{}
	after func(time.Duration) <-chan time.Time
}

// fault handles an exchange and reports whether it is complete; otherwise the proxy continues with it.
type fault func(*exchange) bool

// delay returns a fault that delays a request.
func delay(d time.Duration) fault {
	return func(x *exchange) bool {
		select {
		case <-x.after(d):
		case <-x.ended:
		case <-x.r.Context().Done():
		}
		return false
	}
}

// dropPackets simulates the loss of all packets. When the fault ends, it forwards the request, like a retransmitted packet, unless the
// client has canceled it.
func dropPackets(x *exchange) bool {
	select {
	case <-x.ended:
		return false
	case <-x.r.Context().Done():
		return true
	}
}

// resetConnection closes the connection without a response.
func resetConnection(x *exchange) bool {
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
	panic(http.ErrAbortHandler) // the connection cannot be hijacked, as with HTTP/2: net/http aborts the response
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

// respond returns a fault that responds with an error in place of the API server.
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

// expireWatch ends a watch like an API server whose watch cache lacks the requested resourceVersion.
func expireWatch(x *exchange) bool {
	x.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.w).Encode(map[string]any{"type": "ERROR", "object": failure(http.StatusGone)}) // the client may have disconnected
	return true
}

// executeThen returns a fault that forwards the request, drops the response, and applies another fault.
func executeThen(then fault) fault {
	return func(x *exchange) bool {
		x.forward(httptest.NewRecorder())
		return then(x)
	}
}

// listAtVersion returns a fault that responds to lists with the state at a resourceVersion, like an API server with a stale watch cache.
// A list without a resourceVersion is not changed, because it reads from etcd. Streaming lists are rejected: clients fall back to lists.
func listAtVersion(version string) fault {
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
