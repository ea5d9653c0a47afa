package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

func testLogger(t *testing.T) logr.Logger { return testr.New(t) }

// [M27] ErrNoAddress depends on the addresses of the resolver, not on the text of an error.
func TestNoCallWithoutReadyAddress(t *testing.T) {
	p, notified := newPool(t)
	mesh := &fakeMesh{}
	port, _ := serve(t, "127.0.0.1:0", mesh, nil)
	if c, found := p.Client("fraud"); found {
		t.Fatalf("client %v before Ensure", c)
	}
	must(t, p.Ensure("fraud", target(port)))
	c := clientOf(t, p, "fraud")
	if _, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{VModelId: "digits"}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if _, err := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits"}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if mesh.calls() != 0 {
		t.Errorf("%d calls reached the server", mesh.calls())
	}

	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	response, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{VModelId: "digits", TargetModelId: "digits__ksp-1"})
	if err != nil || response.GetTargetModelId() != "digits__ksp-1" {
		t.Fatalf("response %v, error %v", response, err)
	}
	if _, err := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits"}); err != nil {
		t.Fatal(err)
	}
	state, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{VModelId: "digits", Owner: "isvc"})
	if err != nil || state.GetActiveModelId() != "digits" || state.GetOwner() != "isvc" {
		t.Fatalf("status %v, error %v", state, err)
	}

	p.SetEndpointSlices(fraud, nil)
	if _, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if got := notified(); !slices.Equal(got, []string{"fraud", "fraud", "fraud"}) {
		t.Errorf("notifications %v, want one each for the new client, its first address and the deletion of that address", got)
	}
}

func TestPodsDeletedDuringCall(t *testing.T) {
	p, _ := newPool(t)
	mesh := &fakeMesh{respond: func(context.Context) error {
		p.SetEndpointSlices(fraud, nil)
		return status.Error(codes.Unavailable, "shutting down")
	}}
	port, _ := serve(t, "127.0.0.1:0", mesh, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	if _, err := clientOf(t, p, "fraud").SetVModel(t.Context(), &meshpb.SetVModelRequest{}); !errors.Is(err, ErrNoAddress) {
		t.Errorf("error %v, want ErrNoAddress", err)
	}
}

func TestErrorsKeepStatusCode(t *testing.T) {
	for _, code := range []codes.Code{codes.AlreadyExists, codes.FailedPrecondition, codes.Unavailable, codes.Internal} {
		p, _ := newPool(t)
		port, _ := serve(t, "127.0.0.1:0", &fakeMesh{respond: func(context.Context) error { return status.Error(code, "test") }}, nil)
		must(t, p.Ensure("fraud", target(port)))
		p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
		_, err := clientOf(t, p, "fraud").SetVModel(t.Context(), &meshpb.SetVModelRequest{})
		if status.Code(err) != code || errors.Is(err, ErrNoAddress) {
			t.Errorf("error %v, want the status %s", err, code)
		}
	}
}

// The sizes of responses and of error messages are limited: a pod that poses as the mesh must not exhaust the memory of the operator.
func TestResponsesAreLimited(t *testing.T) {
	p, _ := newPool(t)
	mesh := &fakeMesh{respond: func(context.Context) error { return status.Error(codes.NotFound, strings.Repeat("x", 1<<20)) }}
	port, _ := serve(t, "127.0.0.1:0", mesh, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	c := clientOf(t, p, "fraud")
	if _, err := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{}); err == nil || len(err.Error()) > maxHeaderBytes {
		t.Errorf("error of %d bytes, want at most %d", len(fmt.Sprint(err)), maxHeaderBytes)
	}
	mesh.respond = nil
	if _, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{TargetModelId: strings.Repeat("x", maxResponseBytes/2)}); err != nil {
		t.Errorf("error %v for a response of half the limit", err)
	}
	_, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{TargetModelId: strings.Repeat("x", maxResponseBytes)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("error %v for a response above the limit, want ResourceExhausted", err)
	}
}

// [M21] Every call has a timeout, including getVModelStatus.
func TestEveryCallHasTimeout(t *testing.T) {
	p, _ := newPool(t)
	mesh := &fakeMesh{respond: func(ctx context.Context) error {
		deadline, found := ctx.Deadline()
		if remaining := time.Until(deadline); !found || remaining > callTimeout {
			return status.Errorf(codes.Internal, "timeout %v", remaining)
		}
		return nil
	}}
	port, _ := serve(t, "127.0.0.1:0", mesh, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	c := clientOf(t, p, "fraud")
	_, setErr := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{})
	_, deleteErr := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{})
	_, getErr := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
	if err := errors.Join(setErr, deleteErr, getErr); err != nil {
		t.Error(err)
	}
}

