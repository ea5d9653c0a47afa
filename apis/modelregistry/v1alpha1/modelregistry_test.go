package v1alpha1

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const legacyManifest = `
apiVersion: modelregistry.opendatahub.io/v1alpha1
kind: ModelRegistry
metadata: {name: legacy}
spec:
  rest: {port: 8080}
  grpc: {port: 9090}
  postgres: {host: db, database: metadata, username: me}
  istio:
    authProvider: opendatahub-auth-provider
    gateway: {domain: example.com, rest: {port: 443, tls: {mode: SIMPLE}, gatewayRoute: enabled}, grpc: {}}
`

func TestLegacyManifestsAreAccepted(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(legacyManifest), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := decoded.(*ModelRegistry)
	if !ok || *kind != GroupVersion.WithKind(Kind) || *m.Spec.Istio.Gateway.REST.Port != 443 {
		t.Errorf("got %v %+v, want a v1alpha1 ModelRegistry with port 443 of the gateway", kind, decoded)
	}
	if !s.Recognizes(GroupVersion.WithKind("ModelRegistryList")) {
		t.Error("want the list type registered in the scheme")
	}
}

// Fields that v1alpha1 requires, such as grpc and postgres.database, are encoded even when they are empty.
func TestRequiredFieldsAreEncodedWhenEmpty(t *testing.T) {
	m := &ModelRegistry{Spec: ModelRegistrySpec{Postgres: &PostgresConfig{}, Istio: &IstioConfig{Gateway: &GatewayConfig{}}}}
	data, err := json.Marshal(m)
	want := `{"metadata":{},"spec":{"rest":{},"grpc":{},"postgres":{"database":""},"istio":{"gateway":{"rest":{},"grpc":{}}}}}`
	if err != nil || string(data) != want {
		t.Errorf("got  %s\nwant %s\nerror %v", data, want, err)
	}
}
