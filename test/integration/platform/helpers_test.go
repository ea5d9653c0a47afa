package platform_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	finalizer         = "mlflow.opendatahub.io/mlflow-operator-protection"
	mlflowOperatorCRD = "mlflowoperators.components.platform.opendatahub.io"
)

// mlflowOperator returns the MLflowOperator as the platform creates it.
func mlflowOperator(changes ...func(*platformv1alpha1.MLflowOperator)) *platformv1alpha1.MLflowOperator {
	m := &platformv1alpha1.MLflowOperator{ObjectMeta: metav1.ObjectMeta{
		Name: "default-mlflowoperator", Annotations: map[string]string{"component.opendatahub.io/management-state": "Managed"},
	}}
	m.Spec.GatewayName, m.Spec.SectionTitle = "data-science-gateway", "OpenShift Open Data Hub"
	for _, change := range changes {
		change(m)
	}
	return m
}

func withDomain(m *platformv1alpha1.MLflowOperator) {
	m.Spec.Gateway = &platformv1alpha1.GatewaySpec{Domain: "apps.example.com/"}
}

// newMLflow returns an MLflow without volumes.
func newMLflow() *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	m.Spec.BackendStoreURI, m.Spec.ArtifactsDestination, m.Spec.ServeArtifacts = "postgresql://db/mlflow", "s3://bucket", true
	return m
}

// create creates an object, and deletes it after the spec. Cleanups run in reverse order: an MLflow is deleted before the MLflowOperator,
// whose deletion it blocks.
func create[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, object) }, NodeTimeout(specTimeout))
	return object
}

// deleteAndWait deletes an object, and waits until it is deleted and, for an MLflow, also its Deployment, NetworkPolicy and HTTPRoute.
func deleteAndWait(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object))).To(Succeed())
	env.WaitDeleted(ctx, object)
	if _, isMLflow := object.(*mlflowv1.MLflow); !isMLflow {
		return
	}
	env.WaitDeleted(ctx, mlflowDeployment(), networkPolicy(), httpRoute())
}

func mlflowDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}

func networkPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}

func httpRoute() *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "mlflow")
}

// platformVersionConfigMap returns the ConfigMap in which the platform publishes its version to the MLflowOperator.
func platformVersionConfigMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-mlflowoperator-config"},
		Data:       map[string]string{"platformVersion": version},
	}
}

// findCondition returns a condition in the type of the platform.
func findCondition(m *platformv1alpha1.MLflowOperator, conditionType string) *platformv1alpha1.Condition {
	i := slices.IndexFunc(m.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &m.Status.Conditions[i]
}

// waitReady waits until Ready has a status and a reason for the current generation.
func waitReady(ctx context.Context, m *platformv1alpha1.MLflowOperator, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	env.WaitFor(ctx, m, func(g Gomega) {
		c := findCondition(m, "Ready")
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(status), "%s: %s", c.Reason, c.Message)
		g.Expect(c.Reason).To(Equal(reason))
		g.Expect(m.Status.ObservedGeneration).To(Equal(m.Generation))
		g.Expect(c.ObservedGeneration).To(Equal(m.Generation))
	})
}

// waitAvailable waits until a server is available and the manager is idle.
func waitAvailable(ctx context.Context, m *mlflowv1.MLflow) {
	GinkgoHelper()
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentReady")
	waitIdle()
	env.Get(ctx, m)
}

// waitIdle waits until the manager is idle, including its Events.
func waitIdle() {
	GinkgoHelper()
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
}

// startAnotherManager starts a manager with other options.
func startAnotherManager(ctx context.Context, options framework.ManagerOptions) *framework.Manager {
	GinkgoHelper()
	options.Name = "other"
	options.Args = append([]string{"--metrics-secure=false"}, options.Args...)
	options.Env = append([]string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"}, options.Env...)
	return env.StartManager(ctx, options)
}

// deleteCRD deletes a CRD that the manager requires, waits until the manager has restarted, and returns a function that restores the CRD.
// The end of the spec restores it if the spec did not.
func deleteCRD(ctx context.Context, name string) (restore func(context.Context)) {
	GinkgoHelper()
	restore = env.DeleteCRD(ctx, name)
	manager.AwaitRestart(ctx)
	return restore
}
