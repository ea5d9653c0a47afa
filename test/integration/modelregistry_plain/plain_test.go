package modelregistry_plain_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const lastApplied = "banzaicloud.com/last-applied"

var _ = Describe("A registry on plain Kubernetes", func() {
	It("becomes available behind a proxy without waiting for a Route [modelregistry-27] [modelregistry-31] [D33]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := registry("proxied", proxied)
		env.Create(ctx, m)
		waitAvailable(ctx, m)
		serving := certificate(m) // which the manager creates where no platform does
		env.Get(ctx, serving)
		Expect(serving.Data).To(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt")))
		Expect(metav1.IsControlledBy(serving, m)).To(BeTrue())
		Expect(m.Status.Hosts).To(Equal([]string{"proxied.opendatahub.svc.cluster.local", "proxied.opendatahub", "proxied"}), "[D22]")
		s := child(m, &corev1.Service{}, "")
		env.Get(ctx, s)
		Expect(s.Annotations).NotTo(HaveKey("routing.opendatahub.io/external-address-rest"), "[D22]")
		env.Get(ctx, delegator(m))
		config := child(m, &corev1.ConfigMap{}, "-kube-rbac-proxy-config")
		env.Get(ctx, config)
		Expect(config.Data["config-file.yaml"]).To(And(ContainSubstring("authorization"), ContainSubstring("resourceAttributes")))
		env.Get(ctx, child(m, &networkingv1.NetworkPolicy{}, "-ingress")) // [S1]
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty(), "[S8]")
	}, NodeTimeout(specTimeout))

	It("loses all objects of its proxy when the spec removes it", func(ctx SpecContext) {
		m := registry("stripped", proxied)
		env.Create(ctx, certificate(m), m)
		waitAvailable(ctx, m)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"kubeRBACProxy": nil}})
		env.WaitDeleted(ctx, delegator(m), child(m, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"))
		env.WaitDeleted(ctx, child(m, &networkingv1.NetworkPolicy{}, "-ingress"))
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "KubeRBACProxyAvailable")).To(Equal(metav1.Condition{}))
		})
		waitAvailable(ctx, m)
	}, NodeTimeout(specTimeout))

	It("adopts objects that a deletion orphaned, with only the permissions that OpenShift requires", func(ctx SpecContext) {
		m := registry("orphaned", generated)
		env.Create(ctx, m)
		waitAvailable(ctx, m)
		parts := []client.Object{deployment(m), child(m, &appsv1.Deployment{}, "-postgres"), child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(m, &corev1.ServiceAccount{}, "")}
		uids := map[client.Object]types.UID{}
		for _, part := range parts {
			env.Get(ctx, part)
			Expect(metav1.IsControlledBy(part, m)).To(BeTrue(), "%T", part)
			uids[part] = part.GetUID()
		}
		Expect(env.Admin.Delete(ctx, m, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		env.WaitDeleted(ctx, m)
		for _, part := range parts { // the manager observed the deletion, and set no owner reference again
			env.Get(ctx, part)
			Expect(part.GetOwnerReferences()).To(BeEmpty(), "%T", part)
		}
		start := env.AuditPosition()
		m = registry("orphaned", generated)
		env.Create(ctx, m)
		waitAvailable(ctx, m)
		for _, part := range parts {
			env.WaitFor(ctx, part, func(g Gomega) { g.Expect(metav1.IsControlledBy(part, m)).To(BeTrue(), "%T", part) })
			Expect(part.GetUID()).To(Equal(uids[part]), "%T", part)
		}
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("runs on MySQL, and can be deleted on a cluster without the Gateway API [modelregistry-26] [modelregistry-35] [D2]", func(ctx SpecContext) {
		m := registry("mysql", func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres = nil
			m.Spec.MySQL = &v1beta1.MySQLConfig{Host: "db", Username: "u", Database: "d"}
		})
		env.Create(ctx, m)
		waitAvailable(ctx, m)
		Expect(client.IgnoreNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(delegator(m)), delegator(m)))).To(Succeed())
		service := child(m, &corev1.Service{}, "")
		env.Get(ctx, service)
		Expect(service.Spec.Ports).To(HaveLen(1))
		Expect(service.Spec.Ports[0].Name).To(Equal("http-api"))
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mysql-postgres"}, deployment(m))).NotTo(Succeed())
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mysql-users"}, &rbacv1.RoleBinding{})).NotTo(Succeed())
		env.Delete(ctx, m)
	}, NodeTimeout(specTimeout))

	It("is validated in every reconcile if webhooks are disabled, and its status shows the errors", func(ctx SpecContext) {
		env.DeleteTemporarily(ctx,
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-mutating-webhook-configuration"}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-validating-webhook-configuration"}})
		m := registry("unchecked", func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres = nil
			m.Spec.Rest.Port = new(int32(8080)) // an empty spec would not be sent
		})
		Eventually(func() error { return env.Admin.Create(ctx, m.DeepCopy(), client.DryRunAll) }).WithContext(ctx).Should(Succeed())
		env.Create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentUnavailable")
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(ContainSubstring("postgres"))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"postgres": map[string]any{"host": "db"}}})
		waitAvailable(ctx, m)
	}, NodeTimeout(specTimeout))

	for _, file := range []string{"generated-database-plain.yaml", "custom-proxy-plain.yaml", "mysql-tls-plain.yaml"} {
		It("of the legacy operator is taken over: "+file+" [S2] [D5] [D7]", func(ctx SpecContext) {
			objects := framework.Recording("../../../controllers/modelregistry/resources/testdata/recordings/"+file, "lab-registries", namespace)
			m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: objects[0].GetName()}}
			m.Annotations = map[string]string{"platform.opendatahub.io/paused": "true"}
			stored := &v1beta1.ModelRegistry{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, stored)).To(Succeed())
			m.Spec = stored.Spec
			env.Create(ctx, m)
			env.WaitForCondition(ctx, m, "Paused", metav1.ConditionTrue, "")
			children := objects[1:]
			env.CreateRecording(ctx, children, framework.RecordingOptions{Owner: m, Manager: "manager", Annotations: map[string]string{lastApplied: "UEsDBBQACAAIAA=="}})
			DeferCleanup(func(ctx SpecContext) {
				env.Delete(ctx, m)           // it would recreate its children
				for _, c := range children { // the data is retained
					Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, c))).To(Succeed())
					env.WaitDeleted(ctx, c)
				}
			}, NodeTimeout(specTimeout))
			d := deployment(m)
			env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.AvailableReplicas).To(Equal(int32(1))) })
			var before []*unstructured.Unstructured
			for _, c := range children {
				before = append(before, env.Live(ctx, c))
			}
			start := env.AuditPosition()
			env.SetAnnotation(ctx, m, "platform.opendatahub.io/paused", nil)
			env.WaitFor(ctx, m, func(g Gomega) {
				g.Expect(framework.FindCondition(m.Status.Conditions, "Paused")).To(Equal(metav1.Condition{}))
			})
			waitAvailable(ctx, m)
			env.WaitIdle(manager.User, quiet, specTimeout)
			for i, c := range children {
				now := env.Live(ctx, c)
				name := c.GetKind() + " " + c.GetName()
				Expect(now.GetUID()).To(Equal(before[i].GetUID()), name)
				Expect(now.GetAnnotations()).NotTo(HaveKey(lastApplied), name)
				switch c.GetKind() {
				case "Service", "PersistentVolumeClaim":
					Expect(now.Object["spec"]).To(Equal(before[i].Object["spec"]), name)
				case "Secret":
					Expect(now.Object["data"]).To(Equal(before[i].Object["data"]), name)
					Expect(now.GetOwnerReferences()).To(BeEmpty(), name)
				}
			}
			Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(BeEmpty())
			env.ExpectIdle(manager.User, quiet)
		}, NodeTimeout(specTimeout))
	}

	It("sends no request in the steady state in great number, and a bounded number of requests each [W4]", func(ctx SpecContext) {
		const count = 100
		start := env.AuditPosition()
		var all []client.Object
		for i := range count {
			all = append(all, registry(fmt.Sprintf("many-%03d", i)))
		}
		env.Create(ctx, all...)
		for _, o := range all {
			m, ok := o.(*v1beta1.ModelRegistry)
			Expect(ok).To(BeTrue())
			waitAvailable(ctx, m)
		}
		env.WaitIdle(manager.User, quiet, specTimeout)
		mine := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery().WithoutEvents()
		AddReportEntry("requests per registry", fmt.Sprintf("%d writes, %d reads", len(mine.Writes())/count, len(mine.Reads())/count))
		// Children and a few statuses. The finalizer comes from admission, and what is read is read once for all of them.
		Expect(len(mine.Writes())).To(BeNumerically("<=", count*10), "writes")
		Expect(len(mine.Reads())).To(BeNumerically("<=", count*3), "reads")
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))
})
