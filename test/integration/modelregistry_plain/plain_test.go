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

const lastAppliedAnnotation = "banzaicloud.com/last-applied"

var _ = Describe("A registry on plain Kubernetes", func() {
	It("becomes available behind a proxy without waiting for a Route [modelregistry-27] [modelregistry-31] [D33]", func(ctx SpecContext) {
		start := env.AuditPosition()
		registry := newRegistry("proxied", withProxy)
		env.Create(ctx, registry)
		waitAvailable(ctx, registry)
		servingSecret := proxyCertificate(registry) // the manager creates it, because the cluster has no service CA
		env.Get(ctx, servingSecret)
		Expect(servingSecret.Data).To(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt")))
		Expect(metav1.IsControlledBy(servingSecret, registry)).To(BeTrue())
		Expect(registry.Status.Hosts).To(Equal([]string{"proxied.opendatahub.svc.cluster.local", "proxied.opendatahub", "proxied"}), "[D22]")
		service := child(registry, &corev1.Service{}, "")
		env.Get(ctx, service)
		Expect(service.Annotations).NotTo(HaveKey("routing.opendatahub.io/external-address-rest"), "[D22]")
		env.Get(ctx, authDelegatorBinding(registry))
		config := child(registry, &corev1.ConfigMap{}, "-kube-rbac-proxy-config")
		env.Get(ctx, config)
		Expect(config.Data["config-file.yaml"]).To(And(ContainSubstring("authorization"), ContainSubstring("resourceAttributes")))
		env.Get(ctx, child(registry, &networkingv1.NetworkPolicy{}, "-ingress")) // [S1]
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty(), "[S8]")
	}, NodeTimeout(specTimeout))

	It("loses all objects of its proxy when the spec removes it", func(ctx SpecContext) {
		registry := newRegistry("stripped", withProxy)
		env.Create(ctx, proxyCertificate(registry), registry)
		waitAvailable(ctx, registry)
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"kubeRBACProxy": nil}})
		env.WaitDeleted(ctx, authDelegatorBinding(registry), child(registry, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"))
		env.WaitDeleted(ctx, child(registry, &networkingv1.NetworkPolicy{}, "-ingress"))
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "KubeRBACProxyAvailable")).To(Equal(metav1.Condition{}))
		})
		waitAvailable(ctx, registry)
	}, NodeTimeout(specTimeout))

	It("adopts objects that a deletion orphaned, and has the permissions that OpenShift requires for this", func(ctx SpecContext) {
		registry := newRegistry("orphaned", withGeneratedDatabase)
		env.Create(ctx, registry)
		waitAvailable(ctx, registry)
		orphans := []client.Object{deploymentOf(registry), child(registry, &appsv1.Deployment{}, "-postgres"), child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(registry, &corev1.ServiceAccount{}, "")}
		uids := map[client.Object]types.UID{}
		for _, object := range orphans {
			env.Get(ctx, object)
			Expect(metav1.IsControlledBy(object, registry)).To(BeTrue(), "%T", object)
			uids[object] = object.GetUID()
		}
		Expect(env.Admin.Delete(ctx, registry, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		env.WaitDeleted(ctx, registry)
		for _, object := range orphans { // the manager must not set the owner reference again
			env.Get(ctx, object)
			Expect(object.GetOwnerReferences()).To(BeEmpty(), "%T", object)
		}
		start := env.AuditPosition()
		registry = newRegistry("orphaned", withGeneratedDatabase)
		env.Create(ctx, registry)
		waitAvailable(ctx, registry)
		for _, object := range orphans {
			env.WaitFor(ctx, object, func(g Gomega) { g.Expect(metav1.IsControlledBy(object, registry)).To(BeTrue(), "%T", object) })
			Expect(object.GetUID()).To(Equal(uids[object]), "%T", object)
		}
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("runs on MySQL, and can be deleted on a cluster without the Gateway API [modelregistry-26] [modelregistry-35] [D2]", func(ctx SpecContext) {
		registry := newRegistry("mysql", func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres = nil
			registry.Spec.MySQL = &v1beta1.MySQLConfig{Host: "db", Username: "u", Database: "d"}
		})
		env.Create(ctx, registry)
		waitAvailable(ctx, registry)
		env.ExpectAbsent(ctx, authDelegatorBinding(registry))
		service := child(registry, &corev1.Service{}, "")
		env.Get(ctx, service)
		Expect(service.Spec.Ports).To(HaveLen(1))
		Expect(service.Spec.Ports[0].Name).To(Equal("http-api"))
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mysql-postgres"}, deploymentOf(registry))).NotTo(Succeed())
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "mysql-users"}, &rbacv1.RoleBinding{})).NotTo(Succeed())
		env.Delete(ctx, registry)
	}, NodeTimeout(specTimeout))

	It("is validated in every reconcile if webhooks are disabled, and its status shows the errors", func(ctx SpecContext) {
		env.DeleteTemporarily(ctx,
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-mutating-webhook-configuration"}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-validating-webhook-configuration"}})
		registry := newRegistry("unchecked", func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres = nil
			registry.Spec.Rest.Port = new(int32(8080)) // an empty spec would be omitted
		})
		Eventually(func() error { return env.Admin.Create(ctx, registry.DeepCopy(), client.DryRunAll) }).WithContext(ctx).Should(Succeed())
		env.Create(ctx, registry)
		env.WaitForCondition(ctx, registry, "Available", metav1.ConditionFalse, "DeploymentUnavailable")
		Expect(framework.FindCondition(registry.Status.Conditions, "Available").Message).To(ContainSubstring("postgres"))
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"postgres": map[string]any{"host": "db"}}})
		waitAvailable(ctx, registry)
	}, NodeTimeout(specTimeout))

	for _, file := range []string{"generated-database-plain.yaml", "custom-proxy-plain.yaml", "mysql-tls-plain.yaml"} {
		It("of the legacy operator is taken over: "+file+" [S2] [D5] [D7]", func(ctx SpecContext) {
			objects := framework.Recording("../../../controllers/modelregistry/resources/testdata/recordings/"+file, "lab-registries", namespace)
			registry := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: objects[0].GetName()}}
			registry.Annotations = map[string]string{"platform.opendatahub.io/paused": "true"}
			stored := &v1beta1.ModelRegistry{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, stored)).To(Succeed())
			registry.Spec = stored.Spec
			env.Create(ctx, registry)
			env.WaitForCondition(ctx, registry, "Paused", metav1.ConditionTrue, "")
			children := objects[1:]
			env.CreateRecording(ctx, children, framework.RecordingOptions{Owner: registry, Manager: "manager", Annotations: map[string]string{lastAppliedAnnotation: "UEsDBBQACAAIAA=="}})
			DeferCleanup(func(ctx SpecContext) {
				env.Delete(ctx, registry)    // it would recreate its children
				for _, c := range children { // the data is retained
					Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, c))).To(Succeed())
					env.WaitDeleted(ctx, c)
				}
			}, NodeTimeout(specTimeout))
			deployment := deploymentOf(registry)
			env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(Equal(int32(1))) })
			var originals []*unstructured.Unstructured
			for _, c := range children {
				originals = append(originals, env.Live(ctx, c))
			}
			start := env.AuditPosition()
			env.SetAnnotation(ctx, registry, "platform.opendatahub.io/paused", nil)
			env.WaitFor(ctx, registry, func(g Gomega) {
				g.Expect(framework.FindCondition(registry.Status.Conditions, "Paused")).To(Equal(metav1.Condition{}))
			})
			waitAvailable(ctx, registry)
			env.WaitIdle(manager.User, idlePeriod, specTimeout)
			for i, c := range children {
				live := env.Live(ctx, c)
				name := c.GetKind() + " " + c.GetName()
				Expect(live.GetUID()).To(Equal(originals[i].GetUID()), name)
				Expect(live.GetAnnotations()).NotTo(HaveKey(lastAppliedAnnotation), name)
				switch c.GetKind() {
				case "Service", "PersistentVolumeClaim":
					Expect(live.Object["spec"]).To(Equal(originals[i].Object["spec"]), name)
				case "Secret":
					Expect(live.Object["data"]).To(Equal(originals[i].Object["data"]), name)
					Expect(live.GetOwnerReferences()).To(BeEmpty(), name)
				}
			}
			Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(BeEmpty())
			env.ExpectIdle(manager.User, idlePeriod)
		}, NodeTimeout(specTimeout))
	}

	It("causes a bounded number of requests as one of many, and none in the steady state [W4]", func(ctx SpecContext) {
		const count = 100
		start := env.AuditPosition()
		var all []client.Object
		for i := range count {
			all = append(all, newRegistry(fmt.Sprintf("many-%03d", i)))
		}
		env.Create(ctx, all...)
		for _, o := range all {
			registry, ok := o.(*v1beta1.ModelRegistry)
			Expect(ok).To(BeTrue())
			waitAvailable(ctx, registry)
		}
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery().WithoutEvents()
		AddReportEntry("requests per registry", fmt.Sprintf("%d writes, %d reads", len(requests.Writes())/count, len(requests.Reads())/count))
		// A registry has some children and status updates. Admission adds its finalizer, and the objects that registries share are read once.
		Expect(len(requests.Writes())).To(BeNumerically("<=", count*10), "writes")
		Expect(len(requests.Reads())).To(BeNumerically("<=", count*3), "reads")
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
