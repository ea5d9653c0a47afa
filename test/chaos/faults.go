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

// exchange is a request on its way through the proxy.
type exchange struct {
	request

	w http.ResponseWriter
	r *http.Request
	// forward sends the request to the API server and its answer to a writer.
	forward func(http.ResponseWriter)
	// lifted is closed when the fault ends.
	lifted <-chan struct{}
	after  func(time.Duration) <-chan time.Time
}

// fault does something to an exchange and reports whether it has dealt with all of it; otherwise the exchange continues.
type fault func(*exchange) bool

// delay holds a request back for a while.
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

// silence is a network that loses everything: a request is forwarded when the fault ends, as a resent packet is, unless its
// client has given up.
func silence(x *exchange) bool {
	select {
	case <-x.lifted:
		return false
	case <-x.r.Context().Done():
		return true
	}
}

// reset ends the connection without an answer.
func reset(x *exchange) bool {
	if conn, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
		if inner, ok := conn.(interface{ NetConn() net.Conn }); ok {
			conn = inner.NetConn()
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // so that the client sees a reset and no orderly end
		}
		_ = conn.Close() // it has served
		return true
	}
	panic(http.ErrAbortHandler) // the other way to end a connection
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

// answer refuses a request in place of the API server.
func answer(code int) fault {
	return func(x *exchange) bool {
		x.w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			x.w.Header().Set("Retry-After", strconv.Itoa(1))
		}
		x.w.WriteHeader(code)
		_ = json.NewEncoder(x.w).Encode(failure(code)) // a client that has gone needs no answer
		return true
	}
}

// gone ends a watch in the way of an API server that has forgotten the version it began at.
func gone(x *exchange) bool {
	x.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.w).Encode(map[string]any{"type": "ERROR", "object": failure(http.StatusGone)}) // as above
	return true
}

// doneThen has the request carried out, loses its answer, and does something else in its place.
func doneThen(then fault) fault {
	return func(x *exchange) bool {
		x.forward(httptest.NewRecorder())
		return then(x)
	}
}

// past answers lists with the state at a resourceVersion, as an API server does that is behind the others. A list that asks for no
// version is consistent with the database, and so it stays here. Streamed lists are refused, so that clients list in the older way.
func past(version string) fault {
	return func(x *exchange) bool {
		query := x.r.URL.Query()
		if x.verb == "watch" && query.Get("sendInitialEvents") != "" {
			return answer(http.StatusUnprocessableEntity)(x)
		}
		if x.verb == "list" && query.Get("resourceVersion") != "" {
			query.Set("resourceVersion", version)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
			x.r.URL.RawQuery = query.Encode()
		}
		return false
	}
}
