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

func clients(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	must(t, clientsGauge.Write(&m))
	return m.GetGauge().GetValue()
}

func TestOutcomeOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"OK":               nil,
		"NoAddress":        fmt.Errorf("service a/b: %w", ErrNoAddress),
		"Unavailable":      status.Error(codes.Unavailable, "going"),
		"DeadlineExceeded": status.FromContextError(context.DeadlineExceeded).Err(),
		"Unknown":          errors.New("something else"),
	} {
		if got := codeLabel(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestCallsAreCounted(t *testing.T) {
	p, _ := newPool(t)
	refusal := error(nil)
	port, _ := serve(t, "127.0.0.1:0", &routing{respond: func(context.Context) error { return refusal }}, nil)
	must(t, p.Ensure("fraud", target(port)))
	if got := clients(t); got != 1 {
		t.Errorf("%v clients, want 1", got)
	}
	c := clientOf(t, p, "fraud")
	ask := func() { _, _ = c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}) } // only the count matters
	before := map[string]float64{}
	for _, code := range []string{codeNoAddress, "OK", "NotFound"} {
		before[code] = callCount(t, "GetVModelStatus", code)
	}
	ask()
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	ask()
	refusal = status.Error(codes.NotFound, "no such model")
	ask()
	for code, former := range before {
		if got := callCount(t, "GetVModelStatus", code) - former; got != 1 {
			t.Errorf("%v calls ended with %s, want 1", got, code)
		}
	}
	p.Forget("fraud")
	if got := clients(t); got != 0 {
		t.Errorf("%v clients are left", got)
	}
}
