package mlflow_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("An MLflow", Ordered, func() {
	var m *mlflowv1.MLflow
	BeforeAll(func(ctx SpecContext) { m = createReady(ctx, newMLflow()) }, NodeTimeout(specTimeout))

	It("creates a running server, and publishes its address [mlflow-31] [mlflow-34]", func(ctx SpecContext) {
		for _, child := range children() {
			env.Get(ctx, child)
			Expect(child.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "mlflow"), "%T", child)
			Expect(child.GetOwnerReferences()).To(HaveLen(1), "%T", child)
			Expect(child.GetOwnerReferences()[0].UID).To(Equal(m.UID))
		}
		Expect(m.Status.Address.URL).To(Equal("https://mlflow.opendatahub.svc:8443/mlflow"))
		Expect(m.Status.URL).To(Equal(gatewayURL + "/mlflow"))
		Expect(m.Status.ObservedGeneration).To(Equal(m.Generation), "[D18]")
		for _, c := range m.Status.Conditions {
			Expect(c.ObservedGeneration).To(Equal(m.Generation), "[D18] condition %s", c.Type)
		}
		link := consoleLink()
		env.Get(ctx, link)
		href, _, err := unstructured.NestedString(link.Object, "spec", "href")
		Expect(err).NotTo(HaveOccurred())
		Expect(href).To(Equal(gatewayURL+"/mlflow"), "[D29] one slash, although the configured URL ends in one")
	}, NodeTimeout(specTimeout))

	It("sends no write in the steady state, nor when every child object is touched [D20]", func(ctx SpecContext) {
		waitAvailable(ctx, m)
		env.ExpectIdle(manager.User, idlePeriod)
		env.Touch(ctx, append(children(), claim())...)
		env.ExpectIdle(manager.User, idlePeriod)
		env.SetAnnotation(ctx, deployment(), "example.com/note", "changes the generation of a Deployment")
		env.ExpectNoWrites(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("sends no write and a bounded number of reads when the manager restarts [D20]", func(ctx SpecContext) {
		waitAvailable(ctx, m)
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // a repeated Event is sent later
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(requests.Writes()).To(BeEmpty(), "writes after a restart:\n%s", requests.Writes())
		Expect(len(requests.Reads())).To(BeNumerically("<=", len(children())+70),
			"one get for each child, one list for each kind of obsolete children; for all components the webhook certificate, the objects with its CA, "+
				"the legacy configuration, and one list for each kind of legacy objects:\n%s", requests.Reads())
	}, NodeTimeout(specTimeout))

	It("reverts changes and deletions by other clients, including those while the manager is stopped", func(ctx SpecContext) {
		waitAvailable(ctx, m)
		env.Patch(ctx, deployment(), map[string]any{"spec": map[string]any{"replicas": 4}})
		Expect(env.Admin.Delete(ctx, networkPolicy("mlflow"))).To(Succeed())
		env.Patch(ctx, networkPolicy("mlflow-migration"), map[string]any{"spec": map[string]any{"ingress": []any{map[string]any{}}}})
		repaired := func(g Gomega) {
			d := deployment()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(*d.Spec.Replicas).To(Equal(int32(1)))
			policy := networkPolicy("mlflow")
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
			migrationPolicy := networkPolicy("mlflow-migration")
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(migrationPolicy), migrationPolicy)).To(Succeed())
			g.Expect(migrationPolicy.Spec.Ingress).To(BeEmpty(), "a policy without rules denies all traffic")
		}
		Eventually(repaired).WithContext(ctx).Should(Succeed())

		manager.StopTemporarily(ctx)
		env.Patch(ctx, deployment(), map[string]any{"spec": map[string]any{"replicas": 3}})
		Expect(env.Admin.Delete(ctx, networkPolicy("mlflow"))).To(Succeed())
		manager.Restart(ctx)
		Eventually(repaired).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("keeps fields that other clients add", func(ctx SpecContext) {
		waitAvailable(ctx, m)
		env.SetAnnotation(ctx, service(), "example.com/mesh", "on")
		env.ExpectIdle(manager.User, idlePeriod)
		s := service()
		env.Get(ctx, s)
		Expect(s.Annotations).To(HaveKeyWithValue("example.com/mesh", "on"))
	}, NodeTimeout(specTimeout))

	It("restores the shared ClusterRole [mlflow-35]", func(ctx SpecContext) {
		waitAvailable(ctx, m)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}
		env.Patch(ctx, role, map[string]any{"rules": []any{}})
		env.WaitFor(ctx, role, func(g Gomega) { g.Expect(role.Rules).To(HaveLen(3)) })
	}, NodeTimeout(specTimeout))

	It("is not reconciled while it is paused", func(ctx SpecContext) {
		env.SetAnnotation(ctx, m, "platform.opendatahub.io/paused", "true")
		env.WaitForCondition(ctx, m, "Paused", metav1.ConditionTrue, "")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(env.Admin.Delete(ctx, networkPolicy("mlflow"))).To(Succeed())
		env.ExpectNoWrites(manager.User, idlePeriod)
		env.SetAnnotation(ctx, m, "platform.opendatahub.io/paused", nil)
		Eventually(func() error {
			return env.Admin.Get(ctx, client.ObjectKeyFromObject(networkPolicy("mlflow")), networkPolicy("mlflow"))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A new MLflow", func() {
	It("sends one write for each child, one to scale up the Deployment and one for each status, stage by stage [D20] [D21]", func(ctx SpecContext) {
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // the cache of the manager may still contain the Job of the previous spec
		start := env.AuditPosition()
		createReady(ctx, newMLflow())
		// After its start, the manager also writes the certificate of the webhooks and objects of other components.
		managed := func(e framework.Entry) bool { return strings.HasPrefix(e.Name, mlflowv1.SingletonName) }
		all := env.Since(start)
		writes := all.ByUser(manager.User).WithoutEvents().Writes().Where(managed)
		var order []string
		for _, w := range writes {
			if w.Resource != "mlflows" {
				order = append(order, w.Resource+"/"+w.Name)
			}
		}
		Expect(order).To(HaveLen(13))
		Expect(order[:6]).To(ConsistOf("persistentvolumeclaims/mlflow-pvc", "serviceaccounts/mlflow-sa", "clusterroles/mlflow", "clusterrolebindings/mlflow",
			"networkpolicies/mlflow", "networkpolicies/mlflow-migration"))
		Expect(slices.Index(order, "clusterroles/mlflow")).To(BeNumerically("<", slices.Index(order, "clusterrolebindings/mlflow")))
		Expect(order[6:8]).To(Equal([]string{"deployments/mlflow", "jobs/mlflow-mg-3140-g1"}))
		Expect(order[8:12]).To(ConsistOf("services/mlflow", "servicemonitors/mlflow-metrics-monitor", "httproutes/mlflow", "consolelinks/mlflow"))
		Expect(order[12]).To(Equal("deployments/mlflow"), "scaled down for the migration, then up")
		statuses := writes.ForResource("mlflows")
		Expect(statuses.Where(func(e framework.Entry) bool { return e.Subresource != "status" })).To(BeEmpty())
		Expect(all.Unchanged().ByUser(manager.User).Where(managed)).To(BeEmpty(), "each status must differ from the previous one")
		Expect(len(statuses)).To(BeNumerically("<=", 6), "Job created, Job waits for the certificate, Job runs, not ready without the certificate, "+
			"not ready, ready; the manager may observe only some of these states:\n%s", statuses)
	}, NodeTimeout(specTimeout))

	It("adopts the objects of a deleted MLflow, except for its finished Job, which is replaced", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withJobs))
		objects := slices.Concat(children(), garbageCollectionObjects(), traceArchivalObjects(), []client.Object{claim()})
		uids := map[client.Object]types.UID{}
		for _, object := range objects {
			env.Get(ctx, object)
			uids[object] = object.GetUID()
		}
		firstUID := jobs(ctx)[0].UID
		unrelated := userJob("mlflow-mg-3140-g0", map[string]string{"mlflow.opendatahub.io/migration-job": "true", "mlflow.opendatahub.io/migration-instance": "mlflow"})
		create(ctx, unrelated)

		start := env.AuditPosition()
		Expect(env.Admin.Delete(ctx, m, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		env.WaitDeleted(ctx, m)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		for _, object := range objects {
			env.Get(ctx, object)
			Expect(object.GetOwnerReferences()).To(BeEmpty(), "%T %s got an owner reference to a terminating owner", object, object.GetName())
		}
		ofMLflow := func(e framework.Entry) bool { // other components write after the start of the manager too
			return e.Resource != "mlflows" && strings.HasPrefix(e.Name, mlflowv1.SingletonName)
		}
		Expect(env.Since(start).ObjectWrites(manager.User).Where(ofMLflow)).To(BeEmpty())

		start = env.AuditPosition()
		m = newMLflow(withJobs)
		Expect(env.Admin.Create(ctx, m)).To(Succeed())
		waitMigrated(ctx, m)
		for _, object := range objects {
			env.Get(ctx, object)
			Expect(object.GetUID()).To(Equal(uids[object]), "%T %s", object, object.GetName())
			if _, data := object.(*corev1.PersistentVolumeClaim); !data {
				Expect(object.GetOwnerReferences()).To(ConsistOf(HaveField("UID", m.UID)), "%T %s", object, object.GetName())
			}
		}
		current := jobs(ctx)
		Expect(current).To(ConsistOf(HaveField("Name", unrelated.Name), And(HaveField("Name", firstJob), HaveField("UID", Not(Equal(firstUID))))))
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(
			ConsistOf(And(HaveField("Resource", "jobs"), HaveField("Name", firstJob), HaveField("Code", 200))))
	}, NodeTimeout(specTimeout))

	It("deletes the previous ServiceAccount when spec.serviceAccountName changes", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"serviceAccountName": "tracking"}})
		env.WaitDeleted(ctx, serviceAccount("mlflow-sa"))
		waitAvailable(ctx, m)
		env.Get(ctx, serviceAccount("tracking"))
		deleteAndWait(ctx, m)
		env.WaitDeleted(ctx, serviceAccount("tracking"))
	}, NodeTimeout(specTimeout))

	It("uses only permissions of the shipped roles", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager.Restart(ctx)
		m := createReady(ctx, newMLflow())
		deleteAndWait(ctx, m)
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return isAuthError(e.Code) })).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
