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
	definition = "auths.services.platform.opendatahub.io"
	// lateStart bounds the time from the creation of a CRD to the first reconcile of its component.
	lateStart = 5 * time.Second
	// crowd is the number of namespaces whose requests are counted.
	crowd = 200
)

func isNoMatch(err error) bool { return meta.IsNoMatchError(err) }

// deleteAuthCRD deletes the CRD of Auth and returns a function that restores it; the end of the spec restores it too.
func deleteAuthCRD(ctx context.Context) (restoreCRD func(context.Context)) {
	GinkgoHelper()
	Expect(cluster.RemoveCRD(ctx, env.Config, definition)).To(Succeed())
	restoreCRD = func(ctx context.Context) {
		GinkgoHelper()
		Expect(cluster.InstallCRD(ctx, env.Config, definition)).To(Succeed())
	}
	DeferCleanup(restoreCRD, NodeTimeout(specTimeout))
	return restoreCRD
}

var _ = Describe("Namespace RBAC", func() {
	It("waits for the API of Auth without a request, starts after it appears, and revokes access when it is removed [mlflow-4] [mlflow-70]", func(ctx SpecContext) {
		restoreCRD := deleteAuthCRD(ctx)
		pid := manager.Process.PID
		namespace := createTeamNamespace(ctx, "mlflow")
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthAPIMissing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
		for range 2 {
			start := env.AuditPosition()
			restoreCRD(ctx)
			Eventually(func() framework.Entries {
				return env.Since(start).ByUser(manager.User).Of("auths").Watches()
			}).WithContext(ctx).WithTimeout(lateStart).ShouldNot(BeEmpty())
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthMissing")
			Expect(env.Admin.Create(ctx, auth(list("users"), list("admins")))).To(Succeed())
			waitForBinding(ctx, namespace, view, "users", "admins")
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionTrue, "")

			Expect(cluster.RemoveCRD(ctx, env.Config, definition)).To(Succeed())
			waitBindingsDeleted(ctx, namespace)
			env.WaitForCondition(ctx, m, "NamespaceRBACReady", metav1.ConditionFalse, "AuthAPIMissing")
			waitIdle()
			env.ExpectIdle(manager.User, quiet)
		}
		Expect(manager.Process.PID).To(Equal(pid))
		Expect(manager.Process.Running()).To(BeTrue())
	}, NodeTimeout(2*specTimeout))

	It("ignores a terminating namespace, without errors [D33]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		waitIdle()
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"example.com/hold"}}}
		Expect(env.Admin.Create(ctx, held)).To(Succeed())
		start := env.AuditPosition()
		Expect(env.Admin.Delete(ctx, framework.NamespaceNamed(namespace))).To(Succeed())
		waitBindingsDeleted(ctx, namespace)
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"allowedGroups": list("others")}})
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Since(start).ChildWrites(manager.User)).To(BeEmpty())
		env.Get(ctx, m)
		Expect(conditions.IsTrue(m.Status.Conditions, "NamespaceRBACReady")).To(BeTrue())
		env.Patch(ctx, held, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, framework.NamespaceNamed(namespace))
	}, NodeTimeout(specTimeout))

	It("sends two writes for each of 200 namespaces when the groups change, and none otherwise [D33]", func(ctx SpecContext) {
		m, a := createServerAndAuth(ctx)
		var names []string
		for range crowd {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "crowd-", Labels: map[string]string{label: "mlflow"}}}
			Expect(env.Admin.Create(ctx, namespace)).To(Succeed())
			names = append(names, namespace.Name)
		}
		DeferCleanup(func(ctx SpecContext) { // deleting the namespaces would take the API server 17,000 requests
			for _, name := range names {
				setWorkspaceLabel(ctx, name, nil)
			}
			expectBindings(ctx, 0, "users", "root")
		}, NodeTimeout(specTimeout))
		expectBindings(ctx, crowd, "users", "admins")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")
		waitIdle()
		env.ExpectIdle(manager.User, quiet)

		start := env.AuditPosition()
		env.Patch(ctx, ofAuth(a), map[string]any{"spec": map[string]any{"adminGroups": list("root")}})
		expectBindings(ctx, crowd, "users", "root")
		waitIdle()
		Expect(env.Since(start).ChildWrites(manager.User)).To(HaveLen(2*crowd), "two RoleBindings each")
		Expect(env.Since(start).ByUser(manager.User).Reads()).To(BeEmpty())

		// The status of MLflow, and fields of Auth other than the groups, cause no request.
		for _, url := range []any{"https://elsewhere.example.com", nil} {
			env.Patch(ctx, m, map[string]any{"status": map[string]any{"url": url}}, "status")
		}
		env.SetLabel(ctx, ofAuth(a), "example.com/touched", "yes")
		waitIdle()
		start = env.AuditPosition()
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Since(start).ChildWrites(manager.User)).To(BeEmpty())

		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, quiet, specTimeout)
		mine := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(mine.Writes()).To(BeEmpty())
		Expect(len(mine.Of("rolebindings").Reads())).To(BeNumerically("<=", 2*crowd+2), "one get for each child, one list for each name")
		Expect(len(mine.Of("auths").Reads())).To(BeNumerically("<=", 1))
	}, NodeTimeout(2*specTimeout))

	It("never uses a permission that the shipped roles lack, and watches only the two names and the one Auth", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager.Restart(ctx)
		m, _ := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		setWorkspaceLabel(ctx, namespace, nil)
		waitBindingsDeleted(ctx, namespace)
		remove(ctx, m)
		mine := env.Since(start).ByUser(manager.User)
		Expect(mine.Refused()).To(BeEmpty())
		lists := append(mine.Of("rolebindings"), mine.Of("auths")...)
		for _, e := range append(lists.Watches(), lists.Reads()...) {
			if e.Name == "" {
				Expect(e.URI).To(ContainSubstring("fieldSelector=metadata.name%3D"))
			}
		}
	}, NodeTimeout(specTimeout))

	It("sends no request and sets no condition unless it is enabled", func(ctx SpecContext) {
		m, _ := createServerAndAuth(ctx)
		namespace := createTeamNamespace(ctx, "mlflow")
		waitForBinding(ctx, namespace, view, "users", "admins")
		waitIdle()
		manager.StopTemporarily(ctx)
		off := options
		off.Name, off.Env = "off", []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"}
		start := env.AuditPosition()
		other := env.StartManager(ctx, off)
		env.WaitFor(ctx, m, func(g Gomega) {
			_, reported := conditions.Get(m.Status.Conditions, "NamespaceRBACReady")
			g.Expect(reported).To(BeFalse())
		})
		waitIdle()
		for _, resource := range []string{"rolebindings", "auths", "namespaces"} {
			Expect(env.Since(start).ByUser(other.User).Of(resource)).To(BeEmpty())
		}
		waitForBinding(ctx, namespace, view, "users", "admins") // existing RoleBindings stay
		other.Stop(ctx)
	}, NodeTimeout(specTimeout))
})