func TestBalancesCallsOverPods(t *testing.T) {
	p, _ := newPool(t)
	first, second := &fakeMesh{}, &fakeMesh{}
	port, _ := serve(t, "127.0.0.1:0", first, nil)
	_, stop := serve(t, fmt.Sprintf("127.0.0.2:%d", port), second, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1", "127.0.0.2"))
	c := clientOf(t, p, "fraud")
	getStatus := func() error {
		_, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
		return err
	}
	eventually(t, "both pods are called", func() error {
		must(t, getStatus())
		if first.calls() == 0 || second.calls() == 0 {
			return fmt.Errorf("%d and %d calls", first.calls(), second.calls())
		}
		return nil
	})

	stop()
	eventually(t, "only the first pod is called", func() error { return errors.Join(getStatus(), getStatus(), getStatus()) })
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.2"))
	restarted := &fakeMesh{}
	serve(t, fmt.Sprintf("127.0.0.2:%d", port), restarted, nil)
	eventually(t, "the restarted pod is called", getStatus)
	if restarted.calls() == 0 {
		t.Error("the restarted pod received no call")
	}
}

// [modelmesh-91] M31: the client presents the certificate of the namespace, and the new one after a rotation.
func TestMutualTLS(t *testing.T) {
	p, notified := newPool(t)
	pair := newKeyPair(t, "modelmesh-serving.fraud")
	port, stop := serve(t, "127.0.0.1:0", &fakeMesh{}, mutualTLS(t, pair))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	getStatus := func() error {
		_, err := clientOf(t, p, "fraud").GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
		return err
	}
	withTLS := target(port)
	withTLS.TLS = pair
	must(t, p.Ensure("fraud", withTLS))
	must(t, getStatus())

	invalid := withTLS
	invalid.TLS = &KeyPair{Secret: "mesh-tls", Certificate: []byte("no"), Key: []byte("no")}
	if err := p.Ensure("fraud", invalid); err == nil {
		t.Fatal("Ensure accepted an invalid key pair")
	}
	must(t, getStatus()) // the previous client is kept

	stop()
	rotated := newKeyPair(t, "modelmesh-serving.fraud")
	serve(t, loopback(port), &fakeMesh{}, mutualTLS(t, rotated))
	eventually(t, "the old certificate is no longer trusted", func() error {
		if err := getStatus(); status.Code(err) != codes.Unavailable || errors.Is(err, ErrNoAddress) {
			return fmt.Errorf("error %w, want Unavailable", err)
		}
		return nil
	})
	notified()
	withTLS.TLS = rotated
	must(t, p.Ensure("fraud", withTLS))
	eventually(t, "calls use the new key pair", getStatus)
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notifications %v, want one for the new client", got)
	}

	otherName := withTLS
	otherName.Service, otherName.Endpoint = "other", "passthrough:///"+loopback(port)
	must(t, p.Ensure("fraud", otherName))
	if err := getStatus(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want Unavailable because the certificate is for another name", err)
	}
}

func TestFixedEndpoint(t *testing.T) {
	p, _ := newPool(t)
	mesh := &fakeMesh{}
	port, _ := serve(t, "127.0.0.1:0", mesh, nil)
	withEndpoint := target(8033)
	withEndpoint.Endpoint = loopback(port)
	must(t, p.Ensure("fraud", withEndpoint))
	c := clientOf(t, p, "fraud")
	if _, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}); err != nil || mesh.calls() != 1 {
		t.Errorf("%d calls, error %v", mesh.calls(), err)
	}
	if grpc, http := c.URLs(); grpc != "grpc://modelmesh-serving.fraud:8033" || http != "" {
		t.Errorf("URLs %q and %q, want those of the Service", grpc, http)
	}
}

