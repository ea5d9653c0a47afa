package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// legacyFieldManager is the field manager of the legacy operator.
const legacyFieldManager = "mlflow-operator"

// writer creates an object by server-side apply, by create or by `kubectl apply`.
type writer func(ctx context.Context, object *unstructured.Unstructured)

// legacyServer is an MLflow with the child objects and the status that the legacy operator wrote.
type legacyServer struct {
	server   *mlflowv1.MLflow
	children []*unstructured.Unstructured
	manager  *framework.Manager
	start    framework.AuditPosition
}

// createLegacyObjects writes the objects in files with the owner references of the legacy operator, waits until the server runs, and sets its
// status. The objects are deleted after the spec.
func createLegacyObjects(ctx context.Context, write writer, files ...string) *legacyServer {
	GinkgoHelper()
	legacy := &legacyServer{server: &mlflowv1.MLflow{}}
	var children []*unstructured.Unstructured
	for _, file := range files {
		for _, object := range readTestdata(file) {
			switch object.GetKind() {
			case "MLflow":
				Expect(env.Admin.Create(ctx, object)).To(Succeed())
				Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(object), legacy.server)).To(Succeed())
			case "Secret":
				Expect(env.Admin.Create(ctx, object)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(specTimeout))
			default:
				children = append(children, object)
			}
		}
	}
	DeferCleanup(legacy.remove, NodeTimeout(specTimeout))
	for _, child := range children {
		child.SetOwnerReferences([]metav1.OwnerReference{legacy.ownerReference(child.GetKind())})
		write(ctx, child)
		legacy.children = append(legacy.children, child)
	}
	deployment := mlflowDeployment()
	env.WaitFor(ctx, deployment, func(g Gomega) {
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.AvailableReplicas).To(Equal(*deployment.Spec.Replicas))
	})
	legacy.setStatus(ctx)
	return legacy
}

// ownerReference returns the owner reference that the legacy operator set on objects of a kind.
func (legacy *legacyServer) ownerReference(kind string) metav1.OwnerReference {
	if kind == "ClusterRole" || kind == "ClusterRoleBinding" {
		return metav1.OwnerReference{APIVersion: mlflowv1.GroupVersion.String(), Kind: "MLflow", Name: legacy.server.Name, UID: legacy.server.UID}
	}
	return *metav1.NewControllerRef(legacy.server, mlflowv1.GroupVersion.WithKind("MLflow"))
}

// setStatus sets the status of a ready, migrated server. Two conditions of the legacy operator have no observedGeneration.
func (legacy *legacyServer) setStatus(ctx context.Context) {
	GinkgoHelper()
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: metav1.Unix(1700000000, 0),
		}
	}
	legacy.server.Status = mlflowv1.MLflowStatus{
		Address: &mlflowv1.MLflowAddress{URL: "https://mlflow.opendatahub.svc:8443/mlflow"},
		URL:     "https://mlflow.example.com/mlflow",
		Version: "3.14.0",
		Conditions: []metav1.Condition{
			condition("Available", metav1.ConditionTrue, "DeploymentReady", "MLflow deployment is ready and available", 0),
			condition("Progressing", metav1.ConditionFalse, "ReconcileComplete", "MLflow reconciliation completed successfully", 0),
			condition("Migration", metav1.ConditionTrue, "MigrationSucceeded", "Migration for generation 1 completed successfully", 1),
		},
	}
	Expect(env.Admin.Status().Update(ctx, legacy.server, client.FieldOwner("manager"))).To(Succeed())
}

// takeOver starts a manager, and waits until the server is ready and the manager is idle.
func (legacy *legacyServer) takeOver(ctx context.Context, variables ...string) {
	GinkgoHelper()
	legacy.start = env.AuditPosition()
	legacy.manager = env.StartManager(ctx, managerOptions(variables...))
	env.WaitFor(ctx, legacy.server, func(g Gomega) { g.Expect(legacy.server.Status.ObservedGeneration).To(Equal(legacy.server.Generation)) })
	env.WaitForCondition(ctx, legacy.server, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitIdle(legacy.manager.User, idlePeriod, specTimeout)
	env.Get(ctx, legacy.server)
	Expect(legacy.writes().ForResource("jobs")).To(BeEmpty(), "a database that the legacy operator migrated is not migrated again")
	Expect(legacy.server.Status.Migration).To(HaveValue(And(HaveField("Outcome", mlflowv1.MigrationCompleted), HaveField("Version", "3.14.0"))),
		"a later change of the image is checked")
}

// writes returns the writes of the manager since its start, except Events.
func (legacy *legacyServer) writes() framework.Entries {
	GinkgoHelper()
	return env.Since(legacy.start).ObjectWrites(legacy.manager.User)
}

// live returns a child object as it is stored.
func (legacy *legacyServer) live(ctx context.Context, child *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(child.GroupVersionKind())
	Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(child), live)).To(Succeed())
	return live
}

// remove stops the manager, and deletes the server with all its objects.
func (legacy *legacyServer) remove(ctx SpecContext) {
	if legacy.manager != nil && legacy.manager.Process.Running() {
		legacy.manager.Stop(ctx)
	}
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, legacy.server))).To(Succeed())
	env.WaitDeleted(ctx, legacy.server)
	for _, child := range legacy.children {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, child))).To(Succeed())
		env.WaitDeleted(ctx, child)
	}
	Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(env.Admin.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
	// A PersistentVolumeClaim is deleted only after the last pod that uses it.
	env.WaitDeleted(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-pvc"}})
}

// forceApply writes an object as the legacy operator did: by a forced server-side apply.
func forceApply(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	Expect(env.Admin.Apply(ctx, config, client.FieldOwner(legacyFieldManager), client.ForceOwnership)).To(Succeed())
}

// createObject creates an object with the field manager of the legacy operator.
func createObject(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, object.DeepCopy(), client.FieldOwner(legacyFieldManager))).To(Succeed())
}

// kubectlApply writes an object by `kubectl apply`, as a user who restores objects from files does.
func kubectlApply(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	programs, err := cluster.Build(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	text, err := yaml.Marshal(object.Object)
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, programs["kubectl"], "--kubeconfig="+env.KubeconfigPath, "apply", "--server-side=false", "-f", "-")
	command.Stdin = bytes.NewReader(text)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
}

// readTestdata returns the objects in a file of testdata.
func readTestdata(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		Expect(err).NotTo(HaveOccurred(), file)
		objects = append(objects, object)
	}
}

func mlflowDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}
