package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

func testLogger(t *testing.T) logr.Logger { return testr.New(t) }

// [M27] The resolver determines whether there is an address, not the text of an error.
func TestNoCallWithoutReadyAddress(t *testing.T) {
	p, notified := newPool(t)
	r := &routing{}
	port, _ := serve(t, "127.0.0.1:0", r, nil)
	if c, found := p.Client("fraud"); found {
		t.Fatalf("client %v of a namespace that was never requested", c)
	}
	must(t, p.Ensure("fraud", target(port)))
	c := clientOf(t, p, "fraud")
	if _, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{VModelId: "digits"}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if _, err := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits"}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if r.calls() != 0 {
		t.Errorf("%d calls reached the server", r.calls())
	}

	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	response, err := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{VModelId: "digits", TargetModelId: "digits__ksp-1"})
	if err != nil || response.GetTargetModelId() != "digits__ksp-1" {
		t.Fatalf("answer %v, %v", response, err)
	}
	if _, err := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{VModelId: "digits"}); err != nil {
		t.Fatal(err)
	}
	state, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{VModelId: "digits", Owner: "isvc"})
	if err != nil || state.GetActiveModelId() != "digits" || state.GetOwner() != "isvc" {
		t.Fatalf("answer %v, %v", state, err)
	}

	p.SetEndpointSlices(fraud, nil)
	if _, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}); !errors.Is(err, ErrNoAddress) {
		t.Fatalf("error %v, want ErrNoAddress", err)
	}
	if got := notified(); !slices.Equal(got, []string{"fraud", "fraud", "fraud"}) {
		t.Errorf("notified of %v, want the client, its address, and its loss", got)
	}
}

