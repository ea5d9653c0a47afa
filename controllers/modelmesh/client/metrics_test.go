package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

func callCount(t *testing.T, method, code string) float64 {
	t.Helper()
	var m dto.Metric
	must(t, callsTotal.WithLabelValues(method, code).Write(&m))
	return m.GetCounter().GetValue()
}

func clientCount(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	must(t, clientsGauge.Write(&m))
	return m.GetGauge().GetValue()
}

func TestCodeLabel(t *testing.T) {
	for _, tc := range []struct {
		want string
		err  error
	}{
		{"OK", nil},
		{"NoAddress", fmt.Errorf("service a/b: %w", ErrNoAddress)},
		{"Unavailable", status.Error(codes.Unavailable, "shutting down")},
		{"Unauthenticated", status.Error(codes.Unauthenticated, "")},
		{"DeadlineExceeded", status.FromContextError(context.DeadlineExceeded).Err()},
		{"Unknown", errors.New("other error")},
		{"Unknown", status.Error(codes.Unauthenticated+1, "a code that gRPC does not define")},
		{"Unknown", status.Error(4711, "a code that gRPC does not define")},
	} {
		if got := codeLabel(tc.err); got != tc.want {
			t.Errorf("%v: label %s, want %s", tc.err, got, tc.want)
		}
	}
}

func TestCallsAreCounted(t *testing.T) {
	p, _ := newPool(t)
	var callErr error
	port, _ := serve(t, "127.0.0.1:0", &fakeMesh{respond: func(context.Context) error { return callErr }}, nil)
	must(t, p.Ensure("fraud", target(port)))
	if got := clientCount(t); got != 1 {
		t.Errorf("%v clients, want 1", got)
	}
	c := clientOf(t, p, "fraud")
	call := func() { _, _ = c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}) } // the counter covers errors too
	before := map[string]float64{}
	for _, code := range []string{codeNoAddress, "OK", "NotFound"} {
		before[code] = callCount(t, "GetVModelStatus", code)
	}
	call()
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	call()
	callErr = status.Error(codes.NotFound, "no such model")
	call()
	for code, count := range before {
		if got := callCount(t, "GetVModelStatus", code) - count; got != 1 {
			t.Errorf("%v calls ended with %s, want 1", got, code)
		}
	}
	p.Forget("fraud")
	if got := clientCount(t); got != 0 {
		t.Errorf("%v clients, want 0", got)
	}
}
