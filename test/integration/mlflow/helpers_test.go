package mlflow_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// newMLflow returns a minimal MLflow with its data on a volume.
func newMLflow(changes ...func(*mlflowv1.MLflow)) *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	m.Spec.BackendStoreURI = "sqlite:////mlflow/mlflow.db"
	m.Spec.ArtifactsDestination = "file:///mlflow/artifacts"
	m.Spec.ServeArtifacts = true
	m.Spec.Storage = &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

// withoutVolumes replaces the volume by a database, whose URI is in Secret db, and a bucket.
func withoutVolumes(m *mlflowv1.MLflow) {
	m.Spec.Storage = nil
	m.Spec.BackendStoreURI = ""
	m.Spec.BackendStoreURIFrom = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "uri"}
	m.Spec.ArtifactsDestination = "s3://bucket"
}

// create creates an object, and deletes it with its dependents at the end of the spec.
func create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, object) }, NodeTimeout(specTimeout))
}

// deleteAndWait deletes an object and, if it is an MLflow, its dependents.
func deleteAndWait(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
	env.WaitDeleted(ctx, object)
	if _, isServer := object.(*mlflowv1.MLflow); isServer {
		deleteChildren(ctx)
	}
}

// deleteChildren deletes the migration and check Jobs of an MLflow, its children and its PersistentVolumeClaim. The garbage collector of
// Kubernetes may take minutes after a restart of an API server or a change of a CRD, and the next spec uses the same names.
func deleteChildren(ctx context.Context) {
	GinkgoHelper()
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	migrations := client.MatchingLabels{"component": "mlflow-migration"} // including the Jobs that run checks
	Expect(env.Admin.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(namespace), migrations, background)).To(Succeed())
	Expect(env.Admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{"component": "mlflow-migration"})).To(Succeed())
	Eventually(func() []batchv1.Job { return jobs(ctx) }).WithContext(ctx).Should(BeEmpty())
	for _, child := range children() {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, child))).To(Succeed())
		env.WaitDeleted(ctx, child)
	}
	// Pods block the deletion of the PersistentVolumeClaim. Wait for garbage collection, and delete them only after a timeout: the Deployment
	// controller recreates a deleted ReplicaSet until it observes the deletion of the Deployment.
	// The lists do not use the context of the poll, because a list that is canceled at the end of the poll would fail the spec.
	podsDeleted := func(context.Context) (bool, error) { return len(replicaSets(ctx))+len(serverPods(ctx)) == 0, nil }
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, garbageCollectionTimeout, true, podsDeleted); err != nil {
		for _, object := range []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}} {
			Expect(env.Admin.DeleteAllOf(ctx, object, client.InNamespace(namespace), client.MatchingLabels{"app": deployment().Name})).To(Succeed())
		}
		Eventually(podsDeleted).WithContext(ctx).Should(BeTrue())
	}
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, claim()))).To(Succeed())
	env.WaitDeleted(ctx, claim())
}

// createReady creates an MLflow, and waits until it is available and the manager is idle.
func createReady(ctx context.Context, m *mlflowv1.MLflow) *mlflowv1.MLflow {
	GinkgoHelper()
	create(ctx, m)
	return waitAvailable(ctx, m)
}

func waitAvailable(ctx context.Context, m *mlflowv1.MLflow) *mlflowv1.MLflow {
	GinkgoHelper()
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitForCondition(ctx, m, "Progressing", metav1.ConditionFalse, "ReconcileComplete")
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
	env.Get(ctx, m)
	return m
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-pvc"}}
}

func serviceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func networkPolicy(name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func serviceMonitor() *unstructured.Unstructured {
	return framework.Unstructured(capability.ServiceMonitor, namespace, "mlflow-metrics-monitor")
}
func httpRoute() *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "mlflow")
}
func consoleLink() *unstructured.Unstructured {
	return framework.Unstructured(capability.ConsoleLink, "", "mlflow")
}

// children returns the child objects of newMLflow if every optional API is served, except the PersistentVolumeClaim and the Job.
func children() []client.Object {
	return []client.Object{
		serviceAccount("mlflow-sa"),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}},
		networkPolicy("mlflow"), networkPolicy("mlflow-migration"), service(), deployment(),
		serviceMonitor(), httpRoute(), consoleLink(),
	}
}

func secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// isAuthError reports whether a status code means that the request was not authenticated or not authorized.
func isAuthError(code int) bool { return code == 401 || code == 403 }
