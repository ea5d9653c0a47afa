//go:build operands

package operands

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

const (
	registryName = "team-a"
	models       = "/api/model_registry/v1alpha3/registered_models"
	// verifyVariable is the variable that makes the server verify the host name of the database, see TestVerifyFull.
	verifyVariable = "MR_EMBEDMD_DATABASE_SSL_VERIFY_SERVER_CERT"
)

// renderedRegistry contains the rendered objects of a registry, and the data of its Secrets and ConfigMaps.
type renderedRegistry struct {
	t       *testing.T
	objects []*unstructured.Unstructured
	content map[string]map[string]string
}

// renderRegistry renders a registry as `manager render` does for a cluster without optional APIs.
func renderRegistry(t *testing.T, namespace string, spec v1beta1.ModelRegistrySpec) *renderedRegistry {
	t.Helper()
	m := &v1beta1.ModelRegistry{Spec: spec}
	m.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.Kind))
	m.Name, m.Namespace, m.UID = registryName, namespace, "7f0c2f5e-0000-4000-8000-000000000002"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	settings := modelregistry.Settings{ModelRegistry: config.ModelRegistry{
		Images: config.RegistryImages{REST: "quay.io/example/model-registry:v1", KubeRBACProxy: "quay.io/example/proxy:v1", Postgres: "quay.io/example/postgres:16"},
	}}
	objects, err := modelregistry.Render(settings, capability.NewSet(), &unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	r := &renderedRegistry{t: t, objects: objects, content: map[string]map[string]string{}}
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" {
			data, _, err := unstructured.NestedStringMap(o.Object, "data")
			if err != nil {
				t.Fatal(err)
			}
			r.content["ConfigMap/"+o.GetName()] = data
		}
	}
	return r
}

// pod returns the pod of the server.
func (r *renderedRegistry) pod() corev1.PodSpec {
	r.t.Helper()
	var d appsv1.Deployment
	rendered{r.t, r.objects}.read("Deployment", registryName, &d)
	return d.Spec.Template.Spec
}

// run starts the server of a registry.
func (r *renderedRegistry) run(omitted ...string) (*registryPod, *containerProcess) {
	r.t.Helper()
	p := newRegistryPod(r.t, r.pod(), r.content)
	return p, p.start(&p.spec.Containers[0], omitted...)
}

// postgresRegistry returns a registry with a database in the PostgreSQL of the tests, which accepts passwords only over TLS.
func postgresRegistry(name string) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
	spec := v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{
		Host: "localhost", Port: new(int32(database.Port)), Username: "mlflow", Database: name, SSLMode: "verify-full",
		PasswordSecret:              &v1beta1.SecretKeyValue{Name: "login", Key: "password"},
		SSLRootCertificateConfigMap: &v1beta1.ConfigMapKeyValue{Name: "roots", Key: "ca.crt"},
	}}
	return spec, map[string]map[string]string{
		// [S3] The kubelet expands the password in a URL, so the Secret contains it URL-encoded.
		"Secret/login": {"password": escaper.Replace(machine.Password)}, "ConfigMap/roots": {"ca.crt": string(authority.CA)},
	}
}

var escaper = strings.NewReplacer("%", "%25", " ", "%20", "/", "%2F", "@", "%40")

// mariaDBRegistry returns a registry with a database in MariaDB.
func mariaDBRegistry(m *mariaServer, user, name string) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
	spec := v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{
		Host: "localhost", Port: new(int32(m.port)), Username: user, Database: name, PasswordSecret: &v1beta1.SecretKeyValue{Name: "login", Key: "password"},
	}}
	return spec, map[string]map[string]string{"Secret/login": {"password": mariaPassword}, "ConfigMap/roots": {"ca.crt": string(authority.CA)}}
}