func TestPodsDeletedDuringCall(t *testing.T) {
	p, _ := newPool(t)
	r := &routing{respond: func(context.Context) error {
		p.SetEndpointSlices(fraud, nil)
		return status.Error(codes.Unavailable, "going")
	}}
	port, _ := serve(t, "127.0.0.1:0", r, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	if _, err := clientOf(t, p, "fraud").SetVModel(t.Context(), &meshpb.SetVModelRequest{}); !errors.Is(err, ErrNoAddress) {
		t.Errorf("error %v, want ErrNoAddress", err)
	}
}

func TestErrorsKeepTheirStatus(t *testing.T) {
	for _, code := range []codes.Code{codes.AlreadyExists, codes.FailedPrecondition, codes.Unavailable, codes.Internal} {
		p, _ := newPool(t)
		port, _ := serve(t, "127.0.0.1:0", &routing{respond: func(context.Context) error { return status.Error(code, "so it is") }}, nil)
		must(t, p.Ensure("fraud", target(port)))
		p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
		_, err := clientOf(t, p, "fraud").SetVModel(t.Context(), &meshpb.SetVModelRequest{})
		if status.Code(err) != code || errors.Is(err, ErrNoAddress) {
			t.Errorf("error %v, want the status %s", err, code)
		}
	}
}

// [M21] Every call has a timeout, getVModelStatus too.
func TestEveryCallHasTimeout(t *testing.T) {
	p, _ := newPool(t)
	r := &routing{respond: func(ctx context.Context) error {
		deadline, found := ctx.Deadline()
		if left := time.Until(deadline); !found || left > callTimeout {
			return status.Errorf(codes.Internal, "a limit of %v", left)
		}
		return nil
	}}
	port, _ := serve(t, "127.0.0.1:0", r, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	c := clientOf(t, p, "fraud")
	_, set := c.SetVModel(t.Context(), &meshpb.SetVModelRequest{})
	_, deleted := c.DeleteVModel(t.Context(), &meshpb.DeleteVModelRequest{})
	_, asked := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
	if err := errors.Join(set, deleted, asked); err != nil {
		t.Error(err)
	}
}

func TestBalancesCallsOverPods(t *testing.T) {
	p, _ := newPool(t)
	one, two := &routing{}, &routing{}
	port, _ := serve(t, "127.0.0.1:0", one, nil)
	_, stop := serve(t, fmt.Sprintf("127.0.0.2:%d", port), two, nil)
	must(t, p.Ensure("fraud", target(port)))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1", "127.0.0.2"))
	c := clientOf(t, p, "fraud")
	ask := func() error {
		_, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
		return err
	}
	eventually(t, "both pods were asked", func() error {
		must(t, ask())
		if one.calls() == 0 || two.calls() == 0 {
			return fmt.Errorf("%d and %d calls", one.calls(), two.calls())
		}
		return nil
	})

	stop()
	eventually(t, "the other pod answers alone", func() error { return errors.Join(ask(), ask(), ask()) })
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.2"))
	again := &routing{}
	serve(t, fmt.Sprintf("127.0.0.2:%d", port), again, nil)
	eventually(t, "the pod that came back is called again, without a notification", ask)
	if again.calls() == 0 {
		t.Error("the server with the address did not get the calls")
	}
}

// [modelmesh-91] M31: pods that require a client certificate receive that of the namespace, also after a rotation.
func TestTLSOfANamespace(t *testing.T) {
	p, notified := newPool(t)
	pair := pairOf(t, "modelmesh-serving.fraud")
	port, stop := serve(t, "127.0.0.1:0", &routing{}, mutual(t, pair))
	p.SetEndpointSlices(fraud, endpointSliceOf(port, "127.0.0.1"))
	ask := func() error {
		_, err := clientOf(t, p, "fraud").GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{})
		return err
	}
	secured := target(port)
	secured.TLS = pair
	must(t, p.Ensure("fraud", secured))
	must(t, ask())

	broken := secured
	broken.TLS = &KeyPair{Secret: "mesh-tls", Certificate: []byte("no"), Key: []byte("no")}
	if err := p.Ensure("fraud", broken); err == nil {
		t.Fatal("an invalid key pair was not rejected")
	}
	must(t, ask()) // the previous client is kept

	stop()
	rotated := pairOf(t, "modelmesh-serving.fraud")
	serve(t, loopback(port), &routing{}, mutual(t, rotated))
	eventually(t, "the old certificate is no longer trusted", func() error {
		if err := ask(); status.Code(err) != codes.Unavailable || errors.Is(err, ErrNoAddress) {
			return fmt.Errorf("error %w, want Unavailable", err)
		}
		return nil
	})
	notified()
	secured.TLS = rotated
	must(t, p.Ensure("fraud", secured))
	eventually(t, "the new pair is in use", ask)
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notified of %v, want the new client once", got)
	}

	foreign := secured
	foreign.Service, foreign.Endpoint = "other", "passthrough:///"+loopback(port)
	must(t, p.Ensure("fraud", foreign))
	if err := ask(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want a refusal: the certificate is for another name", err)
	}
}

func TestFixedEndpoint(t *testing.T) {
	p, _ := newPool(t)
	r := &routing{}
	port, _ := serve(t, "127.0.0.1:0", r, nil)
	fixed := target(8033)
	fixed.Endpoint = loopback(port)
	must(t, p.Ensure("fraud", fixed))
	c := clientOf(t, p, "fraud")
	if _, err := c.GetVModelStatus(t.Context(), &meshpb.GetVModelStatusRequest{}); err != nil || r.calls() != 1 {
		t.Errorf("%d calls, error %v", r.calls(), err)
	}
	if grpc, http := c.URLs(); grpc != "grpc://modelmesh-serving.fraud:8033" || http != "" {
		t.Errorf("endpoints %q and %q: users are shown the Service", grpc, http)
	}
}

