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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		was := fingerprint()
		objects := renderOverlay(ctx, "kubernetes")
		mustMake(ctx, "install")
		Expect(live(ctx, named("CustomResourceDefinition", "mlflows.mlflow.opendatahub.io", objects))).NotTo(BeNil())
		Expect(live(ctx, named("Deployment", managerName, objects))).To(BeNil(), "the CRDs are all that install makes")

		mustMake(ctx, "deploy", "IMG="+image)
		deployment := waitRolledOut(ctx, namespace)
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		running := manager(ctx, objects, deployment, nil)

		webhooksAnswer(ctx)
		servers(ctx)
		running = switchedOff(ctx, running, objects)
		switchedOn(ctx, running, objects)

		By("refusing to remove CRDs that have objects")
		output, err := makeTarget(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("MLflow /mlflow"), ContainSubstring("ModelRegistry "+namespace+"/modelregistry-sample"), ContainSubstring("Nothing was removed")))
		env.Get(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}})

		By("removing the objects of users, then the operator, then the CRDs")
		mustKubectl(ctx, "-n", namespace, "delete", "--timeout=2m", "mlflow/mlflow", "modelregistry/modelregistry-sample", "appwrapper/sample-pod", "appwrapper/unheard")
		waitDeleted(ctx, deploymentOf("mlflow"), deploymentOf("modelregistry-sample"), deploymentOf("modelregistry-sample-postgres"))
		mustMake(ctx, "undeploy")
		for _, object := range objects {
			Expect(live(ctx, object) != nil).To(Equal(object.GetLabels()[keep] != ""), "%s %s", object.GetKind(), object.GetName())
		}
		mustMake(ctx, "uninstall")
		Expect(nothingButData(ctx)).To(ContainElements(
			"persistentvolumeclaims opendatahub/mlflow-pvc", "persistentvolumeclaims opendatahub/modelregistry-sample-postgres-storage", ContainSubstring("secrets opendatahub/modelregistry-sample-postgres")))
		Expect(fingerprint()).To(Equal(was), "no target changes a file of the checkout")
	}, SpecTimeout(specTimeout))
})

func named(kind, name string, objects []*unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	Fail("there is no " + kind + " " + name)
	return nil
}

func sample(name string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root(), "config", "samples", name))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// webhooksAnswer expects that the API server reaches the webhooks, trusts them, and enforces their rules.
func webhooksAnswer(ctx context.Context) {
	GinkgoHelper()
	By("completing, refusing and converting at admission")
	var output string
	Eventually(func() (err error) {
		output, err = kubectlApply(ctx, namespace, sample("appwrapper_pod.yaml"))
		return err
	}).WithContext(ctx).Should(Succeed())
	Expect(output).NotTo(ContainSubstring("Warning: the component"))
	Expect(mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "sample-pod", "-o", "jsonpath={.metadata.labels}")).To(ContainSubstring("workload.codeflare.dev/user"))
	other := strings.Replace(strings.Replace(sample("appwrapper_pod.yaml"), "name: sample-pod\n  labels", "name: stranger\n  labels", 1),
		"        name: sample-pod", "        name: stranger\n        namespace: default", 1)
	output, err := kubectlApply(ctx, namespace, other)
	Expect(err).To(HaveOccurred())
	Expect(output).To(And(ContainSubstring("is invalid"), ContainSubstring("namespace")))
}

// servers creates an MLflow and a ModelRegistry, both with data, and waits until they run.
func servers(ctx context.Context) {
	GinkgoHelper()
	mustKubectl(ctx, "-n", namespace, "apply", "--server-side", "-f", "config/samples/mlflow_minimal.yaml", "-f", "config/samples/modelregistry_generated.yaml")
	env.WaitForCondition(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}, "Available", metav1.ConditionTrue, "")
	registry := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "modelregistry-sample"}}
	// Without a router the Route is not admitted, so the registry does not become available.
	for _, name := range []string{registry.Name, registry.Name + "-postgres"} {
		deployment := deploymentOf(name)
		env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(1))) })
	}
	older := mustKubectl(ctx, "-n", namespace, "get", "modelregistries.v1alpha1.modelregistry.opendatahub.io", registry.Name, "-o", "jsonpath={.apiVersion}")
	Expect(older).To(HaveSuffix("modelregistry.opendatahub.io/v1alpha1"), "behind the warning that this version is deprecated")
}

// switchedOff disables the component by its variable: the API server accepts objects with a warning, and nothing reconciles them.
func switchedOff(ctx context.Context, running *framework.Manager, objects []*unstructured.Unstructured) *framework.Manager {
	GinkgoHelper()
	By("switching a component off")
	running.Stop(ctx)
	mustKubectl(ctx, "-n", namespace, "set", "env", "deployment/"+managerName, "ENABLE_APPWRAPPER=false")
	running = manager(ctx, objects, waitRolledOut(ctx, namespace), nil)
	unheard := strings.Replace(sample("appwrapper_pod.yaml"), "name: sample-pod\n  labels", "name: unheard\n  labels", 1)
	var output string
	Eventually(func() (err error) {
		output, err = kubectlApply(ctx, namespace, unheard)
		return err
	}).WithContext(ctx).Should(Succeed())
	Expect(output).To(ContainSubstring("Warning: the component appwrapper is disabled"))
	labels := mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "unheard", "-o", "jsonpath={.metadata.labels}{.status}")
	Expect(labels).To(ContainSubstring("workload.codeflare.dev/user")) // the user label is still enforced
	mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "sample-pod")
	return running
}

// switchedOn resets the variable by deploying again, and expects that the component reconciles the existing objects.
func switchedOn(ctx context.Context, running *framework.Manager, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	By("switching it on again")
	running.Stop(ctx)
	mustMake(ctx, "deploy", "IMG="+image)
	manager(ctx, objects, waitRolledOut(ctx, namespace), nil)
	Eventually(func() string {
		return mustKubectl(ctx, "-n", namespace, "get", "appwrapper", "unheard", "-o", "jsonpath={.status.phase}")
	}).WithContext(ctx).ShouldNot(BeEmpty())
}

func waitDeleted(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	env.WaitDeleted(ctx, objects...)
}

func deploymentOf(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