// TestRegistry starts the server of a registry, with and without TLS to its database, and uses its API.
func TestRegistry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(*testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string){
		"postgres-verify-full": func(t *testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
			must(t, database.Create(t.Context(), "registry"))
			return postgresRegistry("registry")
		},
		"mariadb-with-ca": func(t *testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
			m, err := sharedMariaDB()
			must(t, err)
			spec, content := mariaDBRegistry(m, "registry", "secured")
			spec.MySQL.SSLRootCertificateConfigMap = &v1beta1.ConfigMapKeyValue{Name: "roots", Key: "ca.crt"}
			spec.MySQL.VerifyServerCert = new(true)
			return spec, content
		},
		"mariadb-without-tls": func(t *testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
			m, err := sharedMariaDB()
			must(t, err)
			return mariaDBRegistry(m, "plain", "opened")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, content := c(t)
			r := renderRegistry(t, name, spec)
			maps.Copy(r.content, content)
			p, server := r.run()
			if len(p.spec.Containers) != 1 || *p.spec.AutomountServiceAccountToken {
				t.Fatalf("%d containers and a token: %t, want 1 without a token", len(p.spec.Containers), *p.spec.AutomountServiceAccountToken)
			}
			p.waitReady(&p.spec.Containers[0], server)
			report.add("registry, "+name+", server", "ready")
			checkRegistry(t, name, p, server)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkRegistry stores a model and reads it.
func checkRegistry(t *testing.T, name string, p *registryPod, server *containerProcess) {
	t.Helper()
	expect := func(want int, method, path, body string) []byte {
		t.Helper()
		status, response, err := p.request(method, fmt.Sprintf("http://localhost:%d%s%s", p.rest, models, path), body)
		if err != nil || status != want {
			t.Fatalf("%s %s: %d %s %v, want %d\n%s", method, path, status, response, err, want, server.read())
		}
		report.add(fmt.Sprintf("registry, %s, %s %s", name, method, models+path), fmt.Sprint(want))
		return []byte(response)
	}
	var stored struct{ ID, Name, Description string }
	must(t, json.Unmarshal(expect(http.StatusCreated, http.MethodPost, "", `{"name": "credit-risk", "description": "scores", "customProperties": {}}`), &stored))
	must(t, json.Unmarshal(expect(http.StatusOK, http.MethodGet, "/"+stored.ID, ""), &stored))
	if stored.Name != "credit-risk" || stored.Description != "scores" {
		t.Errorf("got stored model %+v, want credit-risk", stored)
	}
	if strings.Contains(server.read(), "hunter2") {
		t.Error("the log contains a password")
	}
}

// TestVerifyFull expects that the variable enables the verification of the host name: without it, a TLS file makes the server use sslmode
// require in place of verify-full. The certificate of the database is only for localhost.
func TestVerifyFull(t *testing.T) {
	t.Parallel()
	must(t, database.Create(t.Context(), "verified"))
	spec, content := postgresRegistry("verified")
	spec.Postgres.Host = "127.0.0.1"
	render := func() *renderedRegistry {
		r := renderRegistry(t, "verify-full", spec)
		maps.Copy(r.content, content)
		return r
	}
	_, verifying := render().run()
	NewWithT(t).Eventually(verifying.read, startExpiry, pollInterval).Should(MatchRegexp(`x509: .*127\.0\.0\.1`), "the certificate is not for this name")
	verifying.stop()
	p, server := render().run(verifyVariable)
	p.waitReady(&p.spec.Containers[0], server)
	report.add("registry, PostgreSQL with another name, verify-full", "rejected, but accepted without the variable of the operator")
}

// TestCAFolder expects that the server cannot read a folder of --embedmd-database-ssl-ca, although the operator sets one. A failure means
// that a new release of the server can read folders.
func TestCAFolder(t *testing.T) {
	t.Parallel()
	spec, content := mariaDBRegistry(&mariaServer{port: 1}, "registry", "secured")
	spec.MySQL.SSLRootCertificatesConfigMapName = "roots"
	r := renderRegistry(t, "folder", spec)
	maps.Copy(r.content, content)
	_, server := r.run()
	NewWithT(t).Eventually(server.read, startExpiry, pollInterval).Should(ContainSubstring("is a directory"))
	report.add("registry, MariaDB, a folder of CA certificates", "v0.2.22 does not read it")
}

// TestPasswordInURL expects that the server rejects a URL with an unescaped password, with the message that the operator searches
// for. [S3] The message contains the URL, so the operator must not copy it.
func TestPasswordInURL(t *testing.T) {
	t.Parallel()
	spec, content := postgresRegistry("registry")
	content["Secret/login"]["password"] = machine.Password
	r := renderRegistry(t, "password", spec)
	maps.Copy(r.content, content)
	_, server := r.run()
	NewWithT(t).Eventually(server.read, startExpiry, pollInterval).Should(ContainSubstring("failed to parse PostgreSQL URL DSN"))
	NewWithT(t).Expect(server.read()).To(ContainSubstring("hunter2"), "the server no longer quotes the URL")
	report.add("registry, PostgreSQL, unescaped password", "the server cannot parse the URL")
}
