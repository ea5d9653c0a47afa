package modelregistry_plain_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"

	specTimeout = 5 * time.Minute
	idlePeriod  = 3 * time.Second
)

// All specs share one control plane without optional APIs and one manager. Its permissions on the namespaced child objects of registries
// are limited to its namespace [S8].
var (
	env     *framework.Env
	manager *framework.Manager
	// managerOptions returns the options of the manager.
	managerOptions func() framework.ManagerOptions
)

func TestModelRegistryPlain(t *testing.T) { framework.Run(t, "Model registries on plain Kubernetes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelregistry-plain", cluster.Bare, framework.WithTypes(v1beta1.AddToScheme), framework.WithOperator("test/integration/modelregistry_plain/testdata/one-namespace"))
	managerOptions = func() framework.ManagerOptions {
		return framework.ManagerOptions{
			WebhookPort: env.Installed.WebhookPort, Args: []string{"--components=modelregistry"},
			Env: []string{
				"REGISTRIES_NAMESPACE=" + namespace, "ENABLE_WEBHOOKS=false", "REST_IMAGE=quay.io/example/model-registry:v1",
				"KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1", "POSTGRES_IMAGE=quay.io/example/postgresql:16",
			},
		}
	}
	manager = env.StartManager(ctx, managerOptions())
	waitForWebhooks(ctx)
}, NodeTimeout(framework.StartTimeout))

// waitForWebhooks waits until the API server reaches and trusts the webhooks of the manager.
func waitForWebhooks(ctx SpecContext) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, newRegistry("probe"))
}

// newRegistry returns a registry with an existing PostgreSQL database and no proxy, and applies the changes to it.
func newRegistry(name string, changes ...func(*v1beta1.ModelRegistry)) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Postgres = &v1beta1.PostgresConfig{Host: "db", Username: "u", Database: "d"}
	for _, change := range changes {
		change(m)
	}
	return m
}

func withGeneratedDatabase(m *v1beta1.ModelRegistry) {
	m.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true), RetentionPolicy: v1beta1.DeleteData}
}

func withProxy(m *v1beta1.ModelRegistry) { m.Spec.KubeRBACProxy = &v1beta1.ProxyConfig{} }

func waitAvailable(ctx context.Context, m *v1beta1.ModelRegistry) *v1beta1.ModelRegistry {
	GinkgoHelper()
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentAvailable")
	env.WaitForCondition(ctx, m, "Progressing", metav1.ConditionFalse, "CreatedDeployment")
	return m
}

func child[T client.Object](m *v1beta1.ModelRegistry, object T, suffix string) T {
	object.SetNamespace(m.Namespace)
	object.SetName(m.Name + suffix)
	return object
}

func deploymentOf(m *v1beta1.ModelRegistry) *appsv1.Deployment {
	return child(m, &appsv1.Deployment{}, "")
}

func proxyCertificate(m *v1beta1.ModelRegistry) *corev1.Secret {
	s := child(m, &corev1.Secret{}, "-kube-rbac-proxy")
	s.StringData = map[string]string{"tls.crt": "c", "tls.key": "k"}
	return s
}

func authDelegatorBinding(m *v1beta1.ModelRegistry) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-auth-delegator"}}
}
