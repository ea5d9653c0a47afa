//go:build clients

package clients_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	registryv1beta1 "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	startTimeout = 30 * time.Minute // the first run builds the control plane and the peers
	specTimeout  = 20 * time.Minute // the first run installs the client
	// readyTimeout is the time that a server needs at most to become ready on a busy machine.
	readyTimeout = 4 * time.Minute
	// operatorNamespace is the namespace of the manager.
	operatorNamespace = "opendatahub"
	// account is the ServiceAccount of the user in every namespace.
	account = "ana"
)

// All specs share one control plane with the manager, the real KubeRay, and a fake of the ModelMesh routing layers.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestClients(t *testing.T) { framework.Run(t, "Clients") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "clients", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithNodes(2), framework.WithOperator("config/default"),
		framework.WithTypes(v1alpha1.AddToScheme, mlflowv1.AddToScheme, registryv1beta1.AddToScheme))
	createObjects(ctx, "resources.yaml")
	network := startMesh(ctx)
	installed := env.Installed
	manager = env.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: installed.ServiceAccount, WebhookPort: installed.WebhookPort, Args: []string{"--metrics-bind-address=127.0.0.1:0"},
		Env: append(network.Env(), "MLFLOW_IMAGE=quay.io/opendatahub/mlflow:odh-stable", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways"),
	})
	_, err := peers.StartKubeRay(ctx, env.Instance, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(startTimeout))

// startMesh starts an etcd for ModelMesh, and fake routing layers for the pods of runtimes.
func startMesh(ctx context.Context) *modelmesh.Network {
	GinkgoHelper()
	etcd, err := modelmesh.StartEtcd(ctx, env.Instance)
	Expect(err).NotTo(HaveOccurred())
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	Expect(err).NotTo(HaveOccurred())
	Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "model-serving-etcd", Namespace: operatorNamespace}, Data: data})).To(Succeed())
	network, err := modelmesh.Start(ctx, modelmesh.Options{Config: env.Config, Log: logr.Discard()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(network.Stop(ctx)).To(Succeed()) })
	return network
}

// createObjects creates the objects of a file.
func createObjects(ctx context.Context, file string) {
	GinkgoHelper()
	objects, err := framework.ReadObjects("testdata/" + file)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
	}
}

// createUser creates a ServiceAccount with the given ClusterRoles in a namespace, and returns the path of its kubeconfig.
func createUser(ctx context.Context, namespace string, roles ...string) (kubeconfig string) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})).To(Succeed())
	for _, role := range roles {
		Expect(env.Admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		})).To(Succeed())
	}
	kubeconfig, err := operator.Kubeconfig(ctx, env.Instance, types.NamespacedName{Namespace: namespace, Name: account}, namespace, namespace)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}
