//go:build operands

package operands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	registryName = "team-a"
	models       = "/api/model_registry/v1alpha3/registered_models"
	// verifies is the variable by which the server verifies the name of the database, see TestVerifyFull.
	verifies = "MR_EMBEDMD_DATABASE_SSL_VERIFY_SERVER_CERT"
)

// controlPlane is the API server that proxies ask, one for all tests.
var controlPlane = sync.OnceValues(func() (*cluster.Instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildExpiry)
	defer cancel()
	instance, err := cluster.Start(ctx, cluster.Options{Name: fmt.Sprintf("operands-%d", os.Getpid()), Nodes: 1, Ephemeral: true, Progress: os.Stdout})
	if err == nil {
		atTheEnd(func() { _ = instance.Stop(context.Background()) })
	}
	return instance, err
})

// theRegistry is a registry with what is rendered for it, and what its pods read.
type theRegistry struct {
	t       *testing.T
	objects []*unstructured.Unstructured
	content map[string]map[string]string
}

// renderRegistry renders a registry as `manager render` does for a plain cluster.
func renderRegistry(t *testing.T, namespace string, spec v1beta1.ModelRegistrySpec) *theRegistry {
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
	r := &theRegistry{t: t, objects: objects, content: map[string]map[string]string{}}
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

// pod is the pod of the server.
func (r *theRegistry) pod() corev1.PodSpec {
	r.t.Helper()
	return r.podOf(registryName)
}

// podOf is the pod of a Deployment.
func (r *theRegistry) podOf(deployment string) corev1.PodSpec {
	r.t.Helper()
	var d appsv1.Deployment
	rendered{r.t, r.objects}.read("Deployment", deployment, &d)
	return d.Spec.Template.Spec
}

// run starts the server of a registry.
func (r *theRegistry) run(leftOut ...string) (*registryPod, *running) {
	r.t.Helper()
	p := newRegistryPod(r.t, r.pod(), r.content)
	return p, p.start(&p.spec.Containers[0], leftOut...)
}

// onPostgres is a registry whose database is on the test's PostgreSQL, which takes passwords over TLS only.
func onPostgres(name string) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
	spec := v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{
		Host: "localhost", Port: new(int32(database.port)), Username: "mlflow", Database: name, SSLMode: "verify-full",
		PasswordSecret:              &v1beta1.SecretKeyValue{Name: "login", Key: "password"},
		SSLRootCertificateConfigMap: &v1beta1.ConfigMapKeyValue{Name: "roots", Key: "ca.crt"},
	}}
	return spec, map[string]map[string]string{
		// [S3] The kubelet puts the password into a URL, so a Secret holds it as URLs want it.
		"Secret/login": {"password": escapes.Replace(password)}, "ConfigMap/roots": {"ca.crt": string(authority.ca)},
	}
}

var escapes = strings.NewReplacer("%", "%25", " ", "%20", "/", "%2F", "@", "%40")

// onMaria is a registry whose database is on MariaDB.
func onMaria(m *maria, user, name string) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
	spec := v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{
		Host: "localhost", Port: new(int32(m.port)), Username: user, Database: name, PasswordSecret: &v1beta1.SecretKeyValue{Name: "login", Key: "password"},
	}}
	return spec, map[string]map[string]string{"Secret/login": {"password": mariaPassword}, "ConfigMap/roots": {"ca.crt": string(authority.ca)}}
}

