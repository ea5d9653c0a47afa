package modelmesh_models_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	specTimeout  = 4 * time.Minute
	waitTimeout  = 90 * time.Second
	pollInterval = 100 * time.Millisecond
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = time.Second
	// operatorNamespace is the namespace of the manager.
	operatorNamespace = "opendatahub"
)

// All specs share one control plane with the APIs of KServe, one manager with exactly the shipped permissions, and one fake of the routing
// layers, whose pods run on a fake node. Most share one namespace with runtimes, and each has its own models. Specs that stop the
// manager are serial.
var (
	env     *framework.Env
	manager *framework.Manager
	network *modelmesh.Network
	etcd    *modelmesh.Etcd
	gates   = newGates()
	// served is the shared namespace with runtimes.
	served string
)

func TestModelMeshModels(t *testing.T) { framework.Run(t, "ModelMesh models") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-models", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithNodes(1), framework.WithOperator("config/default"),
		framework.WithTypes(v1alpha1.AddToScheme, v1beta1.AddToScheme))
	env.DisableWebhooks(ctx)
	var err error
	etcd, err = modelmesh.StartEtcd(ctx, env.Instance)
	Expect(err).NotTo(HaveOccurred())
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	Expect(err).NotTo(HaveOccurred())
	Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "model-serving-etcd", Namespace: operatorNamespace}, Data: data})).To(Succeed())
	Expect(env.Admin.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "model-serving-config", Namespace: operatorNamespace},
		Data:       map[string]string{"config.yaml": "podsPerRuntime: 1\nscaleToZero: {enabled: false}\nrestProxy: {enabled: true}\n"},
	})).To(Succeed())
	Eventually(func() error { return env.Admin.List(ctx, &v1alpha1.ServingRuntimeList{}) }).WithContext(ctx).WithTimeout(waitTimeout).
		Should(Succeed(), "the API is served shortly after its CRD is created")
	network, err = modelmesh.Start(ctx, modelmesh.Options{Config: env.Config, Loader: gates.load, Log: logr.Discard()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(network.Stop(ctx)).To(Succeed()) })
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Env:  network.Env(),
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
	})
	served = createNamespace(ctx, "served")
	for _, r := range []*v1alpha1.ServingRuntime{
		newRuntime("mlserver", "sklearn:0", "xgboost:1", "lightgbm:3", "fil"),
		newRuntime("triton", "tensorflow:1", "keras:2", "onnx:1", "pytorch:1"),
		newRuntime("ovms", "openvino_ir:opset1"),
	} {
		create(ctx, served, r)
	}
	env.WaitIdle(manager.User, idlePeriod, waitTimeout) // the first pods are replaced once, which would interrupt loads
}, NodeTimeout(framework.StartTimeout))