func TestEnsureReplacesClientOnChange(t *testing.T) {
	pair, other := newKeyPair(t, "modelmesh-serving.fraud"), newKeyPair(t, "modelmesh-serving.fraud")
	for name, tc := range map[string]struct {
		tls    *KeyPair
		change func(*Target)
		want   bool
	}{
		"no change":        {nil, func(*Target) {}, false},
		"port":             {nil, func(t *Target) { t.Port = 8034 }, true},
		"service":          {nil, func(t *Target) { t.Service = "mesh" }, true},
		"REST port":        {nil, func(t *Target) { t.RESTPort = 8008 }, true},
		"endpoint":         {nil, func(t *Target) { t.Endpoint = "localhost:1" }, true},
		"TLS is enabled":   {nil, func(t *Target) { t.TLS = pair }, true},
		"TLS is disabled":  {pair, func(t *Target) { t.TLS = nil }, true},
		"equal key pair":   {pair, func(t *Target) { t.TLS = &KeyPair{Secret: pair.Secret, Certificate: pair.Certificate, Key: pair.Key} }, false},
		"CA is added":      {pair, func(t *Target) { t.TLS = &KeyPair{Certificate: pair.Certificate, Key: pair.Key, CA: other.Certificate} }, true},
		"another key pair": {pair, func(t *Target) { t.TLS = other }, true},
		"TLS, other port":  {pair, func(t *Target) { t.Port = 8034 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, notified := newPool(t)
			next := target(8033)
			next.TLS = tc.tls
			must(t, p.Ensure("fraud", next))
			previous := clientOf(t, p, "fraud")
			notified()
			tc.change(&next)
			must(t, p.Ensure("fraud", next))
			replaced := clientOf(t, p, "fraud") != previous
			if replaced != tc.want || (len(notified()) == 1) != tc.want {
				t.Errorf("replaced: %t, want %t", replaced, tc.want)
			}
			must(t, p.Ensure("fraud", next))
			if len(notified()) != 0 {
				t.Error("Ensure with the same target notified the listener")
			}
		})
	}
}

func TestEnsureRejectsInvalidTarget(t *testing.T) {
	p, notified := newPool(t)
	if err := p.Ensure("fraud", Target{Service: "mesh", Port: 8033, Endpoint: "%zz:///"}); err == nil {
		t.Error("Ensure accepted an invalid target")
	}
	if _, found := p.Client("fraud"); found || len(notified()) != 0 {
		t.Error("an invalid target created a client or notified the listener")
	}
}

func TestForgetAndClose(t *testing.T) {
	p := NewPool(testLogger(t))
	var notified []string
	p.Subscribe(t.Context(), func(namespace string) { notified = append(notified, namespace) })
	must(t, p.Ensure("fraud", target(8033)))
	must(t, p.Ensure("sales", target(8033)))
	p.Forget("fraud")
	p.Forget("fraud")
	p.Forget("absent")
	if _, found := p.Client("fraud"); found || !slices.Equal(notified, []string{"fraud", "sales", "fraud"}) {
		t.Errorf("client of a forgotten namespace: %t, notifications %v", found, notified)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, p.Start(ctx))
	if _, found := p.Client("sales"); found {
		t.Error("a closed pool still has a client")
	}
	must(t, p.Ensure("sales", target(8033)))
	if _, found := p.Client("sales"); found {
		t.Error("a closed pool created a client")
	}
}

func TestSetEndpointSlicesNotifiesOnChangeOnly(t *testing.T) {
	p, notified := newPool(t)
	must(t, p.Ensure("fraud", target(8033)))
	notified()
	other := fraud
	other.Name = "other"
	p.SetEndpointSlices(other, endpointSliceOf(8033, "1.2.3.4"))
	other = fraud
	other.Namespace = "sales"
	p.SetEndpointSlices(other, endpointSliceOf(8033, "1.2.3.4"))
	p.SetEndpointSlices(fraud, endpointSliceOf(8008, "1.2.3.4"))
	if got := notified(); len(got) != 0 {
		t.Errorf("notifications %v after changes of other Services and ports, want none", got)
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); len(got) != 1 {
		t.Errorf("notifications %v, want one", got)
	}
}

// The pool notifies its listeners when an existing client gets its first addresses, because callers may have received ErrNoAddress.
func TestClientCreatedBeforeAddresses(t *testing.T) {
	p, notified := newPool(t)
	must(t, p.Ensure("fraud", target(8033)))
	notified()
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notifications %v, want one for the first address", got)
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); len(got) != 0 {
		t.Errorf("notifications %v without a change, want none", got)
	}
	p.SetEndpointSlices(fraud, nil)
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notifications %v, want one for the deleted Service", got)
	}
}