// TestRegistry starts server and proxy of a registry as a cluster would, and uses them with the rights of its users.
func TestRegistry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(*testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string){
		"postgres-verify-full": func(t *testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
			must(t, database.create(t.Context(), "registry"))
			return onPostgres("registry")
		},
		"mariadb-with-ca": func(t *testing.T) (v1beta1.ModelRegistrySpec, map[string]map[string]string) {
			m, err := mariaDB()
			must(t, err)
			spec, content := onMaria(m, "registry", "secured")
			spec.MySQL.SSLRootCertificateConfigMap = &v1beta1.ConfigMapKeyValue{Name: "roots", Key: "ca.crt"}
			spec.MySQL.VerifyServerCert = new(true)
			return spec, content
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, content := c(t)
			spec.KubeRBACProxy = &v1beta1.ProxyConfig{}
			r := renderRegistry(t, name, spec)
			maps.Copy(r.content, content)
			certificate, err := os.ReadFile(authority.certificate)
			must(t, err)
			key, err := os.ReadFile(authority.key)
			must(t, err)
			r.content["Secret/team-a-kube-rbac-proxy"] = map[string]string{"tls.crt": string(certificate), "tls.key": string(key)}
			guarded(t, name, r)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// guarded runs both containers, and comes as anonymous, as a stranger, and as a user of the registry.
func guarded(t *testing.T, name string, r *theRegistry) {
	t.Helper()
	begin := time.Now()
	users := newTenants(t, name, r)
	p, server := r.run()
	users.kubeconfig(p.dir + "/kubeconfig")
	proxy := p.start(&p.spec.Containers[1])
	p.ready(&p.spec.Containers[1], proxy)
	p.ready(&p.spec.Containers[0], server) // its probes come through the proxy
	report.add("registry, "+name+", server", "ready")
	t.Logf("%s: ready after %s", name, time.Since(begin).Round(time.Millisecond))

	address := fmt.Sprintf("https://localhost:%d%s", p.proxy, models)
	expect := func(who, token, method, path, body string, want int) string {
		t.Helper()
		var text string
		NewWithT(t).Eventually(func(g Gomega) { // rights reach the API server by a watch of its own
			status, answer, err := p.ask(method, address+path, token, body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(want), answer)
			text = answer
		}, startExpiry, poll).Should(Succeed(), func() string { return proxy.read() + server.read() })
		report.add(fmt.Sprintf("registry, %s, %s %s as %s", name, method, models+path, who), fmt.Sprint(want))
		return text
	}
	const model = `{"name": "credit-risk", "description": "scores", "customProperties": {}}`
	expect("nobody", "", http.MethodGet, "", "", http.StatusUnauthorized)
	expect("a stranger", users.token("stranger"), http.MethodGet, "", "", http.StatusForbidden)
	user := users.token("user")
	expect("a user", user, http.MethodGet, "", "", http.StatusOK)

	// [S4] kube-rbac-proxy v0.19.1 does not know the field verb yet: it takes it from the method. So this user may read and create,
	// and may not change or delete, where newer releases ask for "get" whatever the method.
	created := expect("a user", user, http.MethodPost, "", model, http.StatusCreated)
	var stored struct{ ID, Name, Description string }
	must(t, json.Unmarshal([]byte(created), &stored))
	got := expect("a user", user, http.MethodGet, "/"+stored.ID, "", http.StatusOK)
	must(t, json.Unmarshal([]byte(got), &stored))
	if stored.Name != "credit-risk" || stored.Description != "scores" {
		t.Errorf("the model came back as %s", got)
	}
	expect("a stranger", users.token("stranger"), http.MethodGet, "/"+stored.ID, "", http.StatusForbidden)
	expect("a user", user, http.MethodPatch, "/"+stored.ID, `{"description": "other"}`, http.StatusForbidden)
	for _, text := range []string{server.read(), proxy.read()} {
		if strings.Contains(text, "hunter2") {
			t.Error("a password stands in a log")
		}
	}
}

// TestRegistryWithoutTLS: a server without a proxy, and a database without TLS.
func TestRegistryWithoutTLS(t *testing.T) {
	t.Parallel()
	m, err := mariaDB()
	must(t, err)
	spec, content := onMaria(m, "plain", "opened")
	r := renderRegistry(t, "without-tls", spec)
	maps.Copy(r.content, content)
	p, server := r.run()
	if len(p.spec.Containers) != 1 || *p.spec.AutomountServiceAccountToken {
		t.Fatalf("%d containers, and a token %t", len(p.spec.Containers), *p.spec.AutomountServiceAccountToken)
	}
	p.ready(&p.spec.Containers[0], server)
	address := fmt.Sprintf("http://localhost:%d%s", p.rest, models)
	status, answer, err := p.ask(http.MethodPost, address, "", `{"name": "churn", "customProperties": {}}`)
	if err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v\n%s", status, answer, err, server.read())
	}
	status, answer, err = p.ask(http.MethodGet, address, "", "")
	if err != nil || status != http.StatusOK || !strings.Contains(answer, `"churn"`) {
		t.Errorf("%d %s %v", status, answer, err)
	}
	report.add("registry, mariadb without TLS, POST "+models, "201")
}

// TestVerifyFull: the server replaces sslmode=verify-full by one that does not look at the name of the database as soon as it
// is given a file for TLS. The variable makes it look. The certificate of the database is good for localhost only.
func TestVerifyFull(t *testing.T) {
	t.Parallel()
	must(t, database.create(t.Context(), "verified"))
	spec, content := onPostgres("verified")
	spec.Postgres.Host = "127.0.0.1"
	render := func() *theRegistry {
		r := renderRegistry(t, "verify-full", spec)
		maps.Copy(r.content, content)
		return r
	}
	_, refusing := render().run()
	NewWithT(t).Eventually(refusing.read, startExpiry, poll).Should(ContainSubstring("127.0.0.1"), "the certificate says nothing of this name")
	NewWithT(t).Expect(refusing.read()).To(ContainSubstring("x509"))
	refusing.stop()
	p, careless := render().run(verifies)
	p.ready(&p.spec.Containers[0], careless)
	report.add("registry, PostgreSQL of another name, verify-full", "refused; without the variable of the operator it is taken")
}

// TestCAFolder: the server reads what it is given as --embedmd-database-ssl-ca as one file, and the argument names a folder, as
// it always did. When this fails, the server has learned to read folders.
func TestCAFolder(t *testing.T) {
	t.Parallel()
	spec, content := onMaria(&maria{port: 1}, "registry", "secured")
	spec.MySQL.SSLRootCertificatesConfigMapName = "roots"
	r := renderRegistry(t, "folder", spec)
	maps.Copy(r.content, content)
	_, server := r.run()
	NewWithT(t).Eventually(server.read, startExpiry, poll).Should(ContainSubstring("is a directory"))
	report.add("registry, MariaDB, a folder of authorities", "v0.2.22 does not read it")
}

// TestRestricted: [S7] the pods of a registry and of a generated database are admitted where Pod Security is restricted.
func TestRestricted(t *testing.T) {
	t.Parallel()
	spec := v1beta1.ModelRegistrySpec{
		Postgres: &v1beta1.PostgresConfig{GenerateDeployment: new(true)}, KubeRBACProxy: &v1beta1.ProxyConfig{},
	}
	r := renderRegistry(t, "restricted", spec)
	users := newTenants(t, "restricted", r)
	for name, pod := range map[string]corev1.PodSpec{registryName: r.pod(), registryName + "-postgres": r.podOf(registryName + "-postgres")} {
		admitted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "restricted"}, Spec: pod}
		if err := users.client.Create(t.Context(), admitted.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		admitted.Spec.Containers[0].SecurityContext = nil
		if err := users.client.Create(t.Context(), admitted, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s without its security context: %v", name, err)
		}
	}
	report.add("registry, pods in a restricted namespace", "admitted")
}

