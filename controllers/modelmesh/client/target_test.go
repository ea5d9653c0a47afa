package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestURLs(t *testing.T) {
	for name, tc := range map[string]struct {
		target     Target
		grpc, http string
	}{
		"gRPC alone": {Target{Service: "mesh", Port: 8033}, "grpc://mesh.fraud:8033", ""},
		"with REST":  {Target{Service: "mesh", Port: 9000, RESTPort: 8008}, "grpc://mesh.fraud:9000", "http://mesh.fraud:8008"},
		"with TLS":   {Target{Service: "mesh", Port: 8033, RESTPort: 8008, TLS: &KeyPair{}}, "grpc://mesh.fraud:8033", "https://mesh.fraud:8008"},
	} {
		if grpc, http := tc.target.URLs("fraud"); grpc != tc.grpc || http != tc.http {
			t.Errorf("%s: %q and %q", name, grpc, http)
		}
	}
}

func TestParseKeyPair(t *testing.T) {
	cert, key := certificate(t, "mesh.fraud")
	_, foreign := certificate(t, "mesh.fraud")
	for name, tc := range map[string]struct {
		data map[string][]byte
		err  string
	}{
		"a pair":             {map[string][]byte{"tls.crt": cert, "tls.key": key}, ""},
		"a pair and a CA":    {map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": cert}, ""},
		"empty Secret":       {nil, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"no key":             {map[string][]byte{"tls.crt": cert}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"an empty key":       {map[string][]byte{"tls.crt": cert, "tls.key": {}}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"no certificate":     {map[string][]byte{"tls.key": key}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"no PEM":             {map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x")}, "could not load client key pair: tls: failed to find any PEM data"},
		"the key of another": {map[string][]byte{"tls.crt": cert, "tls.key": foreign}, "could not load client key pair: "},
		"invalid CA":         {map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": []byte("x")}, "failed to append ca certs"},
	} {
		pair, err := ParseKeyPair("mesh-tls", tc.data)
		if tc.err == "" && (err != nil || string(pair.Certificate) != string(cert)) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
	}
}

func TestTLSTrustsCAOfSecret(t *testing.T) {
	cert, key := certificate(t, "mesh.fraud")
	other, _ := certificate(t, "ca")
	pair := &KeyPair{Certificate: cert, Key: key, CA: other}
	with, err := pair.tlsConfig("mesh.fraud")
	must(t, err)
	pair.CA = nil
	without, err := pair.tlsConfig("mesh.fraud")
	must(t, err)
	if with.RootCAs.Equal(without.RootCAs) || with.ServerName != "mesh.fraud" || len(with.Certificates) != 1 || with.InsecureSkipVerify {
		t.Error("want TLS with the client certificate, the server name and the CA of the target")
	}
}

func TestEndpointSlicesReachThePool(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, discoveryv1.AddToScheme(scheme))
	slice := endpointSliceOf(8033, "1.2.3.4")[0]
	slice.Name, slice.Namespace, slice.Labels = "mesh-x1", "fraud", map[string]string{discoveryv1.LabelServiceName: fraud.Name}
	foreign := endpointSliceOf(8033, "5.6.7.8")[0]
	foreign.Name, foreign.Namespace, foreign.Labels = "other-x1", "fraud", map[string]string{discoveryv1.LabelServiceName: "other"}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&slice, &foreign).Build()
	p, notified := newPool(t)
	must(t, p.Ensure("fraud", target(8033)))
	notified()
	e := &EndpointSliceReconciler{Slices: reader, Pool: p}

	requests := RequestsForSlice(t.Context(), &slice)
	if !slices.Equal(requests, []reconcile.Request{{NamespacedName: fraud}}) || RequestsForSlice(t.Context(), &discoveryv1.EndpointSlice{}) != nil {
		t.Fatalf("requests %v", requests)
	}
	for range 2 {
		_, err := e.Reconcile(t.Context(), requests[0])
		must(t, err)
	}
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033"}) || len(notified()) != 1 {
		t.Errorf("addresses %v", got)
	}
	must(t, reader.Delete(t.Context(), &slice))
	_, err := e.Reconcile(t.Context(), requests[0])
	must(t, err)
	if got := addressList(p, "fraud"); len(got) != 0 || len(notified()) != 1 {
		t.Errorf("addresses %v of a deleted Service, want none", got)
	}

	e.Slices = interceptor.NewClient(reader, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no cache")
		},
	})
	if _, err := e.Reconcile(t.Context(), requests[0]); err == nil || !strings.Contains(err.Error(), "fraud/modelmesh-serving: no cache") {
		t.Errorf("error %v", err)
	}
}

// The name by which gRPC selects a proxy ends in .svc. The certificate of a pod contains <service>.<namespace>.
func TestDialTarget(t *testing.T) {
	pair := pairOf(t, "mesh.fraud")
	for name, tc := range map[string]struct {
		target  Target
		address string
	}{
		"a Service":        {Target{Service: "mesh", Port: 8033}, "kube:///mesh.fraud.svc:8033"},
		"with TLS":         {Target{Service: "mesh", Port: 8033, TLS: pair}, "kube:///mesh.fraud.svc:8033"},
		"a fixed endpoint": {Target{Service: "mesh", Port: 8033, Endpoint: "dns:///localhost:1"}, "dns:///localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := dial("fraud", tc.target)
			must(t, err)
			defer func() { must(t, c.conn.Close()) }()
			if c.dialTarget() != tc.address || c.conn.Target() != tc.address {
				t.Errorf("address %s, target %s; want %s", c.dialTarget(), c.conn.Target(), tc.address)
			}
			if got := c.serviceKey(); got != (types.NamespacedName{Namespace: "fraud", Name: "mesh"}) || c.port() != "8033" {
				t.Errorf("Service %s, port %s", got, c.port())
			}
			config, err := pair.tlsConfig(tc.target.authority("fraud"))
			if must(t, err); config.ServerName != "mesh.fraud" {
				t.Errorf("server name %s, want mesh.fraud", config.ServerName)
			}
		})
	}
}
