package access_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	workspaceLabel = "opendatahub.io/global-mlflow-workspace"
	viewBinding    = "odh-group-mlflow-view"
	editBinding    = "odh-group-mlflow-edit"
)

// server returns an MLflow without volumes.
func server() *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	m.Spec.BackendStoreURI, m.Spec.ArtifactsDestination, m.Spec.ServeArtifacts = "postgresql://db/mlflow", "s3://bucket", true
	return m
}

// auth returns the singleton Auth with the given groups.
func auth(allowed, admin any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"allowedGroups": allowed, "adminGroups": admin}}}
	u.SetAPIVersion("services.platform.opendatahub.io/v1alpha1")
	u.SetKind("Auth")
	u.SetName("auth")
	return u
}

func groups(names ...any) []any { return append([]any{}, names...) }

// create creates an object and deletes it at the end of the spec.
func create[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, object) }, NodeTimeout(specTimeout))
	return object
}

func deleteAndWait(ctx context.Context, object client.Object) {
	GinkgoHelper()
	err := env.Admin.Delete(ctx, object)
	if apierrors.IsNotFound(err) || isNoMatch(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	env.WaitDeleted(ctx, object)
	if _, isServer := object.(*mlflowv1.MLflow); isServer {
		env.WaitDeleted(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow"}})
	}
}

// createServerAndAuth creates an MLflow and an Auth with a group of users and a group of admins, and waits until both conditions are True,
// because the manager updates the status until then.
func createServerAndAuth(ctx context.Context) (*mlflowv1.MLflow, *unstructured.Unstructured) {
	GinkgoHelper()
	a := create(ctx, auth(groups("users"), groups("admins")))
	m := create(ctx, server())
	env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
	return m, a
}

// createTeamNamespace creates a namespace labelled for an MLflow.
func createTeamNamespace(ctx context.Context, mlflow string) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "team")
	setWorkspaceLabel(ctx, name, mlflow)
	return name
}

func setWorkspaceLabel(ctx context.Context, namespace string, value any) {
	GinkgoHelper()
	env.SetLabel(ctx, framework.NamespaceNamed(namespace), workspaceLabel, value)
}

func binding(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// subjectsOf returns the kind and name of each subject of a RoleBinding.
func subjectsOf(b *rbacv1.RoleBinding) []string {
	var out []string
	for _, s := range b.Subjects {
		out = append(out, s.Kind+" "+s.Name)
	}
	return out
}

func groupSubjects(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "Group "+name)
	}
	return out
}

// waitForBinding waits until a RoleBinding has exactly the given groups and the ClusterRole for its name.
func waitForBinding(ctx context.Context, namespace, name string, groups ...string) *rbacv1.RoleBinding {
	GinkgoHelper()
	b := binding(namespace, name)
	role := map[string]string{viewBinding: "mlflow-operator-mlflow-view", editBinding: "mlflow-operator-mlflow-edit"}[name]
	env.WaitFor(ctx, b, func(g Gomega) {
		g.Expect(subjectsOf(b)).To(Equal(groupSubjects(groups...)))
		g.Expect(b.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}))
	})
	return b
}

// waitForViewBindings waits until a number of namespaces have a RoleBinding of viewers with exactly the given groups.
func waitForViewBindings(ctx context.Context, count int, groups ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		found := &rbacv1.RoleBindingList{}
		g.Expect(env.Admin.List(ctx, found)).To(Succeed())
		n := 0
		for i := range found.Items {
			if b := &found.Items[i]; b.Name == viewBinding && fmt.Sprint(subjectsOf(b)) == fmt.Sprint(groupSubjects(groups...)) {
				n++
			}
		}
		g.Expect(n).To(Equal(count))
	}).WithContext(ctx).WithTimeout(specTimeout).WithPolling(time.Second).Should(Succeed())
}

// createForeign creates a RoleBinding as another client. No cleanup deletes it, because at the end of the spec another object may have its
// name; it is deleted with its namespace.
func createForeign(ctx context.Context, b *rbacv1.RoleBinding) *rbacv1.RoleBinding {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, b)).To(Succeed())
	return b
}

func waitBindingsDeleted(ctx context.Context, namespace string) {
	GinkgoHelper()
	env.WaitDeleted(ctx, binding(namespace, viewBinding), binding(namespace, editBinding))
}

func waitIdle() {
	GinkgoHelper()
	env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
}

func authRef(a *unstructured.Unstructured) *unstructured.Unstructured {
	u := auth(nil, nil)
	u.Object["metadata"] = map[string]any{"name": a.GetName()}
	return u
}