// TestPasswordInURL: [S3] the server cannot read an address with such a password, and reports that in the words that the operator
// looks for. It quotes the address, so the operator may not.
func TestPasswordInURL(t *testing.T) {
	t.Parallel()
	spec, content := onPostgres("registry")
	content["Secret/login"]["password"] = password
	r := renderRegistry(t, "password", spec)
	maps.Copy(r.content, content)
	_, server := r.run()
	NewWithT(t).Eventually(server.read, startExpiry, poll).Should(ContainSubstring("failed to parse PostgreSQL URL DSN"))
	NewWithT(t).Expect(server.read()).To(ContainSubstring("hunter2"), "the server no longer quotes the address")
	report.add("registry, PostgreSQL, password that is not escaped", "the server cannot read its address")
}

// tenants are the accounts of a namespace.
type tenants struct {
	t         *testing.T
	namespace string
	instance  *cluster.Instance
	client    client.Client
}

// newTenants makes the namespace, the objects that rights depend on, and two users, of which one is bound to the Role of the
// registry.
func newTenants(t *testing.T, namespace string, r *theRegistry) *tenants {
	t.Helper()
	instance, err := controlPlane()
	must(t, err)
	admin, err := instance.Config()
	must(t, err)
	logf.SetLogger(logr.Discard())
	c, err := client.New(admin, client.Options{})
	must(t, err)
	s := &tenants{t, namespace, instance, c}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	for _, o := range r.objects {
		switch o.GetKind() {
		case "ServiceAccount", "Role", "ClusterRoleBinding", "Service", "ConfigMap", "NetworkPolicy":
			o := o.DeepCopy()
			o.SetOwnerReferences(nil) // there is no registry, and its children would be collected
			if o.GetKind() == "ClusterRoleBinding" {
				o.SetName(namespace + "-" + o.GetName()) // several tests have a registry of this name
			}
			s.create(o)
		}
	}
	for _, name := range []string{"user", "stranger"} {
		s.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
	}
	s.bind("user", "registry-user-"+registryName)
	return s
}

func (s *tenants) create(o client.Object) {
	s.t.Helper()
	must(s.t, s.client.Create(s.t.Context(), o))
}

// bind binds an account to a Role.
func (s *tenants) bind(account, role string) {
	s.t.Helper()
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-" + role, Namespace: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: s.namespace}},
	})
}

func (s *tenants) token(account string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{}
	must(s.t, s.client.SubResource("token").Create(s.t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: s.namespace}}, request))
	return request.Status.Token
}

// kubeconfig is how the proxy finds the API server: by the account of its pod.
func (s *tenants) kubeconfig(path string) {
	s.t.Helper()
	must(s.t, s.instance.WriteTokenKubeconfig(path, s.token(registryName), s.namespace))
}
