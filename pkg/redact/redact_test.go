package redact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

const password = "hunter2"

func TestTextRedacts(t *testing.T) {
	for name, text := range map[string]string{
		// Lines of Model Registry 0.2.22 with a password that has a space, a percent sign and a slash.
		"malformed DSN":                       `{{ALERT}} error connecting to datastore: failed to build DSN with TLS: failed to parse PostgreSQL URL DSN: parse "postgresql://registry:hunter2 %/@pg/models": net/url: invalid character " " in host name`,
		"DSN with an invalid escape":          `failed to parse as URL (parse "postgres://registry:hunter2 %/@pg/models": invalid URL escape "%/@")`,
		"DSN with an at sign in the password": `cannot connect to postgresql://registry:hun@hunter2@pg:5432/models?sslmode=disable`,
		"SQLAlchemy URL":                      `sqlalchemy.exc: mysql+pymysql://mlflow:hunter2@db/mlflow`,
		"DSN of MySQL in Go":                  `dial registry:hunter2/x y@tcp(mysql:3306)/models: refused`,
		"HTTP URL":                            `GET https://user:hunter2@host/path: 401`,
		"HTTP URL with a token":               `git clone https://hunter2@github.com/x/y`,
		"query of an HTTP URL":                `https://host/x?user=a&password=hunter2&y=1`,
		"libpq DSN":                           `host=pg user=registry password=hunter2 dbname=models`,
		"quoted libpq DSN":                    `host=pg password='a hunter2 b' dbname=models`,
		"flag with =":                         `--postgres-password=hunter2 --port=8080`,
		"flag with a space":                   `--db-password hunter2 --port 8080`,
		"environment variable":                `AWS_SECRET_ACCESS_KEY=hunter2 AWS_REGION=eu`,
		"JSON":                                `{"username":"a","password":"hunter2"}`,
		"JSON in JSON":                        `{"msg":"body {\"client_secret\":\"hunter2\"}"}`,
		"YAML":                                "user: a\npassword: hunter2\nhost: pg",
		"bearer token":                        `Authorization: Bearer hunter2hunter2`,
		"basic authentication":                `Authorization: Basic aHVudGVyMg==hunter2`,
		"JWT":                                 `token eyJhbGciOiJSUzI1NiJ9.hunter2.c2ln is expired`,
		"private key":                         "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
		"truncated private key":               `-----BEGIN PRIVATE KEY-----\nMIIhunter2`,
		"Hugging Face token":                  `401 for hf_abcdefghijhunter2xyz`,
		"OpenShift token":                     `401 for sha256~abcdefghijklmhunter2xyz`,
		"GitHub token":                        `401 for ghs_abcdefghijhunter2xyz`,
		"fine-grained GitHub token":           `401 for github_pat_abcdefghijhunter2xyz`,
		"GitLab token":                        `401 for glpat-abcdefghijhunter2xyz`,
		"Slack token":                         `401 for xoxb-abcdefghijhunter2xyz`,
		"OpenAI token":                        `401 for sk-abcdefghijklmhunter2xyz`,
	} {
		got := Text(text)
		if strings.Contains(got, password) || strings.Contains(got, "aHVudGVyMg") {
			t.Errorf("%s: got %s, want the credential redacted", name, got)
		}
		if again := Text(got); again != got {
			t.Errorf("%s: got %q from a second call, want %q", name, again, got)
		}
	}
}

func TestTextRedactsBareTokens(t *testing.T) {
	for _, token := range []string{"AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"} {
		if got := Text(token); got != Mark {
			t.Errorf("got %q, want %q", got, Mark)
		}
	}
}

// A name with a credential as value is recognized in a setting, in JSON and as the field of an object.
func TestSensitiveNames(t *testing.T) {
	for _, name := range []string{
		"password", "dbPasswd", "passphrase", "pwd", "token", "credentials", "apiKey", "api-key", "access-key", "aws_access_key_id", "accountKey", "private-key", "signature", "client.secret", "clientSecret",
	} {
		for _, text := range []string{name + "=" + password, `{"` + name + `":"` + password + `"}`} {
			if got := Text(text); strings.Contains(got, password) {
				t.Errorf("got %s, want the credential redacted", got)
			}
		}
		object := map[string]any{name: password}
		if (Values{}).Object(object); object[name] != Mark {
			t.Errorf("field %s: got %v, want %q", name, object[name], Mark)
		}
	}
}

