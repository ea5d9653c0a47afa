package modelregistry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func TestSpecDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		stored, effective *v1beta1.ModelRegistry
		want              string
	}{
		"equal": {registrytest.Registry(), registrytest.Registry(), "{}"},
		"default image": {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.Rest.Image = "" }), registrytest.Registry(),
			`{"rest":{"image":"quay.io/example/model-registry:v1"}}`},
		"default domain": {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} }),
			registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{Domain: "apps.example.com"} }),
			`{"kubeRBACProxy":{"domain":"apps.example.com"}}`},
		"generated database": {
			registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) {
				s.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true), SSLMode: "disable"}
			}),
			registrytest.Registry(registrytest.UseGeneratedDatabase),
			`{"postgres":{"database":"model_registry","generateDeployment":null,"host":"team-a-postgres","image":"quay.io/example/postgresql:16",` +
				`"passwordSecret":{"key":"password","name":"team-a-postgres-credentials"},"port":5432,"sslMode":null,"username":"modelregistry"}}`},
	} {
		if got := resources.SpecDefaults(&test.stored.Spec, &test.effective.Spec); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// [W2] References of server and database are the objects that they read only when they start, without the certificate of the proxy.
func TestReferences(t *testing.T) {
	of := func(kind reference.Kind, name string, keys ...string) reference.Reference {
		return reference.Reference{Kind: kind, Name: name, Keys: keys}
	}
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []reference.Reference
	}{
		"password": {registrytest.Registry(), []reference.Reference{of(reference.Secret, "pg-login", "password")}},
		"PostgreSQL with TLS": {registrytest.Registry(registrytest.PostgresTLS), []reference.Reference{
			of(reference.Secret, "pg-client", "passphrase", "tls.crt", "tls.key"), of(reference.Secret, "pg-login", "password"), of(reference.Secret, "pg-root", "ca.crt"),
		}},
		"MySQL with TLS": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS), []reference.Reference{
			of(reference.Secret, "my-client", "tls.crt", "tls.key"), of(reference.Secret, "my-login", "password"), of(reference.Secret, "my-root", "ca.crt"), of(reference.Secret, "my-roots"),
		}},
		"ConfigMaps have precedence": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS, registrytest.MySQLConfigMaps), []reference.Reference{
			of(reference.ConfigMap, "my-root-map", "ca.pem"), of(reference.ConfigMap, "my-roots-map"),
			of(reference.Secret, "my-client", "tls.crt", "tls.key"), of(reference.Secret, "my-login", "password"),
		}},
		"proxy": {registrytest.Registry(registrytest.AddProxy), []reference.Reference{of(reference.Secret, "pg-login", "password")}},
	} {
		if diff := cmp.Diff(test.want, reference.Merge(serverReferences(test.m))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []reference.Reference
	}{
		"no proxy":                    {registrytest.Registry(), nil},
		"certificate of the platform": {registrytest.Registry(registrytest.AddProxy), []reference.Reference{of(reference.Secret, "team-a-kube-rbac-proxy", "tls.crt", "tls.key")}},
		"certificate of the user":     {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), []reference.Reference{of(reference.Secret, "own-cert", "cert.pem"), of(reference.Secret, "own-key", "key.pem")}},
	} {
		if diff := cmp.Diff(test.want, certificateReferences(test.m)); diff != "" {
			t.Errorf("certificate, %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]reference.Reference{of(reference.Secret, "team-a-postgres-credentials", "password", "username")}, databaseReferences(registrytest.Registry())); diff != "" {
		t.Errorf("database (-want +got):\n%s", diff)
	}
}
