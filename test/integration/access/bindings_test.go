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
	It("grants access to the groups of the platform while all its preconditions hold [mlflow-69] [mlflow-70] [mlflow-71]", func(ctx SpecContext) {
		namespace := createTeamNamespace(ctx, "mlflow")
		a := auth(list("users", "admins"), list("admins"))
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		Expect(env.Exists(ctx, binding(namespace, view))).To(BeFalse())

		start := env.AuditPosition()
		create(ctx, a)
		v := waitForBinding(ctx, namespace, view, "users", "admins")
		e := waitForBinding(ctx, namespace, edit, "admins")
		for _, b := range []*rbacv1.RoleBinding{v, e} {
			Expect(b.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
			Expect(b.OwnerReferences).To(HaveLen(1))
			Expect(metav1.IsControlledBy(b, m)).To(BeTrue())
			Expect(b.ManagedFields).To(ContainElement(HaveField("Manager", "mlflow-operator")))
		}
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
		waitIdle()
		Expect(env.Since(start).ChildWrites(manager.User).Of("rolebindings")).To(HaveLen(2))
		env.ExpectIdle(manager.User, quiet)

		Expect(env.Admin.Delete(ctx, a)).To(Succeed())
		waitBindingsDeleted(ctx, namespace)
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		create(ctx, auth(list("users"), list("admins")))
		waitForBinding(ctx, namespace, view, "users", "admins")

		remove(ctx, m)
		waitBindingsDeleted(ctx, namespace)
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
		create(ctx, server())
		waitForBinding(ctx, namespace, view, "users", "admins")

		for _, value := range []any{nil, "", "another"} {
			setWorkspaceLabel(ctx, namespace, value)
			waitBindingsDeleted(ctx, namespace)
			setWorkspaceLabel(ctx, namespace, "mlflow")
			waitForBinding(ctx, namespace, edit, "admins")
		}
	}, NodeTimeout(specTimeout))

	It("does not affect other namespaces, and its deletion is no error [mlflow-71] [mlflow-72] [mlflow-75]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		first, second, other := createTeamNamespace(ctx, "mlflow"), createTeamNamespace(ctx, "mlflow"), createTeamNamespace(ctx, "another")
		for _, namespace := range []string{first, second} {
			waitForBinding(ctx, namespace, view, "users", "admins")
			waitForBinding(ctx, namespace, edit, "admins")
		}
		before := waitForBinding(ctx, second, view, "users", "admins").ResourceVersion
		setWorkspaceLabel(ctx, first, nil)
		waitBindingsDeleted(ctx, first)
		Expect(env.Admin.Delete(ctx, framework.NamespaceNamed(first))).To(Succeed())
		waitIdle()
		Expect(waitForBinding(ctx, second, view, "users", "admins").ResourceVersion).To(Equal(before))
		Expect(env.Exists(ctx, binding(other, view))).To(BeFalse(), "it asks for an MLflow that does not exist")
	}, NodeTimeout(specTimeout))

	It("updates the bindings when the number of groups changes [mlflow-73] [mlflow-75]", func(ctx SpecContext) {
		_, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		set := func(allowed, admin any) {
			GinkgoHelper()
			env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": allowed, "adminGroups": admin}})
		}
		set(list("b", "a", "b"), list("c", "a"))
		waitForBinding(ctx, namespace, view, "b", "a", "c")
		waitForBinding(ctx, namespace, edit, "c", "a")
		set(list(), list())
		waitForBinding(ctx, namespace, view)
		waitForBinding(ctx, namespace, edit)
		waitIdle()
		env.ExpectIdle(manager.User, quiet)

		// A managed RoleBinding without subjects is repaired as well.
		env.Patch(ctx, binding(namespace, edit), map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}})
		waitForBinding(ctx, namespace, edit)
		set(nil, list("only"))
		waitForBinding(ctx, namespace, view, "only")
		waitForBinding(ctx, namespace, edit, "only")
	}, NodeTimeout(specTimeout))

	It("keeps its bindings while the groups are invalid, gets no new ones, and reports the reason [mlflow-73]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"adminGroups": "everyone"}})
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthInvalid")
		late := createTeamNamespace(ctx, "mlflow")
		waitIdle()
		Expect(env.Exists(ctx, binding(late, view))).To(BeFalse())
		waitForBinding(ctx, namespace, view, "users", "admins")
		env.ExpectIdle(manager.User, quiet)
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": 7, "adminGroups": list("admins")}})
		waitIdle()
		Expect(env.Exists(ctx, binding(late, view))).To(BeFalse())
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": list("users")}})
		waitForBinding(ctx, late, view, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "")
	}, NodeTimeout(specTimeout))

	It("has its bindings restored after changes and deletions, also those during the downtime of the manager [mlflow-74] [mlflow-75]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		waitForBinding(ctx, namespace, edit, "admins")
		rogue := map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}}
		wrong := func() {
			GinkgoHelper()
			Expect(env.Admin.Delete(ctx, binding(namespace, edit))).To(Succeed())
			b := binding(namespace, edit)
			b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
			Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, b))).To(Succeed())
		}
		Expect(env.Admin.Delete(ctx, binding(namespace, view))).To(Succeed())
		waitForBinding(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, binding(namespace, view), rogue)
		waitForBinding(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, binding(namespace, view), map[string]any{"metadata": map[string]any{"labels": nil}})
		env.WaitFor(ctx, binding(namespace, view), nil)
		wrong()
		waitForBinding(ctx, namespace, edit, "admins")
		waitIdle()

		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, view), rogue)
		wrong()
		held := binding(namespace, edit)
		env.Get(ctx, held)
		Expect(held.RoleRef.Name).To(Equal("view"), "or the spec is worth nothing")
		manager.Restart(ctx)
		waitForBinding(ctx, namespace, view, "users", "admins")
		renewed := waitForBinding(ctx, namespace, edit, "admins")
		Expect(renewed.UID).NotTo(Equal(held.UID))
		waitIdle()
	}, NodeTimeout(specTimeout))

	It("adopts a binding of the same name that a user created earlier [mlflow-74]", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		before := binding(namespace, view)
		before.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlflow-operator-mlflow-view"}
		before.Subjects = []rbacv1.Subject{{Kind: "User", Name: "another-user", APIGroup: rbacv1.GroupName}}
		createForeign(ctx, before)
		setWorkspaceLabel(ctx, namespace, "mlflow")
		after := waitForBinding(ctx, namespace, view, "users", "admins")
		Expect(after.UID).To(Equal(before.UID))
		Expect(metav1.IsControlledBy(after, m)).To(BeTrue())
		Expect(after.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A RoleBinding with a name of namespace RBAC", func() {
	made := func(namespace, name string, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := binding(namespace, name)
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		change(b)
		return b
	}

	It("is never removed if no operator created it, and is if the legacy operator did [mlflow-74] [D33]", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		foreign := createForeign(ctx, made(namespace, view, func(*rbacv1.RoleBinding) {}))
		createForeign(ctx, made(namespace, edit, func(b *rbacv1.RoleBinding) {
			b.Labels = map[string]string{"app.kubernetes.io/managed-by": "mlflow-operator"}
		}))
		env.WaitDeleted(ctx, binding(namespace, edit))
		waitIdle()
		left := binding(namespace, view)
		env.Get(ctx, left)
		Expect(left.UID).To(Equal(foreign.UID))

		setWorkspaceLabel(ctx, namespace, "another") // the MLflow of this name does not exist either
		waitIdle()
		env.Get(ctx, left)
		Expect(left.UID).To(Equal(foreign.UID))
	}, NodeTimeout(specTimeout))

	It("is removed if it only lost its label", func(ctx SpecContext) {
		createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		waitIdle()
		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, view), map[string]any{"metadata": map[string]any{"labels": nil, "ownerReferences": nil}})
		setWorkspaceLabel(ctx, namespace, nil)
		manager.Restart(ctx)
		waitBindingsDeleted(ctx, namespace)
	}, NodeTimeout(specTimeout))

	It("is not changed if another owner controls it, is reported in the status of MLflow, and is replaced once it is deleted [D33]", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := env.Namespace(ctx, "team")
		boss := create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "boss"}})
		foreign := createForeign(ctx, made(namespace, view, func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: boss.Name, UID: boss.UID, Controller: new(true)}}
		}))
		setWorkspaceLabel(ctx, namespace, "mlflow")
		waitForBinding(ctx, namespace, edit, "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "RoleBindingsFailed")
		for _, c := range m.Status.Conditions {
			if c.Type == "NamespaceRBACReady" {
				Expect(c.Message).To(And(ContainSubstring("in 1 namespace(s)"), ContainSubstring(namespace+"/"+view), ContainSubstring("belongs to ConfigMap boss")))
			}
		}
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Admin.Delete(ctx, foreign, client.Preconditions{UID: new(foreign.UID)})).To(Succeed())
		waitForBinding(ctx, namespace, view, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
	}, NodeTimeout(specTimeout))
})
