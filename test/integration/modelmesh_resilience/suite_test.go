package modelmesh_resilience_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	specTimeout = 4 * time.Minute
	stopTimeout = time.Minute
	etcdSecret  = "model-serving-etcd"
)

// All specs share one control plane, one etcd of the routing layers and one manager with exactly the shipped permissions. Specs that stop
// processes are serial.
var (
	env     *framework.Env
	manager *framework.Manager
	etcd    *modelmesh.Etcd
	network *modelmesh.Network
	// proxyAddress does not change when the network restarts, because the manager is configured with it.
	proxyAddress string
	loads        = &loader{}
)

func TestResilience(t *testing.T) { framework.Run(t, "Models during outages") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-resilience", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"),
		framework.WithTypes(v1alpha1.AddToScheme, v1beta1.AddToScheme))
	var err error
	etcd, err = modelmesh.StartEtcd(ctx, env.Instance)
	Expect(err).NotTo(HaveOccurred())
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: etcdSecret}, Data: data}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: "model-serving-config"},
		Data:       map[string]string{"config.yaml": "podsPerRuntime: 1\nscaleToZero: {enabled: true, gracePeriodSeconds: 60}\n"},
	}
	for _, object := range []client.Object{secret, config} {
		Expect(env.Admin.Create(ctx, object)).To(Succeed())
	}
	startRoutingLayers(ctx)
	DeferCleanup(func(ctx SpecContext) {
		if network != nil {
			stopRoutingLayers(ctx)
		}
	}, NodeTimeout(stopTimeout))
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort, Args: []string{"--components=modelmesh"},
		Env: network.Env(),
	})
}, NodeTimeout(framework.StartTimeout))

// Restart the processes that a failed spec stopped and did not restart.
var _ = BeforeEach(func(ctx SpecContext) {
	if !etcd.Running() {
		Expect(etcd.Restart(ctx)).To(Succeed())
	}
	if network == nil {
		startRoutingLayers(ctx)
	}
	if !manager.Process.Running() {
		manager.Restart(ctx)
	}
}, NodeTimeout(stopTimeout))

// stopRoutingLayers stops the routing layers of all namespaces.
func stopRoutingLayers(ctx SpecContext) {
	GinkgoHelper()
	layers := network
	network = nil
	Expect(layers.Stop(ctx)).To(Succeed())
}

// startRoutingLayers starts the routing layers of all namespaces, at the previous address if any.
func startRoutingLayers(ctx SpecContext) {
	GinkgoHelper()
	var err error
	network, err = modelmesh.Start(ctx, modelmesh.Options{Config: env.Config, Address: proxyAddress, Loader: loads.load, Log: GinkgoLogr})
	Expect(err).NotTo(HaveOccurred())
	proxyAddress = network.Address()
}
