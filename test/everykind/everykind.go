// Package everykind contains resources of every kind that the operator reconciles, for suites that need all kinds in one cluster. With
// KubeRay, an etcd and a fake ModelMesh network, each resource becomes ready on fake nodes.
package everykind

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	// OperatorNamespace is the namespace of the manager and of the server of the MLflow.
	OperatorNamespace = "opendatahub"
	// UserNamespace is the namespace of the namespaced resources.
	UserNamespace = "workshop"

	waitTimeout = 90 * time.Second
	poll        = 200 * time.Millisecond
)

// Cluster is a control plane with the dependencies of the resources, but without a manager.
type Cluster struct {
	*framework.Env

	network *modelmesh.Network
}

// Start starts a control plane and installs a kustomization.
func Start(ctx context.Context, name, kustomizeDir string) *Cluster {
	ginkgo.GinkgoHelper()
	c := &Cluster{Env: framework.Start(ctx, name, cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator(kustomizeDir))}
	etcd, err := modelmesh.StartEtcd(ctx, c.Instance)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(c.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: "model-serving-etcd"}, Data: data})).To(gomega.Succeed())
	c.network, err = modelmesh.Start(ctx, modelmesh.Options{Config: c.Config, Log: logr.Discard()})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { gomega.Expect(c.network.Stop(ctx)).To(gomega.Succeed()) })
	kubeRay, err := peers.StartKubeRay(ctx, c.Instance, ginkgo.GinkgoWriter)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() {
		if ginkgo.CurrentSpecReport().Failed() {
			ginkgo.AddReportEntry("log of KubeRay", kubeRay.LogTail(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
		}
	})
	return c
}

// Options returns the options of a manager that reconciles the resources.
func (c *Cluster) Options(installed *operator.Installed) framework.ManagerOptions {
	return framework.ManagerOptions{
		ServiceAccount: installed.ServiceAccount, WebhookPort: installed.WebhookPort, Args: []string{"--metrics-bind-address=127.0.0.1:0"},
		Env: append([]string{"MLFLOW_IMAGE=registry.example.com/mlflow:v3", "DEFAULT_DOMAIN=apps.example.com"}, c.network.Env()...),
	}
}

// Namespace creates the namespace of the resources if it does not exist.
func (c *Cluster) Namespace(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(client.IgnoreAlreadyExists(c.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: UserNamespace, Labels: map[string]string{
		"modelmesh-enabled": "true", "platform.opendatahub.io/registries": "true"}}}))).To(gomega.Succeed())
}

// Resources returns the custom resources that users create, including cluster-scoped ones, preceded by their Secrets.
func (c *Cluster) Resources() []*unstructured.Unstructured { return c.read("resources.yaml") }

// PlatformResources returns the resources that the platform creates, for managers with the component platform, followed by the Catalog
// that this component creates.
func (c *Cluster) PlatformResources() []*unstructured.Unstructured { return c.read("platform.yaml") }

func (c *Cluster) read(file string) []*unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	objects, err := framework.ReadObjects(filepath.Join(root, "test", "everykind", file))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, object := range objects {
		mapping, err := c.Admin.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(UserNamespace)
		}
	}
	return objects
}

// Create creates objects, and retries while webhooks do not respond yet.
func (c *Cluster) Create(ctx context.Context, objects ...*unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(func() error { return client.IgnoreAlreadyExists(c.Admin.Create(ctx, object)) }).
			WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(gomega.Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// WaitReady waits until every resource is ready according to its kstatus, and to its own status if its kind has no condition Ready.
func (c *Cluster) WaitReady(ctx context.Context, objects []*unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(func(g gomega.Gomega) {
			live := framework.Unstructured(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
			g.Expect(c.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
			kstatus, err := c.KStatus(ctx, live)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(strings.HasPrefix(kstatus, "Current ")).To(gomega.BeTrue(), "%s: %v", kstatus, live.Object["status"])
			switch object.GetKind() {
			case "RayCluster":
				state, _, _ := unstructured.NestedString(live.Object, "status", "state")
				g.Expect(state).To(gomega.Equal("ready"))
			case "AppWrapper":
				phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
				g.Expect(phase).To(gomega.Or(gomega.Equal("Running"), gomega.Equal("Succeeded")))
			case "Predictor":
				state, _, _ := unstructured.NestedString(live.Object, "status", "activeModelState")
				g.Expect(state).To(gomega.Equal("Loaded"))
			case "ServingRuntime", "Secret": // a runtime has no status; the models are loaded in it
			default:
				g.Expect(kstatus).NotTo(gomega.ContainSubstring("no condition Ready"), "%v", live.Object["status"])
			}
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(gomega.Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}
