//go:build clients

package clients_test

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

const (
	registries = "registries"
	registry   = "team-registry"
)

// The registry is that of docs/components/modelregistry.md, but with PostgreSQL on this machine. Server and proxy run with the rendered
// commands and environment variables. The releases of server and client are those in docs/versions.md.
var _ = Describe("Model registries", Ordered, ContinueOnFailure, func() {
	var t task

	BeforeAll(func(ctx SpecContext) {
		database := startDatabase(ctx)
		Expect(env.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: registries}})).To(Succeed())
		password := strings.ReplaceAll(url.QueryEscape(machine.Password), "+", "%20") // the server parses it as part of a URL
		Expect(env.Admin.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: registries, Name: "login"}, StringData: map[string]string{"password": password},
		})).To(Succeed())
		Expect(env.Admin.Create(ctx, &v1beta1.ModelRegistry{
			ObjectMeta: metav1.ObjectMeta{Namespace: registries, Name: registry},
			Spec: v1beta1.ModelRegistrySpec{KubeRBACProxy: &v1beta1.ProxyConfig{}, Postgres: &v1beta1.PostgresConfig{
				Host: "localhost", Port: new(int32(database.Port)), Database: "registry", Username: "mlflow", SSLMode: "require",
				PasswordSecret: &v1beta1.SecretKeyValue{Name: "login", Key: "password"},
			}},
		})).To(Succeed())
		ports, portTexts := reservePorts(ctx, 3)
		p := newPodProcesses(ctx, registries, registry, "--port=8080", "--port="+portTexts[0], "=http://127.0.0.1:8080/", "=http://127.0.0.1:"+portTexts[0]+"/",
			"=0.0.0.0:8443", "=127.0.0.1:"+portTexts[1], "=8888", "="+portTexts[2], "=/etc/", "={dir}/etc/")
		server, err := programs.ModelRegistry(ctx)
		Expect(err).NotTo(HaveOccurred())
		proxy, err := cluster.BuildPeer(ctx, cluster.KubeRBACProxy, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		p.start(ctx, "rest-container", server, nil)
		p.start(ctx, "kube-rbac-proxy", proxy, nil, "--kubeconfig="+p.kubeconfig)
		const host = registry + "." + registries + ".svc"
		ca := secret(ctx, registries, registry+"-kube-rbac-proxy")["ca.crt"]
		waitReady(ctx, ports[1], "/readyz/health", ca, host)
		t = task{
			script: "registry_models.py", namespace: registries, kubeconfig: createUser(ctx, registries),
			files: map[string]string{"ca.crt": string(ca), "snippet.py": snippet("modelregistry.md")}, services: map[string]int{host + ":8443": ports[1]}, env: []string{"PORT=" + portTexts[0]},
		}
		Expect(env.Admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: registries, Name: "ana-registry"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "registry-user-" + registry},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: registries, Name: account}},
		})).To(Succeed())
	}, NodeTimeout(startTimeout))

	eachRelease("registers a model and reads it, but cannot update it through the proxy", releases("model-registry", "0.3.14", "0.2.9"), func(ctx SpecContext, c client) {
		c.run(ctx, c.install(ctx), withModelName(t, c))
	})

	eachRelease("fails to connect, because it requests paths that the server does not have", []client{{"model-registry", "0.3.18"}}, func(ctx SpecContext, c client) {
		incompatible := withModelName(t, c)
		incompatible.env = append(incompatible.env, "INCOMPATIBLE=1")
		c.run(ctx, c.install(ctx), incompatible)
	})
})

// withModelName replaces the model name of the page with one for the client, because a registry cannot delete models.
func withModelName(t task, c client) task {
	model := "demo-" + c.version
	t.files = maps.Clone(t.files)
	t.files["snippet.py"] = strings.ReplaceAll(t.files["snippet.py"], `"demo"`, strconv.Quote(model))
	t.env = append(slices.Clone(t.env), "MODEL="+model)
	return t
}

// startDatabase starts a PostgreSQL with a database for the registry.
func startDatabase(ctx SpecContext) *machine.Postgres {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.Chmod(dir, 0o755)).To(Succeed()) // PostgreSQL accesses a folder in it as another user
	certificates, err := machine.NewCertificates(dir)
	Expect(err).NotTo(HaveOccurred())
	database, err := machine.StartPostgres(ctx, dir, certificates)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(database.Stop)
	Expect(database.Create(ctx, "registry")).To(Succeed())
	return database
}
