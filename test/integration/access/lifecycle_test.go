package access_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	authCRD = "auths.services.platform.opendatahub.io"
	// watchStartTimeout bounds the time from the creation of a CRD to the watch of its objects.
	watchStartTimeout = 5 * time.Second
	// namespaceCount is the number of namespaces for which writes are counted.
	namespaceCount = 200
)

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }

// deleteAuthCRD deletes the CRD of Auth, and returns a function that restores it. A cleanup also calls the function.
func deleteAuthCRD(ctx context.Context) (restoreCRD func(context.Context)) {
	GinkgoHelper()
	Expect(cluster.RemoveCRD(ctx, env.Config, authCRD)).To(Succeed())
	restoreCRD = func(ctx context.Context) {
		GinkgoHelper()
		Expect(cluster.InstallCRD(ctx, env.Config, authCRD)).To(Succeed())
	}
	DeferCleanup(restoreCRD, NodeTimeout(specTimeout))
	return restoreCRD
}

var _ = Describe("Namespace RBAC", func() {
	It("is idle until the CRD of Auth is installed, then creates the RoleBindings, and deletes them when the CRD is removed [mlflow-4] [mlflow-70]", func(ctx SpecContext) {
		restoreCRD := deleteAuthCRD(ctx)
		pid := manager.Process.PID
		namespace := createTeamNamespace(ctx, "mlflow")
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthAPIMissing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		for range 2 {
			start := env.AuditPosition()
			restoreCRD(ctx)
			Eventually(func() framework.Entries {
				return env.Since(start).ByUser(manager.User).ForResource("auths").Watches()
			}).WithContext(ctx).WithTimeout(watchStartTimeout).ShouldNot(BeEmpty())
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
			Expect(env.Admin.Create(ctx, auth(groups("users"), groups("admins")))).To(Succeed())
			waitForBinding(ctx, namespace, viewBinding, "users", "admins")
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "")

			Expect(cluster.RemoveCRD(ctx, env.Config, authCRD)).To(Succeed())
			waitBindingsDeleted(ctx, namespace)
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthAPIMissing")
			waitIdle()
			env.ExpectIdle(manager.User, idlePeriod)
		}
		Expect(manager.Process.PID).To(Equal(pid))
		Expect(manager.Process.Running()).To(BeTrue())
	}, NodeTimeout(2*specTimeout))

	It("ignores a terminating namespace [D33]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		waitIdle()
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"example.com/hold"}}}
		Expect(env.Admin.Create(ctx, held)).To(Succeed())
		start := env.AuditPosition()
		Expect(env.Admin.Delete(ctx, framework.NamespaceNamed(namespace))).To(Succeed())
		waitBindingsDeleted(ctx, namespace)
		env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"allowedGroups": groups("others")}})
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ObjectWrites(manager.User)).To(BeEmpty())
		env.Get(ctx, m)
		Expect(conditions.IsTrue(m.Status.Conditions, "NamespaceRBACReady")).To(BeTrue())
		env.Patch(ctx, held, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, framework.NamespaceNamed(namespace))
	}, NodeTimeout(specTimeout))

	It("sends two writes for each of 200 namespaces when the groups change, and none otherwise [D33]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		var names []string
		for range namespaceCount {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Labels: map[string]string{workspaceLabel: "mlflow"}}}
			Expect(env.Admin.Create(ctx, namespace)).To(Succeed())
			names = append(names, namespace.Name)
		}
		DeferCleanup(func(ctx SpecContext) { // deleting the namespaces would take the API server 17,000 requests
			for _, name := range names {
				setWorkspaceLabel(ctx, name, nil)
			}
			waitForViewBindings(ctx, 0, "users", "root")
		}, NodeTimeout(specTimeout))
		waitForViewBindings(ctx, namespaceCount, "users", "admins")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		start := env.AuditPosition()
		env.Patch(ctx, authRef(a), map[string]any{"spec": map[string]any{"adminGroups": groups("root")}})
		waitForViewBindings(ctx, namespaceCount, "users", "root")
		waitIdle()
		Expect(env.Since(start).ObjectWrites(manager.User)).To(HaveLen(2*namespaceCount), "two RoleBindings in each namespace")
		Expect(env.Since(start).ByUser(manager.User).Reads()).To(BeEmpty())

		// The status of MLflow, and fields of Auth other than the groups, cause no write of a RoleBinding.
		start = env.AuditPosition()
		for _, url := range []any{"https://elsewhere.example.com", nil} {
			env.Patch(ctx, m, map[string]any{"status": map[string]any{"url": url}}, "status")
		}
		env.SetLabel(ctx, authRef(a), "example.com/touched", "yes")
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ObjectWrites(manager.User).ForResource("rolebindings")).To(BeEmpty())

		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(requests.Writes()).To(BeEmpty())
		Expect(len(requests.ForResource("rolebindings").Reads())).To(BeNumerically("<=", 2*namespaceCount+2), "one get for each child, one list for each name")
		Expect(len(requests.ForResource("auths").Reads())).To(BeNumerically("<=", 1))
	}, NodeTimeout(2*specTimeout))

	It("uses only permissions of the shipped roles, and lists and watches RoleBindings and Auths only by name", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager.Restart(ctx)
		m, _ := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		setWorkspaceLabel(ctx, namespace, nil)
		waitBindingsDeleted(ctx, namespace)
		deleteAndWait(ctx, m)
		requests := env.Since(start).ByUser(manager.User)
		Expect(requests.Forbidden()).To(BeEmpty())
		lists := append(requests.ForResource("rolebindings"), requests.ForResource("auths")...)
		for _, e := range append(lists.Watches(), lists.Reads()...) {
			if e.Name == "" {
				Expect(e.URI).To(ContainSubstring("fieldSelector=metadata.name%3D"))
			}
		}
	}, NodeTimeout(specTimeout))

	It("sends no request and sets no condition unless it is enabled", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, viewBinding, "users", "admins")
		waitIdle()
		manager.StopTemporarily(ctx)
		disabled := options
		disabled.Name, disabled.Env = "disabled", []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"}
		start := env.AuditPosition()
		disabledManager := env.StartManager(ctx, disabled)
		env.WaitFor(ctx, m, func(g Gomega) {
			_, reported := conditions.Get(m.Status.Conditions, "NamespaceRBACReady")
			g.Expect(reported).To(BeFalse())
		})
		waitIdle()
		for _, resource := range []string{"rolebindings", "auths", "namespaces"} {
			Expect(env.Since(start).ByUser(disabledManager.User).ForResource(resource)).To(BeEmpty())
		}
		waitForBinding(ctx, namespace, viewBinding, "users", "admins") // existing RoleBindings stay
		disabledManager.Stop(ctx)
	}, NodeTimeout(specTimeout))
})
