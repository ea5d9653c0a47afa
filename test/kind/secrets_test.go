package kind

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func noSecret(string) (map[string][]byte, error) { return nil, nil }

// allOptions returns options with which all objects are generated.
func allOptions() Options {
	return withOptions(func(o *Options) {
		o.BackendStore, o.ArtifactStorage, o.PostgresTLS, o.SeaweedFSTLS = Postgres, S3, true, true
	})
}

func generate(t *testing.T, o Options, known Known) map[string]client.Object {
	t.Helper()
	objects, err := Generate(o, known, noon)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]client.Object{}
	for _, object := range objects {
		if object.GetNamespace() != o.Namespace {
			t.Errorf("%s is in namespace %q, want %q", object.GetName(), object.GetNamespace(), o.Namespace)
		}
		byName[object.GetName()] = object
	}
	return byName
}

func dataOf(t *testing.T, objects map[string]client.Object, name string) map[string][]byte {
	t.Helper()
	secret, ok := objects[name].(*corev1.Secret)
	if !ok {
		t.Fatalf("no Secret %s", name)
	}
	return secret.Data
}

func TestPasswordsAreRandomAndKept(t *testing.T) {
	first := generate(t, allOptions(), noSecret)
	second := generate(t, allOptions(), noSecret)
	kept := generate(t, allOptions(), func(name string) (map[string][]byte, error) { return dataOf(t, first, name), nil })
	for secret, key := range map[string]string{databaseSecret: "POSTGRESQL_PASSWORD", storeSecret: secretKey} {
		password := string(dataOf(t, first, secret)[key])
		if len(password) < 20 || password == string(dataOf(t, second, secret)[key]) {
			t.Errorf("got %s of %s %q, want at least 20 random characters", key, secret, password)
		}
		if password != string(dataOf(t, kept, secret)[key]) {
			t.Errorf("the existing %s of %s has changed", key, secret)
		}
	}
	for _, name := range []string{uriSecret, weedSecret, databaseTLS, storeTLS} {
		for key, value := range dataOf(t, first, name) {
			if string(dataOf(t, kept, name)[key]) != string(value) {
				t.Errorf("%s of %s has changed", key, name)
			}
		}
	}
}

func TestOnlyRequestedSecretsAreGenerated(t *testing.T) {
	if generatedObjects := generate(t, Defaults(), noSecret); len(generatedObjects) > 0 {
		t.Errorf("got %v, want nothing", generatedObjects)
	}
	generatedObjects := generate(t, withOptions(func(o *Options) { o.RegistryStore = Postgres }), noSecret)
	if len(generatedObjects) != 2 || generatedObjects[databaseSecret] == nil || generatedObjects[uriSecret] == nil {
		t.Errorf("got %v, want %s and %s", generatedObjects, databaseSecret, uriSecret)
	}
}

func TestClientAndServerSecretsMatch(t *testing.T) {
	specialCharacters := func(name string) (map[string][]byte, error) {
		if name == databaseSecret {
			return map[string][]byte{"POSTGRESQL_PASSWORD": []byte("a/b@c:d %?#")}, nil
		}
		return nil, nil
	}
	generatedObjects := generate(t, allOptions(), specialCharacters)
	uri, err := url.Parse(string(dataOf(t, generatedObjects, uriSecret)["backend-store-uri"]))
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := uri.User.Password(); password != "a/b@c:d %?#" || uri.User.Username() != "mlflow" {
		t.Errorf("got user %s, want mlflow and the existing password", uri.User)
	}
	if uri.Scheme != "postgresql" || uri.Host != "postgres-service:5432" || uri.Path != "/mydatabase" || uri.Query().Get("sslmode") != "verify-full" {
		t.Errorf("got URI %s, want that of the database with sslmode=verify-full", uri.Redacted())
	}
	var weed identities
	if err := json.Unmarshal(dataOf(t, generatedObjects, weedSecret)["s3.json"], &weed); err != nil {
		t.Fatal(err)
	}
	store := dataOf(t, generatedObjects, storeSecret)
	if got := weed.Identities[0].Credentials[0]; got.AccessKey != string(store[accessKey]) || got.SecretKey != string(store[secretKey]) {
		t.Error("want the same credentials for SeaweedFS and its clients")
	}
	plain := generate(t, withOptions(func(o *Options) { o.BackendStore = Postgres }), noSecret)
	if text := string(dataOf(t, plain, uriSecret)["registry-store-uri"]); strings.Contains(text, "?") {
		t.Errorf("unexpected URI without TLS: %s", text)
	}
}

func TestCertificatesAreTrusted(t *testing.T) {
	generatedObjects := generate(t, allOptions(), noSecret)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(generatedObjects[bundleName].(*corev1.ConfigMap).Data["generated.crt"])) {
		t.Fatal("the bundle has no certificate")
	}
	for name, hosts := range map[string][]string{
		databaseTLS: {"postgres-service", "postgres-service.opendatahub.svc"}, storeTLS: {"minio-service", "minio-service.opendatahub"},
	} {
		data := dataOf(t, generatedObjects, name)
		if generatedObjects[name].(*corev1.Secret).Type != corev1.SecretTypeTLS || len(data["tls.key"]) == 0 {
			t.Errorf("%s is not a TLS Secret", name)
		}
		block, _ := pem.Decode(data["tls.crt"])
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range hosts {
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: noon}); err != nil {
				t.Errorf("%s for %s: %v", name, host, err)
			}
		}
	}
}

func TestUserCAs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte("a CA"), 0o600); err != nil {
		t.Fatal(err)
	}
	generatedObjects := generate(t, withOptions(func(o *Options) { o.CABundlePath = path }), noSecret)
	if data := generatedObjects[bundleName].(*corev1.ConfigMap).Data; len(data) != 1 || data["given.crt"] != "a CA" {
		t.Errorf("got data %v, want only given.crt", data)
	}
	if _, err := Generate(withOptions(func(o *Options) { o.CABundlePath = path + "x" }), noSecret, noon); err == nil || !strings.Contains(err.Error(), "CA_BUNDLE_PATH") {
		t.Errorf("got error %v for a missing file, want one containing CA_BUNDLE_PATH", err)
	}
	if generatedObjects := generate(t, withOptions(func(o *Options) { o.CABundleConfigMap = "own" }), noSecret); len(generatedObjects) > 0 {
		t.Errorf("generated %v, want nothing with a CA bundle of the user", generatedObjects)
	}
}

func TestUnreadableSecretIsNotReplaced(t *testing.T) {
	for _, broken := range []string{databaseSecret, storeSecret, databaseTLS, storeTLS} {
		_, err := Generate(allOptions(), func(name string) (map[string][]byte, error) {
			if name == broken {
				return nil, errors.New("unreachable")
			}
			return nil, nil
		}, noon)
		if err == nil || !strings.Contains(err.Error(), "unreachable") {
			t.Errorf("%s: got error %v, want one containing 'unreachable'", broken, err)
		}
	}
}
