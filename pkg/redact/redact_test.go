package redact

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

const word = "hunter2"

func TestTextRedacts(t *testing.T) {
	for name, text := range map[string]string{
		// Lines of Model Registry 0.2.22 with a password that has a space, a percent sign and a slash.
		"a malformed DSN":     `{{ALERT}} error connecting to datastore: failed to build DSN with TLS: failed to parse PostgreSQL URL DSN: parse "postgresql://registry:hunter2 %/@pg/models": net/url: invalid character " " in host name`,
		"an invalid escape":   `failed to parse as URL (parse "postgres://registry:hunter2 %/@pg/models": invalid URL escape "%/@")`,
		"a DSN with an at":    `cannot connect to postgresql://registry:hun@hunter2@pg:5432/models?sslmode=disable`,
		"SQLAlchemy":          `sqlalchemy.exc: mysql+pymysql://mlflow:hunter2@db/mlflow`,
		"MySQL in Go":         `dial registry:hunter2/x y@tcp(mysql:3306)/models: refused`,
		"a web address":       `GET https://user:hunter2@host/path: 401`,
		"a token in one":      `git clone https://hunter2@github.com/x/y`,
		"a query":             `https://host/x?user=a&password=hunter2&y=1`,
		"libpq":               `host=pg user=registry password=hunter2 dbname=models`,
		"libpq, quoted":       `host=pg password='a hunter2 b' dbname=models`,
		"an argument":         `--postgres-password=hunter2 --port=8080`,
		"an argument, spaced": `--db-password hunter2 --port 8080`,
		"the environment":     `AWS_SECRET_ACCESS_KEY=hunter2 AWS_REGION=eu`,
		"JSON":                `{"username":"a","password":"hunter2"}`,
		"JSON in JSON":        `{"msg":"body {\"client_secret\":\"hunter2\"}"}`,
		"YAML":                "user: a\npassword: hunter2\nhost: pg",
		"a header":            `Authorization: Bearer hunter2hunter2`,
		"basic":               `Authorization: Basic aHVudGVyMg==hunter2`,
		"a JWT":               `token eyJhbGciOiJSUzI1NiJ9.hunter2.c2ln is expired`,
		"a key":               "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
		"a key that was cut":  `-----BEGIN PRIVATE KEY-----\nMIIhunter2`,
		"Hugging Face":        `401 for hf_abcdefghijhunter2xyz`,
	} {
		got := Text(text)
		if strings.Contains(got, word) || strings.Contains(got, "aHVudGVyMg") {
			t.Errorf("%s: Text did not redact the secret: %s", name, got)
		}
		if again := Text(got); again != got {
			t.Errorf("%s: %q becomes %q, want %q", name, got, again, got)
		}
	}
}

func TestTextKeeps(t *testing.T) {
	for _, text := range []string{
		"", "ok", "0/1 replicas ready",
		`Deployment.apps "x" is invalid: spec.template.spec.serviceAccountName: Invalid value: "My Account": a lowercase RFC 1123 subdomain`,
		`Secret demo/db has no key password: create it`,
		`spec.postgres.passwordSecret.name: Required value`,
		`secrets "team-registry-kube-rbac-proxy" not found`,
		`http://host:8080/path was called by user@example.com`,
		`dial tcp 10.0.0.1:5432: connect: connection refused`,
		`failed to pull image "quay.io/o/image@sha256:0123456789abcdef"`,
		`postgresql://pg:5432/models does not answer`,
		`https://mlflow.example.com/mlflow`,
		`{"msg":"Issuing the webhook certificate","secret":"opendatahub/odh-platform-operator-webhook-cert"}`,
		`Error 1045 (28000): Access denied for user 'plain'@'127.0.0.1' (using password: YES)`,
		`FATAL: password authentication failed for user "registry"`,
		`-----BEGIN CERTIFICATE-----` + "\nMIIB\n-----END CERTIFICATE-----",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q becomes %q, want %q", text, got, text)
		}
	}
}

func resetRecorded(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		recorded.mu.Lock()
		defer recorded.mu.Unlock()
		recorded.bySecret, recorded.order, recorded.byPrefix = nil, nil, nil
	})
}

// Values of Secrets are redacted everywhere, and public values are not.
func TestTextRedactsValuesOfSecrets(t *testing.T) {
	resetRecorded(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{
		"password": []byte("zaphod-1\n"), "user": []byte("registry"), "POSTGRES_DB": []byte("models"), "other": []byte("planted-4f9a"), "host": []byte("postgres"),
		"uri": []byte("postgresql://a:tricia%20m@pg/x"), "tls.key": []byte("-----BEGIN X-----\nMIIEvgIBADANBgkqhkiG9w0B\n-----END X-----"),
		"note": []byte(`with "quotes" & 1`),
	}}
	RecordSecret(secret)
	for _, leak := range []string{
		"I am zaphod-1.", "it was planted-4f9a", "tricia m", "tricia%20m", "MIIEvgIBADANBgkqhkiG9w0B", "emFwaG9kLTE=", `{"msg":"with \"quotes\" \u0026 1"}`,
	} {
		if got := Text(leak); got == leak || !strings.Contains(got, Mark) {
			t.Errorf("%q becomes %q", leak, got)
		}
	}
	if text := "registry keeps models in Deployment demo-postgres"; Text(text) != text {
		t.Errorf("a message without secrets was redacted: %q", Text(text))
	}
	secret.Data = map[string][]byte{"password": []byte("trillian")}
	RecordSecret(secret)
	if got := Text("zaphod-1 and trillian"); got != "zaphod-1 and "+Mark {
		t.Errorf("after a rotation: %q, want %q", got, "zaphod-1 and "+Mark)
	}
}

