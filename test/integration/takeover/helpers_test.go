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

// originalManager is the field manager of the replaced operator.
const originalManager = "mlflow-operator"

// writer is a way in which objects are written.
type writer func(ctx context.Context, object *unstructured.Unstructured)

// legacyServer is an MLflow server as the replaced operator left it.
type legacyServer struct {
	server   *mlflowv1.MLflow
	children []*unstructured.Unstructured
	manager  *framework.Manager
	start    framework.AuditPosition
}

// createLegacyObjects writes the objects of files like the replaced operator, waits until its server runs, and writes its status. Everything is deleted
// at the end of the spec.
func createLegacyObjects(ctx context.Context, write writer, files ...string) *legacyServer {
	GinkgoHelper()
	s := &legacyServer{server: &mlflowv1.MLflow{}}
	var children []*unstructured.Unstructured
	for _, file := range files {
		for _, object := range documents(file) {
			switch object.GetKind() {
			case "MLflow":
				Expect(env.Admin.Create(ctx, object)).To(Succeed())
				Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(object), s.server)).To(Succeed())
			case "Secret":
				Expect(env.Admin.Create(ctx, object)).To(Succeed())
				DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, object)).To(Succeed()) }, NodeTimeout(specTimeout))
			default:
				children = append(children, object)
			}
		}
	}
	DeferCleanup(s.remove, NodeTimeout(specTimeout))
	for _, child := range children {
		child.SetOwnerReferences([]metav1.OwnerReference{s.reference(child.GetKind())})
		write(ctx, child)
		s.children = append(s.children, child)
	}
	d := deployment()
	env.WaitFor(ctx, d, func(g Gomega) {
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas))
	})
	s.report(ctx)
	return s
}

// reference returns the owner reference that the replaced operator set on a kind.
func (s *legacyServer) reference(kind string) metav1.OwnerReference {
	if kind == "ClusterRole" || kind == "ClusterRoleBinding" {
		return metav1.OwnerReference{APIVersion: mlflowv1.GroupVersion.String(), Kind: "MLflow", Name: s.server.Name, UID: s.server.UID}
	}
	return *metav1.NewControllerRef(s.server, mlflowv1.GroupVersion.WithKind("MLflow"))
}

// report writes the status of a ready, migrated server; two conditions of the replaced operator have no observedGeneration.
func (s *legacyServer) report(ctx context.Context) {
	GinkgoHelper()
	condition := func(kind string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
			LastTransitionTime: metav1.Unix(1700000000, 0),
		}
	}
	s.server.Status = mlflowv1.MLflowStatus{
		Address: &mlflowv1.MLflowAddress{URL: "https://mlflow.opendatahub.svc:8443/mlflow"},
		URL:     "https://mlflow.example.com/mlflow",
		Version: "3.14.0",
		Conditions: []metav1.Condition{
			condition("Available", metav1.ConditionTrue, "DeploymentReady", "MLflow deployment is ready and available", 0),
			condition("Progressing", metav1.ConditionFalse, "ReconcileComplete", "MLflow reconciliation completed successfully", 0),
			condition("Migration", metav1.ConditionTrue, "MigrationSucceeded", "Migration for generation 1 completed successfully", 1),
		},
	}
	Expect(env.Admin.Status().Update(ctx, s.server, client.FieldOwner("manager"))).To(Succeed())
}

// takeOver starts a manager, and waits until the server is ready and the manager is idle.
func (s *legacyServer) takeOver(ctx context.Context, variables ...string) {
	GinkgoHelper()
	s.start = env.AuditPosition()
	s.manager = env.StartManager(ctx, managerOptions(variables...))
	env.WaitFor(ctx, s.server, func(g Gomega) { g.Expect(s.server.Status.ObservedGeneration).To(Equal(s.server.Generation)) })
	env.WaitForCondition(ctx, s.server, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitIdle(s.manager.User, quiet, specTimeout)
	env.Get(ctx, s.server)
	Expect(s.writes().Of("jobs")).To(BeEmpty(), "a database that the original migrated is not migrated again")
	Expect(s.server.Status.Migration).To(BeNil())
}

// writes returns the writes of the manager since its start, except Events.
func (s *legacyServer) writes() framework.Entries {
	GinkgoHelper()
	return env.Since(s.start).ChildWrites(s.manager.User)
}

// live reads a live child.
func (s *legacyServer) live(ctx context.Context, child *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(child.GroupVersionKind())
	Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(child), live)).To(Succeed())
	return live
}

// remove stops the manager, and deletes the server with all its objects.
func (s *legacyServer) remove(ctx SpecContext) {
	if s.manager != nil && s.manager.Process.Running() {
		s.manager.Stop(ctx)
	}
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, s.server))).To(Succeed())
	env.WaitDeleted(ctx, s.server)
	for _, child := range s.children {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, child))).To(Succeed())
		env.WaitDeleted(ctx, child)
	}
	Eventually(func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(env.Admin.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
	// A PersistentVolumeClaim is deleted after the last pod, including pods that are no longer children.
	env.WaitDeleted(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-pvc"}})
}

// forceApply writes like the replaced operator: a forced server-side apply.
func forceApply(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	Expect(env.Admin.Apply(ctx, config, client.FieldOwner(originalManager), client.ForceOwnership)).To(Succeed())
}

// createOrUpdate creates and updates whole objects with the field manager of the replaced operator.
func createOrUpdate(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, object.DeepCopy(), client.FieldOwner(originalManager))).To(Succeed())
}

// kubectlApply writes like `kubectl apply` by a user who restores objects from files.
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

// documents reads a file of testdata.
func documents(file string) []*unstructured.Unstructured {
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

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
}
