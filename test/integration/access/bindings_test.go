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

var _ = Describe("A namespace that asks for MLflow", func() {
	It("lets the groups of the platform in, as long as everything is there [mlflow-69] [mlflow-70] [mlflow-71]", func(ctx SpecContext) {
		namespace := team(ctx, "mlflow")
		a := auth(list("users", "admins"), list("admins"))
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		settle()
		Expect(env.Exists(ctx, binding(namespace, view))).To(BeFalse())

		mark := env.Mark()
		create(ctx, a)
		v := binds(ctx, namespace, view, "users", "admins")
		e := binds(ctx, namespace, edit, "admins")
		for _, b := range []*rbacv1.RoleBinding{v, e} {
			Expect(b.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
			Expect(b.OwnerReferences).To(HaveLen(1))
			Expect(metav1.IsControlledBy(b, m)).To(BeTrue())
			Expect(b.ManagedFields).To(ContainElement(HaveField("Manager", "mlflow-operator")))
		}
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
		settle()
		Expect(env.Since(mark).ChildWrites(manager.User).Of("rolebindings")).To(HaveLen(2))
		env.ExpectAtRest(manager.User, quiet)

		Expect(env.Admin.Delete(ctx, a)).To(Succeed())
		bothGone(ctx, namespace)
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
		create(ctx, auth(list("users"), list("admins")))
		binds(ctx, namespace, view, "users", "admins")

		remove(ctx, m)
		bothGone(ctx, namespace)
		settle()
		env.ExpectAtRest(manager.User, quiet)
		create(ctx, server())
		binds(ctx, namespace, view, "users", "admins")

		for _, value := range []any{nil, "", "another"} {
			ask(ctx, namespace, value)
			bothGone(ctx, namespace)
			ask(ctx, namespace, "mlflow")
			binds(ctx, namespace, edit, "admins")
		}
	}, NodeTimeout(specTimeout))

	It("does not decide about another, and its end is no error [mlflow-71] [mlflow-72] [mlflow-75]", func(ctx SpecContext) {
		world(ctx)
		first, second, other := team(ctx, "mlflow"), team(ctx, "mlflow"), team(ctx, "another")
		for _, namespace := range []string{first, second} {
			binds(ctx, namespace, view, "users", "admins")
			binds(ctx, namespace, edit, "admins")
		}
		before := binds(ctx, second, view, "users", "admins").ResourceVersion
		ask(ctx, first, nil)
		bothGone(ctx, first)
		Expect(env.Admin.Delete(ctx, framework.NamespaceNamed(first))).To(Succeed())
		settle()
		Expect(binds(ctx, second, view, "users", "admins").ResourceVersion).To(Equal(before))
		Expect(env.Exists(ctx, binding(other, view))).To(BeFalse(), "it asks for an MLflow that does not exist")
	}, NodeTimeout(specTimeout))

	It("follows the groups, in whatever number [mlflow-73] [mlflow-75]", func(ctx SpecContext) {
		_, a := world(ctx)
		namespace := team(ctx, "mlflow")
		binds(ctx, namespace, view, "users", "admins")
		set := func(allowed, admin any) {
			GinkgoHelper()
			env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": allowed, "adminGroups": admin}})
		}
		set(list("b", "a", "b"), list("c", "a"))
		binds(ctx, namespace, view, "b", "a", "c")
		binds(ctx, namespace, edit, "c", "a")
		set(list(), list())
		binds(ctx, namespace, view)
		binds(ctx, namespace, edit)
		settle()
		env.ExpectAtRest(manager.User, quiet)

		// A managed RoleBinding without subjects is repaired as well.
		env.Patch(ctx, binding(namespace, edit), map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}})
		binds(ctx, namespace, edit)
		set(nil, list("only"))
		binds(ctx, namespace, view, "only")
		binds(ctx, namespace, edit, "only")
	}, NodeTimeout(specTimeout))

	It("keeps what it has when the groups make no sense, gets nothing new, and reports why [mlflow-73]", func(ctx SpecContext) {
		m, a := world(ctx)
		namespace := team(ctx, "mlflow")
		binds(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"adminGroups": "everyone"}})
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthInvalid")
		late := team(ctx, "mlflow")
		settle()
		Expect(env.Exists(ctx, binding(late, view))).To(BeFalse())
		binds(ctx, namespace, view, "users", "admins")
		env.ExpectAtRest(manager.User, quiet)
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": 7, "adminGroups": list("admins")}})
		settle()
		Expect(env.Exists(ctx, binding(late, view))).To(BeFalse())
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": list("users")}})
		binds(ctx, late, view, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "")
	}, NodeTimeout(specTimeout))

	It("gets back what was removed or changed, also what happened while no manager ran [mlflow-74] [mlflow-75]", func(ctx SpecContext) {
		world(ctx)
		namespace := team(ctx, "mlflow")
		binds(ctx, namespace, view, "users", "admins")
		binds(ctx, namespace, edit, "admins")
		rogue := map[string]any{"subjects": []any{map[string]any{"kind": "Group", "name": "rogue", "apiGroup": rbacv1.GroupName}}}
		wrong := func() {
			GinkgoHelper()
			Expect(env.Admin.Delete(ctx, binding(namespace, edit))).To(Succeed())
			b := binding(namespace, edit)
			b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
			Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, b))).To(Succeed())
		}
		Expect(env.Admin.Delete(ctx, binding(namespace, view))).To(Succeed())
		binds(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, binding(namespace, view), rogue)
		binds(ctx, namespace, view, "users", "admins")
		env.Patch(ctx, binding(namespace, view), map[string]any{"metadata": map[string]any{"labels": nil}})
		env.WaitFor(ctx, binding(namespace, view), nil)
		wrong()
		binds(ctx, namespace, edit, "admins")
		settle()

		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, view), rogue)
		wrong()
		held := binding(namespace, edit)
		env.Get(ctx, held)
		Expect(held.RoleRef.Name).To(Equal("view"), "or the spec is worth nothing")
		manager.Restart(ctx)
		binds(ctx, namespace, view, "users", "admins")
		renewed := binds(ctx, namespace, edit, "admins")
		Expect(renewed.UID).NotTo(Equal(held.UID))
		settle()
	}, NodeTimeout(specTimeout))

	It("takes over a binding of the name that a user made before [mlflow-74]", func(ctx SpecContext) {
		m, _ := world(ctx)
		namespace := env.Namespace(ctx, "team")
		before := binding(namespace, view)
		before.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mlflow-operator-mlflow-view"}
		before.Subjects = []rbacv1.Subject{{Kind: "User", Name: "another-user", APIGroup: rbacv1.GroupName}}
		plant(ctx, before)
		ask(ctx, namespace, "mlflow")
		after := binds(ctx, namespace, view, "users", "admins")
		Expect(after.UID).To(Equal(before.UID))
		Expect(metav1.IsControlledBy(after, m)).To(BeTrue())
		Expect(after.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "mlflow-operator"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A RoleBinding of one of the names", func() {
	made := func(namespace, name string, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := binding(namespace, name)
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
		change(b)
		return b
	}

	It("that no operator made is never removed, and one of the original is [mlflow-74] [D33]", func(ctx SpecContext) {
		world(ctx)
		namespace := env.Namespace(ctx, "team")
		theirs := plant(ctx, made(namespace, view, func(*rbacv1.RoleBinding) {}))
		plant(ctx, made(namespace, edit, func(b *rbacv1.RoleBinding) {
			b.Labels = map[string]string{"app.kubernetes.io/managed-by": "mlflow-operator"}
		}))
		env.WaitDeleted(ctx, binding(namespace, edit))
		settle()
		left := binding(namespace, view)
		env.Get(ctx, left)
		Expect(left.UID).To(Equal(theirs.UID))

		ask(ctx, namespace, "another") // the MLflow of this name does not exist either
		settle()
		env.Get(ctx, left)
		Expect(left.UID).To(Equal(theirs.UID))
	}, NodeTimeout(specTimeout))

	It("is removed by us when only its label has been taken away", func(ctx SpecContext) {
		world(ctx)
		namespace := team(ctx, "mlflow")
		binds(ctx, namespace, view, "users", "admins")
		settle()
		manager.StopTemporarily(ctx)
		env.Patch(ctx, binding(namespace, view), map[string]any{"metadata": map[string]any{"labels": nil, "ownerReferences": nil}})
		ask(ctx, namespace, nil)
		manager.Restart(ctx)
		bothGone(ctx, namespace)
	}, NodeTimeout(specTimeout))

	It("that something else controls is left alone, named in the status of MLflow, and replaced when it is gone [D33]", func(ctx SpecContext) {
		m, _ := world(ctx)
		namespace := env.Namespace(ctx, "team")
		boss := create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "boss"}})
		theirs := plant(ctx, made(namespace, view, func(b *rbacv1.RoleBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: boss.Name, UID: boss.UID, Controller: new(true)}}
		}))
		ask(ctx, namespace, "mlflow")
		binds(ctx, namespace, edit, "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "RoleBindingsFailed")
		for _, c := range m.Status.Conditions {
			if c.Type == "NamespaceRBACReady" {
				Expect(c.Message).To(And(ContainSubstring("in 1 namespace(s)"), ContainSubstring(namespace+"/"+view), ContainSubstring("belongs to ConfigMap boss")))
			}
		}
		settle()
		env.ExpectAtRest(manager.User, quiet)
		Expect(env.Admin.Delete(ctx, theirs, client.Preconditions{UID: new(theirs.UID)})).To(Succeed())
		binds(ctx, namespace, view, "users", "admins")
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "RoleBindingsReady")
	}, NodeTimeout(specTimeout))
})
