package modelregistry

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

func TestSpecDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		stored, used *v1beta1.ModelRegistry
		want         string
	}{
		"equal": {registry(), registry(), "{}"},
		"an image": {registry(func(s *v1beta1.ModelRegistrySpec) { s.Rest.Image = "" }), registry(),
			`{"rest":{"image":"quay.io/example/model-registry:v1"}}`},
		"a proxy": {registry(func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} }),
			registry(func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{Domain: "apps.example.com"} }),
			`{"kubeRBACProxy":{"domain":"apps.example.com"}}`},
		"a generated database": {
			registry(func(s *v1beta1.ModelRegistrySpec) {
				s.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true), SSLMode: "disable"}
			}),
			registry(generated),
			`{"postgres":{"database":"model_registry","generateDeployment":null,"host":"team-a-postgres","image":"quay.io/example/postgresql:16",` +
				`"passwordSecret":{"key":"password","name":"team-a-postgres-credentials"},"port":5432,"sslMode":null,"username":"modelregistry"}}`},
	} {
		got, err := specDefaults(&c.stored.Spec, &c.used.Spec)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, err)
		}
	}
}

// TestMergePatchLeadsFromOneToTheOther for any two objects without nulls, which a merge patch cannot write.
func TestMergePatchLeadsFromOneToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawObject(t, 3), drawObject(t, 3)
		patch := mergePatch(before, after)
		if got := patched(copied(t, before), patch); cmp.Diff(after, got) != "" {
			t.Errorf("patch %v:\n%s", patch, cmp.Diff(after, got))
		}
		if again := mergePatch(after, after); len(again) != 0 {
			t.Errorf("equal objects differ in %v", again)
		}
	})
}

func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "keys") {
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			object[key] = drawObject(t, depth-1)
		case kind == 1:
			object[key] = []any{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "element")}
		default:
			object[key] = rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "value")
		}
	}
	return object
}

func copied(t *rapid.T, object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]any{}
	if err := json.Unmarshal(text, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

// [W2] What the pods read when they start, and nothing else.
func TestReferences(t *testing.T) {
	of := func(kind reference.Kind, name string, keys ...string) reference.Reference {
		return reference.Reference{Kind: kind, Name: name, Keys: keys}
	}
	for name, c := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []reference.Reference
	}{
		"a password": {registry(), []reference.Reference{of(reference.Secret, "pg-login", "password")}},
		"PostgreSQL with TLS": {registry(postgresTLS), []reference.Reference{
			of(reference.Secret, "pg-client", "passphrase", "tls.crt", "tls.key"), of(reference.Secret, "pg-login", "password"), of(reference.Secret, "pg-root", "ca.crt"),
		}},
		"MySQL with TLS": {registry(mysql, mysqlTLS), []reference.Reference{
			of(reference.Secret, "my-client", "tls.crt", "tls.key"), of(reference.Secret, "my-login", "password"), of(reference.Secret, "my-root", "ca.crt"), of(reference.Secret, "my-roots"),
		}},
		"what wins is read": {registry(mysql, mysqlTLS, mysqlConfigMaps), []reference.Reference{
			of(reference.ConfigMap, "my-root-map", "ca.pem"), of(reference.ConfigMap, "my-roots-map"),
			of(reference.Secret, "my-client", "tls.crt", "tls.key"), of(reference.Secret, "my-login", "password"),
		}},
		"a proxy": {registry(proxied), []reference.Reference{of(reference.Secret, "pg-login", "password")}},
	} {
		if diff := cmp.Diff(c.want, references(c.m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []reference.Reference
	}{
		"none":              {registry(), nil},
		"of the platform":   {registry(proxied), []reference.Reference{of(reference.Secret, "team-a-kube-rbac-proxy", "tls.crt", "tls.key")}},
		"two of the user's": {registry(proxied, customised), []reference.Reference{of(reference.Secret, "own-cert", "cert.pem"), of(reference.Secret, "own-key", "key.pem")}},
	} {
		if diff := cmp.Diff(c.want, servingReferences(c.m)); diff != "" {
			t.Errorf("certificate, %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]reference.Reference{of(reference.Secret, "team-a-postgres-credentials", "password", "username")}, databaseReferences(registry())); diff != "" {
		t.Errorf("database (-want +got):\n%s", diff)
	}
}