func TestEnsureReplacesClientOnChange(t *testing.T) {
	pair, other := pairOf(t, "modelmesh-serving.fraud"), pairOf(t, "modelmesh-serving.fraud")
	for name, tc := range map[string]struct {
		tls    *KeyPair
		change func(*Target)
		want   bool
	}{
		"no change":         {nil, func(*Target) {}, false},
		"port":              {nil, func(t *Target) { t.Port = 8034 }, true},
		"service":           {nil, func(t *Target) { t.Service = "mesh" }, true},
		"REST port":         {nil, func(t *Target) { t.RESTPort = 8008 }, true},
		"endpoint":          {nil, func(t *Target) { t.Endpoint = "localhost:1" }, true},
		"TLS on":            {nil, func(t *Target) { t.TLS = pair }, true},
		"TLS off":           {pair, func(t *Target) { t.TLS = nil }, true},
		"equal key pair":    {pair, func(t *Target) { t.TLS = &KeyPair{Secret: pair.Secret, Certificate: pair.Certificate, Key: pair.Key} }, false},
		"a CA":              {pair, func(t *Target) { t.TLS = &KeyPair{Certificate: pair.Certificate, Key: pair.Key, CA: other.Certificate} }, true},
		"another pair":      {pair, func(t *Target) { t.TLS = other }, true},
		"TLS, another port": {pair, func(t *Target) { t.Port = 8034 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, notified := newPool(t)
			next := target(8033)
			next.TLS = tc.tls
			must(t, p.Ensure("fraud", next))
			former := clientOf(t, p, "fraud")
			notified()
			tc.change(&next)
			must(t, p.Ensure("fraud", next))
			replaced := clientOf(t, p, "fraud") != former
			if replaced != tc.want || (len(notified()) == 1) != tc.want {
				t.Errorf("replaced: %t, want %t", replaced, tc.want)
			}
			must(t, p.Ensure("fraud", next))
			if len(notified()) != 0 {
				t.Error("Ensure with the same target notified subscribers")
			}
		})
	}
}

func TestEnsureRejectsInvalidTargets(t *testing.T) {
	p, notified := newPool(t)
	if err := p.Ensure("fraud", Target{Service: "mesh", Port: 8033, Endpoint: "%zz:///"}); err == nil {
		t.Error("want an error for an invalid target")
	}
	if _, found := p.Client("fraud"); found || len(notified()) != 0 {
		t.Error("invalid targets created a client or notified subscribers")
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
	p.Forget("never-known")
	if _, found := p.Client("fraud"); found || !slices.Equal(notified, []string{"fraud", "sales", "fraud"}) {
		t.Errorf("found: %t, notified of %v", found, notified)
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

func TestAddressesOfOtherServicesNotifyNoSubscriber(t *testing.T) {
	p, notified := newPool(t)
	must(t, p.Ensure("fraud", target(8033)))
	notified()
	other := fraud
	other.Name = "something-else"
	p.SetEndpointSlices(other, endpointSliceOf(8033, "1.2.3.4"))
	other = fraud
	other.Namespace = "sales"
	p.SetEndpointSlices(other, endpointSliceOf(8033, "1.2.3.4"))
	p.SetEndpointSlices(fraud, endpointSliceOf(8008, "1.2.3.4"))
	if got := notified(); len(got) != 0 {
		t.Errorf("notified of %v", got)
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); len(got) != 1 {
		t.Errorf("notified of %v, want one notification for one change", got)
	}
}

// A client created before its addresses may have reported ErrNoAddress already, so their arrival is notified.
func TestClientCreatedBeforeAddresses(t *testing.T) {
	p, notified := newPool(t)
	must(t, p.Ensure("fraud", target(8033)))
	notified()
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notified of %v, want %v", got, []string{"fraud"})
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := notified(); len(got) != 0 {
		t.Errorf("notified of %v, which has not changed", got)
	}
	p.SetEndpointSlices(fraud, nil)
	if got := notified(); !slices.Equal(got, []string{"fraud"}) {
		t.Errorf("notified of %v, want the loss of the address", got)
	}
}