// In a Secret with a certificate only the private key is redacted.
func TestTextKeepsCertificates(t *testing.T) {
	resetRecorded(t)
	certificate := "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUX1\nbm9uZQ4kCjAIBgNVBAMMAWE=\n-----END CERTIFICATE-----\n"
	key := "-----BEGIN EC KEY-----\nMHcCAQEEIIGrDeepThought42\n-----END EC KEY-----\n"
	RecordSecret(&corev1.Secret{Data: map[string][]byte{"tls.crt": []byte(certificate + certificate), "tls.key": []byte(key), "all.pem": []byte(certificate + key)}})
	if got := Text("MIIBszCCAVmgAwIBAgIUX1 and MHcCAQEEIIGrDeepThought42"); strings.Contains(got, "DeepThought") {
		t.Errorf("the key is in %q", got)
	}
	RecordSecret(&corev1.Secret{Data: map[string][]byte{"tls.crt": []byte(certificate + certificate)}})
	if got := Text("MIIBszCCAVmgAwIBAgIUX1"); got != "MIIBszCCAVmgAwIBAgIUX1" {
		t.Errorf("a certificate becomes %q, want %q", got, "MIIBszCCAVmgAwIBAgIUX1")
	}
}

// The longest value with a prefix is redacted. A value of two Secrets is stored until both are deleted. The oldest Secrets are evicted.
func TestTextWithManySecrets(t *testing.T) {
	resetRecorded(t)
	secret := func(name, password string) {
		RecordSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"password": []byte(password)}})
	}
	secret("short", "zaphod-1")
	secret("long", "zaphod-1-beeblebrox")
	secret("too", "zaphod-1")
	if got := Text("zaphod-1-beeblebrox, zaphod-1-bee"); got != Mark+", "+Mark+"-bee" {
		t.Errorf("Text: %q, want %q", got, Mark+", "+Mark+"-bee")
	}
	secret("short", "marvin-42")
	if got := Text("zaphod-1, marvin-42"); got != Mark+", "+Mark {
		t.Errorf("Text with a short and a long secret: %q, want %q", got, Mark+", "+Mark)
	}
	secret("too", "trillian")
	if got := Text("zaphod-1, zaphod-1-beeblebrox"); got != "zaphod-1, "+Mark {
		t.Errorf("when none holds it: %q, want %q", got, "zaphod-1, "+Mark)
	}
	for i := range maxSecrets {
		secret(strconv.Itoa(i), fmt.Sprintf("password-%d", i))
	}
	if got := Text(fmt.Sprintf("zaphod-1-beeblebrox, password-0, password-%d.", maxSecrets-1)); got != "zaphod-1-beeblebrox, "+Mark+", "+Mark+"." {
		t.Errorf("Text: %q, want %q", got, "zaphod-1-beeblebrox, "+Mark+", "+Mark+".")
	}
	if len(recorded.bySecret) != maxSecrets || len(recorded.order) != maxSecrets {
		t.Errorf("%d Secrets are remembered", len(recorded.bySecret))
	}
}

// Secrets that any client reads are recorded.
func TestRecordSecrets(t *testing.T) {
	resetRecorded(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"ns","name":"s"},"data":{"password":"bWFydmluLTQy"}}`)
	}))
	defer api.Close()
	config := &rest.Config{Host: api.URL}
	RecordSecrets(config)
	got, err := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("ns").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(got.Data["password"]) != "marvin-42" {
		t.Fatalf("got Secret %v, error %v, want its password unredacted", got, err)
	}
	var log bytes.Buffer
	if n, err := Writer(&log).Write([]byte("here is marvin-42\n")); err != nil || n != 18 || log.String() != "here is "+Mark+"\n" {
		t.Errorf("Write returned %d and %v, and the log has %q", n, err, log.String())
	}
	recorded := events.NewFakeRecorder(1)
	Recorder(recorded).Eventf(got, nil, "Warning", "Why", "Act", "because of %s", "marvin-42")
	if e := <-recorded.Events; e != "Warning Why because of "+Mark {
		t.Errorf("event %q, want %q", e, "Warning Why because of "+Mark)
	}
}

// BenchmarkRecordSecret measures the cost of a Secret and a message after a restart. It must not depend on the number of Secrets.
func BenchmarkRecordSecret(b *testing.B) {
	key := make([]byte, 1200)
	secret := func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		for at := range key {
			key[at] = byte(rng.Uint32())
		}
		RecordSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}, Data: map[string][]byte{
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		}})
	}
	for _, before := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(before), func(b *testing.B) {
			for i := range before {
				secret(i)
			}
			for i := 0; b.Loop(); i++ {
				secret(before + i)
				Text("Deployment is unavailable: pod demo-6b2eb0b8bf-x7k2p has unready containers [rest]")
			}
		})
	}
}