func TestTextWithoutCredentialsIsUnchanged(t *testing.T) {
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
		`{"secretName":"mlflow-tls","signatureAlgorithm":"RSA","passwordSecret":{"name":"db","key":"password"}}`,
		`Error 1045 (28000): Access denied for user 'plain'@'127.0.0.1' (using password: YES)`,
		`FATAL: password authentication failed for user "registry"`,
		`-----BEGIN CERTIFICATE-----` + "\nMIIB\n-----END CERTIFICATE-----",
	} {
		if got := Text(text); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func TestValuesText(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{
		"password": []byte("zaphod-1\n"), "user": []byte("registry"), "POSTGRES_DB": []byte("models"), "other": []byte("planted-4f9a"), "host": []byte("postgres"),
		"uri": []byte("postgresql://a:tricia%20m@pg/x"), "tls.key": []byte("-----BEGIN X-----\nMIIEvgIBADANBgkqhkiG9w0B\n-----END X-----"),
		"note": []byte(`with "quotes" & 1`),
	}}
	values := ValuesOf(secret)
	for _, text := range []string{
		"I am zaphod-1.", "it was planted-4f9a", "tricia m", "tricia%20m", "MIIEvgIBADANBgkqhkiG9w0B", "emFwaG9kLTE=", `{"msg":"with \"quotes\" \u0026 1"}`,
	} {
		if got := values.Text(text); got == text || !strings.Contains(got, Mark) {
			t.Errorf("got %q, want the value of the Secret in %q redacted", got, text)
		}
		if got := Text(text); got != text {
			t.Errorf("without the Secret: got %q, want %q", got, text)
		}
	}
	for _, text := range []string{"registry keeps models in Deployment demo-postgres", ""} {
		if got := values.Text(text); got != text {
			t.Errorf("text without values: got %q, want %q", got, text)
		}
	}
	if got := values.Text("zaphod-1 at postgresql://u:" + password + "@db/x"); got != Mark+" at postgresql://"+Mark+"@db/x" {
		t.Errorf("value and URL: got %q, want both redacted", got)
	}
}

func TestValuesKeepCertificates(t *testing.T) {
	certificate := "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUX1\nbm9uZQ4kCjAIBgNVBAMMAWE=\n-----END CERTIFICATE-----\n"
	key := "-----BEGIN EC KEY-----\nMHcCAQEEIIGrDeepThought42\n-----END EC KEY-----\n"
	values := ValuesOf(&corev1.Secret{Data: map[string][]byte{"tls.crt": []byte(certificate + certificate), "tls.key": []byte(key), "all.pem": []byte(certificate + key)}})
	if got := values.Text("MIIBszCCAVmgAwIBAgIUX1 and MHcCAQEEIIGrDeepThought42"); strings.Contains(got, "DeepThought") {
		t.Errorf("got %q, want the private key redacted", got)
	}
	values = ValuesOf(&corev1.Secret{Data: map[string][]byte{"tls.crt": []byte(certificate + certificate)}})
	if got := values.Text("MIIBszCCAVmgAwIBAgIUX1"); got != "MIIBszCCAVmgAwIBAgIUX1" {
		t.Errorf("certificate: got %q, want %q", got, "MIIBszCCAVmgAwIBAgIUX1")
	}
}

func TestValuesPreferLongestMatch(t *testing.T) {
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"password": []byte(password)}}
	}
	values := ValuesOf(secret("zaphod-1"), secret("zaphod-1-beeblebrox"), secret("zaphod-1"))
	if got := values.Text("zaphod-1-beeblebrox, zaphod-1-bee"); got != Mark+", "+Mark+"-bee" {
		t.Errorf("got %q, want %q", got, Mark+", "+Mark+"-bee")
	}
}

// A Secret with many keys is redacted completely.
func TestValuesOfManyKeys(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("zaphod-1")}}
	for i := range 1000 {
		secret.Data[fmt.Sprintf("key-%d", i)] = fmt.Appendf(nil, "password-%d", i)
	}
	if got := ValuesOf(secret).Text("zaphod-1, password-999"); got != Mark+", "+Mark {
		t.Errorf("got %q, want %q", got, Mark+", "+Mark)
	}
}

func TestWriterAndRecorderRedact(t *testing.T) {
	var log bytes.Buffer
	if n, err := Writer(&log).Write([]byte("password=marvin-42\n")); err != nil || n != 19 || log.String() != "password="+Mark+"\n" {
		t.Errorf("Write: got %d, error %v, log %q", n, err, log.String())
	}
	recorded := events.NewFakeRecorder(1)
	Recorder(recorded).Eventf(&corev1.Secret{}, nil, "Warning", "Failed", "Connect", "failed with password=%s", "marvin-42")
	if e := <-recorded.Events; e != "Warning Failed failed with password="+Mark {
		t.Errorf("got event %q, want %q", e, "Warning Failed failed with password="+Mark)
	}
}
