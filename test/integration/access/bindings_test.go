package access_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A namespace that requests MLflow", func() {
	It("grants access to the platform groups as long as all preconditions are met [mlflow-69] [mlflow-70] [mlflow-71]", func(ctx SpecContext) {
		namespace := createTeamNamespace(ctx, "mlflow")
		a := auth(groups("users", "admins"), groups("admins"))
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		Expect(env.Exists(ctx, binding(namespace, viewBinding))).To(BeFalse())

		start := env.AuditPosition()
		create(ctx, a)
		viewers := waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		editors := waitForBinding(ctx, namespace, editBinding, "admins")
		for _, b := range []*rbacv1.RoleBinding{viewers, editors} {
			Expect(b.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
			Expect(b.OwnerReferences).To(HaveLen(1))
			Expect(metav1.IsControlledBy(b, m)).To(BeTrue())
			Expect(b.ManagedFields).To(ContainElement(HaveField("Manager", "mlflow-operator")))
		}
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
		waitIdle()
		Expect(env.Since(start).ObjectWrites(manager.User).ForResource("rolebindings")).To(HaveLen(2))
		env.ExpectIdle(manager.User, idlePeriod)

		Expect(env.Admin.Delete(ctx, a)).To(Succeed())
		waitBindingsDeleted(ctx, namespace)
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		create(ctx, auth(groups("users"), groups("admins")))
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")

		deleteAndWait(ctx, m)
		waitBindingsDeleted(ctx, namespace)
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		create(ctx, server())
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")

		for _, value := range []any{nil, "", "another"} {
			setWorkspaceLabel(ctx, namespace, value)
			waitBindingsDeleted(ctx, namespace)
			setWorkspaceLabel(ctx, namespace, "mlflow")
			waitForBinding(ctx, namespace, editBinding, "admins")
		}
	}, NodeTimeout(specTimeout))

	It("does not affect other namespaces, and can be deleted [mlflow-71] [mlflow-72] [mlflow-75]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		first, second, other := createTeamNamespace(ctx, "mlflow"), createTeamNamespace(ctx, "mlflow"), createTeamNamespace(ctx, "another")
		for _, namespace := range []string{first, second} {
			waitForBinding(ctx, namespace, viewBinding, "users", "admins")
			waitForBinding(ctx, namespace, editBinding, "admins")
		}
		original := waitForBinding(ctx, second, viewBinding, "users", "admins").ResourceVersion
		setWorkspaceLabel(ctx, first, nil)
		waitBindingsDeleted(ctx, first)
		Expect(env.Admin.Delete(ctx, framework.NamespaceNamed(first))).To(Succeed())
		waitIdle()
		Expect(waitForBinding(ctx, second, viewBinding, "users", "admins").ResourceVersion).To(Equal(original))
		Expect(env.Exists(ctx, binding(other, viewBinding))).To(BeFalse(), "the namespace is labelled for an MLflow that does not exist")
	}, NodeTimeout(specTimeout))

	It("updates the bindings when the groups change [mlflow-73] [mlflow-75]", func(ctx SpecContext) {
		_, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		set := func(allowed, admin any) {
			GinkgoHelper()
			env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"allowedGroups": allowed, "adminGroups": admin}})
		}
		set(groups("b", "a", "b"), groups("c", "a"))
		waitForBinding(ctx, namespace, viewBinding, "b", "a", "c")
		waitForBinding(ctx, namespace, editBinding, "c", "a")
		set(groups(), groups())
		waitForBinding(ctx, namespace, viewBinding)
		waitForBinding(ctx, namespace, editBinding)
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		// A managed RoleBinding without subjects is repaired as well.
		env.Patch(ctx, binding(namespace, editBinding), map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}})
		waitForBinding(ctx, namespace, editBinding)
		set(nil, groups("only"))
		waitForBinding(ctx, namespace, viewBinding, "only")
		waitForBinding(ctx, namespace, editBinding, "only")
	}, NodeTimeout(specTimeout))

	It("keeps its bindings while the groups are invalid, as the condition of the MLflow reports, and new namespaces get none [mlflow-73]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"adminGroups": "everyone"}})
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthInvalid")
		laterNamespace := createTeamNamespace(ctx, "mlflow")
		waitIdle()
		Expect(env.Exists(ctx, binding(laterNamespace, viewBinding))).To(BeFalse())
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		env.ExpectIdle(manager.User, idlePeriod)
		env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"allowedGroups": 7, "adminGroups": groups("admins")}})
		waitIdle()
		Expect(env.Exists(ctx, binding(laterNamespace, viewBinding))).To(BeFalse())
		env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"allowedGroups": groups("users")}})
		waitForBinding(ctx, laterNamespace, viewBinding, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "")
	}, NodeTimeout(specTimeout))

	It("has its bindings restored after changes and deletions, including those while the manager is stopped [mlflow-74] [mlflow-75]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		waitForBinding(ctx, namespace, editBinding, "admins")
		rogue := map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}}
		replaceEditBinding := func() {
			GinkgoHelper()
			Expect(env.Admin.Delete(ctx, binding(namespace, editBinding))).To(Succeed())
			b := binding(namespace, editBinding)
			b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
			Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, b))).To(Succeed())
		}
		Expect(env.Admin.Delete(ctx, binding(namespace, viewBinding))).To(Succeed())
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		env.Patch(ctx, binding(namespace, viewBinding), rogue)
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		env.Patch(ctx, binding(namespace, viewBinding), map[string]any{"metadata": map[string]any{"labels": nil}})
		env.WaitFor(ctx, binding(namespace, viewBinding), nil)
		replaceEditBinding()
		waitForBinding(ctx, namespace, editBinding, "admins")
		waitIdle()

		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, viewBinding), rogue)
		replaceEditBinding()
		replaced := binding(namespace, editBinding)
		env.Get(ctx, replaced)
		Expect(replaced.RoleRef.Name).To(Equal("view"), "the manager has repaired the RoleBinding before it stopped")
		manager.Restart(ctx)
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		restored := waitForBinding(ctx, namespace, editBinding, "admins")
		Expect(restored.UID).NotTo(Equal(replaced.UID))
		waitIdle()
	}, NodeTimeout(specTimeout))

	It("adopts a binding of the same name that a user created earlier [mlflow-74]", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		original := binding(namespace, viewBinding)
		original.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlflow-operator-mlflow-view"}
		original.Subjects = []rbacv1.Subject{{Kind: "User", Name: "another-user", APIGroup: rbacv1.GroupName}}
		createForeign(ctx, original)
		setWorkspaceLabel(ctx, namespace, "mlflow")
		adopted := waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		Expect(adopted.UID).To(Equal(original.UID))
		Expect(metav1.IsControlledBy(adopted, m)).To(BeTrue())
		Expect(adopted.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A RoleBinding with a name of namespace RBAC", func() {
	newBinding := func(namespace, name string, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := binding(namespace, name)
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		change(b)
		return b
	}

	It("is deleted if the legacy operator created it, and never if no operator did [mlflow-74] [D33]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		foreign := createForeign(ctx, newBinding(namespace, viewBinding, func(*rbacv1.RoleBinding) {}))
		createForeign(ctx, newBinding(namespace, editBinding, func(b *rbacv1.RoleBinding) {
			b.Labels = map[string]string{"app.kubernetes.io/managed-by": "mlflow-operator"}
		}))
		env.WaitDeleted(ctx, binding(namespace, editBinding))
		waitIdle()
		remaining := binding(namespace, viewBinding)
		env.Get(ctx, remaining)
		Expect(remaining.UID).To(Equal(foreign.UID))

		setWorkspaceLabel(ctx, namespace, "another") // an MLflow with this name does not exist
		waitIdle()
		env.Get(ctx, remaining)
		Expect(remaining.UID).To(Equal(foreign.UID))
	}, NodeTimeout(specTimeout))

	It("is deleted although it has lost its labels and its owner reference", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		waitIdle()
		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, viewBinding), map[string]any{"metadata": map[string]any{"labels": nil, "ownerReferences": nil}})
		setWorkspaceLabel(ctx, namespace, nil)
		manager.Restart(ctx)
		waitBindingsDeleted(ctx, namespace)
	}, NodeTimeout(specTimeout))

	It("is not changed if another owner controls it, is reported in the status of MLflow, and is replaced once it is deleted [D33]", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		owner := create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}})
		foreign := createForeign(ctx, newBinding(namespace, viewBinding, func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
		}))
		setWorkspaceLabel(ctx, namespace, "mlflow")
		waitForBinding(ctx, namespace, editBinding, "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "RoleBindingsFailed")
		for _, c := range m.Status.Conditions {
			if c.Type == "NamespaceRBACReady" {
				Expect(c.Message).To(And(ContainSubstring("in 1 namespace(s)"), ContainSubstring(namespace+"/"+viewBinding), ContainSubstring("belongs to ConfigMap owner")))
			}
		}
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Admin.Delete(ctx, foreign, client.Preconditions{UID: new(foreign.UID)})).To(Succeed())
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
	}, NodeTimeout(specTimeout))
})
