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
		"only gRPC": {Target{Service: "mesh", Port: 8033}, "grpc://mesh.fraud:8033", ""},
		"with REST": {Target{Service: "mesh", Port: 9000, RESTPort: 8008}, "grpc://mesh.fraud:9000", "http://mesh.fraud:8008"},
		"with TLS":  {Target{Service: "mesh", Port: 8033, RESTPort: 8008, TLS: &KeyPair{}}, "grpc://mesh.fraud:8033", "https://mesh.fraud:8008"},
	} {
		if grpc, http := tc.target.URLs("fraud"); grpc != tc.grpc || http != tc.http {
			t.Errorf("%s: URLs %q and %q, want %q and %q", name, grpc, http, tc.grpc, tc.http)
		}
	}
}

func TestParseKeyPair(t *testing.T) {
	cert, key := certificate(t, "mesh.fraud")
	_, otherKey := certificate(t, "mesh.fraud")
	for name, tc := range map[string]struct {
		data map[string][]byte
		err  string
	}{
		"key pair":           {map[string][]byte{"tls.crt": cert, "tls.key": key}, ""},
		"key pair and CA":    {map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": cert}, ""},
		"empty Secret":       {nil, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"no key":             {map[string][]byte{"tls.crt": cert}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"empty key":          {map[string][]byte{"tls.crt": cert, "tls.key": {}}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"no certificate":     {map[string][]byte{"tls.key": key}, "TLS secret 'mesh-tls' missing tls.crt and/or tls.key"},
		"not PEM":            {map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("x")}, "could not load client key pair: tls: failed to find any PEM data"},
		"key does not match": {map[string][]byte{"tls.crt": cert, "tls.key": otherKey}, "could not load client key pair: "},
		"invalid CA":         {map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": []byte("x")}, "failed to append ca certs: put a PEM certificate into ca.crt"},
	} {
		pair, err := ParseKeyPair("mesh-tls", tc.data)
		if tc.err == "" && (err != nil || string(pair.Certificate) != string(cert)) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
	}
}

func TestTLSTrustsCAOfSecret(t *testing.T) {
	cert, key := certificate(t, "mesh.fraud")
	ca, _ := certificate(t, "ca")
	pair := &KeyPair{Certificate: cert, Key: key, CA: ca}
	withCA, err := pair.tlsConfig("mesh.fraud")
	must(t, err)
	pair.CA = nil
	withoutCA, err := pair.tlsConfig("mesh.fraud")
	must(t, err)
	if withCA.RootCAs.Equal(withoutCA.RootCAs) || withCA.ServerName != "mesh.fraud" || len(withCA.Certificates) != 1 || withCA.InsecureSkipVerify {
		t.Errorf("TLS %+v, want the client certificate, the server name and the CA", withCA)
	}
}

func TestEndpointSliceReconciler(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, discoveryv1.AddToScheme(scheme))
	slice := endpointSliceOf(8033, "1.2.3.4")[0]
	slice.Name, slice.Namespace, slice.Labels = "mesh-x1", "fraud", map[string]string{discoveryv1.LabelServiceName: fraud.Name}
	otherSlice := endpointSliceOf(8033, "5.6.7.8")[0]
	otherSlice.Name, otherSlice.Namespace, otherSlice.Labels = "other-x1", "fraud", map[string]string{discoveryv1.LabelServiceName: "other"}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&slice, &otherSlice).Build()
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
		t.Errorf("addresses %v, want 1.2.3.4:8033 and one notification", got)
	}
	must(t, reader.Delete(t.Context(), &slice))
	_, err := e.Reconcile(t.Context(), requests[0])
	must(t, err)
	if got := addressList(p, "fraud"); len(got) != 0 || len(notified()) != 1 {
		t.Errorf("addresses %v of a deleted Service, want none and one notification", got)
	}

	e.Slices = interceptor.NewClient(reader, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("cache is unavailable")
		},
	})
	if _, err := e.Reconcile(t.Context(), requests[0]); err == nil || !strings.Contains(err.Error(), "fraud/modelmesh-serving: cache is unavailable") {
		t.Errorf("error %v, want that of the cache", err)
	}
}

// The host in the dial target of a Service, which decides on the use of a proxy, ends in .svc. The name in the certificate does not.
func TestDialTarget(t *testing.T) {
	pair := newKeyPair(t, "mesh.fraud")
	for name, tc := range map[string]struct {
		target     Target
		dialTarget string
	}{
		"Service":        {Target{Service: "mesh", Port: 8033}, "kube:///mesh.fraud.svc:8033"},
		"with TLS":       {Target{Service: "mesh", Port: 8033, TLS: pair}, "kube:///mesh.fraud.svc:8033"},
		"fixed endpoint": {Target{Service: "mesh", Port: 8033, Endpoint: "dns:///localhost:1"}, "dns:///localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := dial("fraud", tc.target)
			must(t, err)
			defer func() { must(t, c.conn.Close()) }()
			if c.dialTarget() != tc.dialTarget || c.conn.Target() != tc.dialTarget {
				t.Errorf("dial target %s, target of the connection %s, want %s", c.dialTarget(), c.conn.Target(), tc.dialTarget)
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
