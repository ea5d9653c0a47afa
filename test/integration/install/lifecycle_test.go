package install_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespace = "opendatahub"
	image     = "registry.example.org:5000/operator@sha256:0123456789012345678901234567890123456789012345678901234567890123"
)

var _ = Describe("an installation", func() {
	It("is created, changed and removed by make, and leaves only data", func(ctx SpecContext) {
		originalHash := manifestHash()
		objects := renderOverlay(ctx, "kubernetes")
		mustMake(ctx, "install")
		Expect(live(ctx, findObject("CustomResourceDefinition", "mlflows.mlflow.opendatahub.io", objects))).NotTo(BeNil())
		Expect(live(ctx, findObject("Deployment", managerName, objects))).To(BeNil(), "make install creates only CRDs")

		mustMake(ctx, "deploy", "IMG="+image)
		deployment := waitRolledOut(ctx, namespace)
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		running := startManager(ctx, objects, deployment, nil)

		expectWebhooks(ctx)
		createServers(ctx)
		running = disableComponent(ctx, running, objects)
		enableComponent(ctx, running, objects)

		By("rejecting the removal of CRDs with objects")
		output, err := makeTarget(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("MLflow /mlflow"), ContainSubstring("ModelRegistry "+namespace+"/modelregistry-sample"), ContainSubstring("Nothing was removed")))
		env.Get(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}})

		By("removing the objects of users, then the operator, then the CRDs")
		mustKubectl(ctx, "-n", namespace, "delete", "--timeout=2m", "mlflow/mlflow", "modelregistry/modelregistry-sample", "appwrapper/sample-pod", "appwrapper/unreconciled")
		env.WaitDeleted(ctx, deploymentOf("mlflow"), deploymentOf("modelregistry-sample"), deploymentOf("modelregistry-sample-postgres"))
		mustMake(ctx, "undeploy")
		for _, object := range objects {
			Expect(live(ctx, object) != nil).To(Equal(object.GetLabels()[keepLabel] != ""), "%s %s", object.GetKind(), object.GetName())
		}
		mustMake(ctx, "uninstall")
		Expect(waitForUserDataOnly(ctx)).To(ContainElements(
			"persistentvolumeclaims opendatahub/mlflow-pvc", "persistentvolumeclaims opendatahub/modelregistry-sample-postgres-storage", ContainSubstring("secrets opendatahub/modelregistry-sample-postgres")))
		Expect(manifestHash()).To(Equal(originalHash), "a target must not change a file of the checkout")
	}, SpecTimeout(specTimeout))
})

func findObject(kind, name string, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	Fail("no " + kind + " " + name)
	return nil
}

func sample(name string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root(), "config", "samples", name))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// expectWebhooks expects that the API server reaches the webhooks, trusts them, and enforces their rules.
func expectWebhooks(ctx context.Context) {
	GinkgoHelper()
	By("defaulting and rejecting objects at admission")
	var output string
	Eventually(func() (err error) {
		output, err = kubectlApply(ctx, namespace, sample("appwrapper_pod.yaml"))
		return err
	}).WithContext(ctx).Should(Succeed())
	Expect(output).NotTo(ContainSubstring("Warning: the component"))
	Expect(mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "sample-pod", "-o", "jsonpath={.metadata.labels}")).To(ContainSubstring("workload.codeflare.dev/user"))
	other := strings.Replace(strings.Replace(sample("appwrapper_pod.yaml"), "name: sample-pod\n  labels", "name: other-namespace\n  labels", 1),
		"        name: sample-pod", "        name: other-namespace\n        namespace: default", 1)
	output, err := kubectlApply(ctx, namespace, other)
	Expect(err).To(HaveOccurred())
	Expect(output).To(And(ContainSubstring("is invalid"), ContainSubstring("namespace")))
}

// createServers creates an MLflow and a ModelRegistry, both with data, and waits until their pods are available.
func createServers(ctx context.Context) {
	GinkgoHelper()
	mustKubectl(ctx, "-n", namespace, "apply", "--server-side", "-f", "config/samples/mlflow_minimal.yaml", "-f", "config/samples/modelregistry_generated.yaml")
	env.WaitForCondition(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}, "Available", metav1.ConditionTrue, "")
	registry := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "modelregistry-sample"}}
	// Without a router the Route is not admitted, so the registry does not become available.
	for _, name := range []string{registry.Name, registry.Name + "-postgres"} {
		deployment := deploymentOf(name)
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(1))) })
	}
	deprecated := mustKubectl(ctx, "-n", namespace, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", registry.Name, "-o", "jsonpath={.apiVersion}")
	Expect(deprecated).To(HaveSuffix("modelregistry.opendatahub.io/v1alpha1"), "the output ends with the object, after the deprecation warning")
}

// disableComponent disables the component appwrapper with its environment variable. The API server then accepts AppWrappers with a warning,
// and nothing reconciles them.
func disableComponent(ctx context.Context, running *framework.Manager, objects []*unstructured.Unstructured) *framework.Manager {
	GinkgoHelper()
	By("disabling a component")
	running.Stop(ctx)
	mustKubectl(ctx, "-n", namespace, "set", "env", "deployment/"+managerName, "ENABLE_APPWRAPPER=false")
	running = startManager(ctx, objects, waitRolledOut(ctx, namespace), nil)
	unreconciled := strings.Replace(sample("appwrapper_pod.yaml"), "name: sample-pod\n  labels", "name: unreconciled\n  labels", 1)
	var output string
	Eventually(func() (err error) {
		output, err = kubectlApply(ctx, namespace, unreconciled)
		return err
	}).WithContext(ctx).Should(Succeed())
	Expect(output).To(ContainSubstring("Warning: the component appwrapper is disabled"))
	labels := mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "unreconciled", "-o", "jsonpath={.metadata.labels}{.status}")
	Expect(labels).To(ContainSubstring("workload.codeflare.dev/user")) // the user label is still enforced
	mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "sample-pod")
	return running
}

// enableComponent resets the variable with make deploy, and expects that the component reconciles the existing objects.
func enableComponent(ctx context.Context, running *framework.Manager, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	By("enabling the component again")
	running.Stop(ctx)
	mustMake(ctx, "deploy", "IMG="+image)
	startManager(ctx, objects, waitRolledOut(ctx, namespace), nil)
	Eventually(func() string {
		return mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "unreconciled", "-o", "jsonpath={.status.phase}")
	}).WithContext(ctx).ShouldNot(BeEmpty())
}

func deploymentOf(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
