package modelcatalog_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func auth(groups ...string) *unstructured.Unstructured {
	u := framework.Unstructured(capability.PlatformAuth, "", "auth")
	list := []any{}
	for _, g := range groups {
		list = append(list, g)
	}
	u.Object["spec"] = map[string]any{"adminGroups": list, "allowedGroups": []any{"system:authenticated"}}
	return u
}

var _ = Describe("The administrators", func() {
	It("are the current groups of Auth, and cannot read Secrets [modelregistry-79] [modelregistry-98] [S5] [W7]", func(ctx SpecContext) {
		env := onOpenShift
		ns := env.namespace(ctx)
		a := auth("odh-admins")
		env.create(ctx, a)
		env.createReady(ctx, catalog(ns))
		binding := roleBinding(ns, "model-catalog-admin-binding")
		env.WaitExists(ctx, binding)
		Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "odh-admins")))
		r := role(ns, "model-catalog-admin")
		env.Get(ctx, r)
		for _, rule := range r.Rules {
			Expect(rule.Resources).To(Equal([]string{"configmaps"}))
			if slices.Contains(rule.Verbs, "update") {
				Expect(rule.ResourceNames).NotTo(BeEmpty())
			}
		}

		By("changing the groups")
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"adminGroups": []any{"one", "two"}}})
		env.WaitFor(ctx, binding, func(g Gomega) { g.Expect(binding.Subjects).To(HaveLen(2)) })
		Expect(env.Admin.Delete(ctx, a)).To(Succeed())
		env.WaitDeleted(ctx, binding)

		By("removing and adding the API")
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "auths.services.platform.opendatahub.io"}}
		Expect(env.Admin.Delete(ctx, crd)).To(Succeed())
		env.WaitDeleted(ctx, crd)
		Expect(cluster.InstallSet(ctx, env.Config, cluster.PlatformServices)).To(Succeed())
		env.create(ctx, auth("restored"))
		env.WaitFor(ctx, binding, func(g Gomega) { g.Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "restored"))) })
	}, NodeTimeout(specTimeout))
})

func withLegacyMetadata(o client.Object) client.Object {
	o.SetLabels(map[string]string{"component": "model-catalog", "app.kubernetes.io/created-by": "model-registry-operator"})
	o.SetAnnotations(map[string]string{"banzaicloud.com/last-applied": "UEsDBBQACAAIAAAAAAA"})
	return o
}

// withOwner adds an owner reference without controller, like the legacy operator.
func withOwner(o client.Object, apiVersion, kind string, owner metav1.Object) client.Object {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}})
	return o
}

// legacyServer returns a Deployment as the legacy operator created it. A tenant can create an equal one.
func legacyServer(ns string) *appsv1.Deployment {
	server := deployment(ns, "model-catalog")
	selector := map[string]string{"component": "model-catalog", "app": "model-catalog"}
	server.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	server.Spec.Template.Labels = selector
	server.Spec.Template.Spec.Containers = []corev1.Container{{Name: "catalog", Image: "quay.io/example/old:v0"}, {Name: "oauth-proxy", Image: "quay.io/example/oauth:v0"}}
	withLegacyMetadata(server)
	return server
}

// createLegacyObjects creates the objects of the legacy operator: a Deployment with an older selector, and other objects, some of which the
// Deployment owns. adopted contains objects that are taken over without being recreated, such as the Secret of the database.
func (env *controlPlane) createLegacyObjects(ctx context.Context, ns string) (server *appsv1.Deployment, database *corev1.Secret, adopted []client.Object) {
	GinkgoHelper()
	platform := &metav1.ObjectMeta{Name: "default-modelregistry", UID: "6c1f5f3e-0000-4000-8000-000000000001"}
	owned := func(o client.Object) client.Object {
		return withOwner(withLegacyMetadata(o), "components.platform.opendatahub.io/v1alpha1", "ModelRegistry", platform)
	}
	create := func(o client.Object) {
		GinkgoHelper()
		Expect(env.Admin.Create(ctx, o, client.FieldOwner("manager"))).To(Succeed())
	}
	server = legacyServer(ns)
	create(owned(server))
	binding := authDelegatorBinding()
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "model-catalog"}}
	create(withLegacyMetadata(binding))
	account := &corev1.ServiceAccount{ObjectMeta: meta(ns, "model-catalog")}
	create(owned(account))
	database = secret(ns, "model-catalog-postgres")
	database.Data = map[string][]byte{"database-password": []byte("legacy-password"), "database-name": []byte("model_catalog")}
	create(owned(database))
	create(owned(secret(ns, "model-catalog-oauth-cookie-secret")))
	create(withLegacyMetadata(configMap(ns, "model-catalog-default-sources")))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(ns, "model-catalog-postgres")}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("5Gi")}
	create(withLegacyMetadata(claim))
	serverService := service(ns, "model-catalog")
	serverService.Spec.Ports = []corev1.ServicePort{{Name: "https-api", Port: 8443}}
	serverService.Spec.Selector = server.Spec.Selector.MatchLabels
	create(withOwner(withLegacyMetadata(serverService), "apps/v1", "Deployment", server))
	reader := role(ns, "model-catalog")
	reader.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"model-catalog"}, Verbs: []string{"get"}}}
	create(withOwner(withLegacyMetadata(reader), "apps/v1", "Deployment", server))
	return server, database, []client.Object{database, serverService, account, reader}
}

var _ = Describe("The catalog of the legacy operator", func() {
	It("is taken over with the password of its database and without leftover objects [modelregistry-77] [modelregistry-85] [modelregistry-88] [modelregistry-89] [D24]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		env.manager.Stop(ctx)
		server, database, adopted := env.createLegacyObjects(ctx, ns)
		start := env.AuditPosition()
		env.manager.Restart(ctx)
		c := catalog(ns)
		env.WaitExists(ctx, c)
		DeferCleanup(func(ctx SpecContext) { env.deleteAndWait(ctx, c) }, NodeTimeout(specTimeout))
		env.waitAvailable(ctx, c)

		current := deployment(ns, "model-catalog")
		env.Get(ctx, current)
		Expect(current.UID).NotTo(Equal(server.UID), "the Deployment must be recreated, because its selector is immutable")
		Expect(current.Spec.Selector.MatchLabels).To(HaveLen(3))
		deletions := env.Since(start).ByUser(env.manager.User).ForResource("deployments").Where(func(e framework.Entry) bool { return e.Verb == "delete" })
		Expect(deletions).To(HaveLen(1), "recreated once:\n%s", deletions)
		for _, o := range adopted {
			originalUID := o.GetUID()
			env.Get(ctx, o)
			Expect(o.GetUID()).To(Equal(originalUID), "%T was recreated", o)
		}
		for _, o := range append(adopted, current, deployment(ns, "model-catalog-postgres")) {
			env.Get(ctx, o)
			Expect(o.GetOwnerReferences()).To(HaveLen(1), "%T", o)
			Expect(metav1.IsControlledBy(o, c)).To(BeTrue(), "%T", o)
			Expect(o.GetAnnotations()).NotTo(HaveKey("banzaicloud.com/last-applied"), "%T", o)
		}
		Expect(string(database.Data["database-password"])).To(Equal("legacy-password"))
		Expect(string(database.Data["database-user"])).To(Equal("catalog_user"))
		for _, container := range current.Spec.Template.Spec.Containers {
			Expect(container.Name).NotTo(Equal("oauth-proxy"))
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(ns, "model-catalog-postgres")}
		if env.Admin.Get(ctx, client.ObjectKeyFromObject(claim), claim) == nil {
			Expect(claim.DeletionTimestamp).NotTo(BeNil())
		}
		env.ExpectAbsent(ctx, secret(ns, "model-catalog-oauth-cookie-secret"))
		env.ExpectAbsent(ctx, configMap(ns, "model-catalog-default-sources"))
		deployments := &appsv1.DeploymentList{}
		Expect(env.Admin.List(ctx, deployments, client.InNamespace(ns))).To(Succeed())
		var names []string
		for i := range deployments.Items {
			names = append(names, deployments.Items[i].Name)
		}
		slices.Sort(names)
		Expect(names).To(Equal([]string{"model-catalog", "model-catalog-postgres"}))
		env.ExpectIdle(env.manager.User, idlePeriod)

		By("deleting the Catalog, which is not recreated before the next start")
		env.deleteAndWait(ctx, c)
		env.waitIdle()
		env.ExpectAbsent(ctx, catalog(ns))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A Deployment with the labels of the legacy catalog", func() {
	It("is taken over in the namespace of the operator or of registries, and is reported in an untrusted namespace", func(ctx SpecContext) {
		env := onKubernetes
		forged := legacyServer(env.Namespace(ctx, "team"))
		forged.Spec.Replicas = new(int32(0))
		env.create(ctx, forged)
		start := env.AuditPosition()
		env.manager.Restart(ctx)
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(forged.Namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", "CatalogNotTakenOver"), HaveField("Regarding.UID", forged.UID),
				HaveField("Note", ContainSubstring("set REGISTRIES_NAMESPACE to "+forged.Namespace)))))
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
		env.waitIdle()
		env.ExpectAbsent(ctx, catalog(forged.Namespace))
		env.ExpectAbsent(ctx, authDelegatorBinding())
		Expect(env.Since(start).ByUser(env.manager.User).Forbidden()).To(BeEmpty())

		for _, target := range []struct {
			*controlPlane
			namespace string
		}{{onKubernetes, env.Installed.ServiceAccount.Namespace}, {onOpenShift, registries}} {
			By("namespace " + target.namespace)
			target.manager.Stop(ctx)
			target.create(ctx, legacyServer(target.namespace))
			target.manager.Restart(ctx)
			c := catalog(target.namespace)
			target.WaitExists(ctx, c)
			DeferCleanup(func(ctx SpecContext) { target.deleteAndWait(ctx, c) }, NodeTimeout(specTimeout))
			target.waitAvailable(ctx, c)
		}
		env.ExpectAbsent(ctx, catalog(forged.Namespace))
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("A manager that is killed", func() {
	It("after any write continues the change when it is restarted", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns))
		password := secret(ns, "model-catalog-postgres")
		env.Get(ctx, password)
		crasher := env.StartCrasher(ctx, env.manager, specTimeout)
		mode, containers := "Enabled", 2
		begin := func() {
			if mode == "Enabled" {
				mode, containers = "Disabled", 1
			} else {
				mode, containers = "Enabled", 2
			}
			env.Patch(ctx, c, map[string]any{"spec": map[string]any{"authProxy": map[string]any{"mode": mode}}})
		}
		done := func(g Gomega) {
			d := deployment(ns, "model-catalog")
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(containers))
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
			g.Expect(env.Exists(ctx, authDelegatorBinding())).To(Equal(mode == "Enabled"))
		}
		crashes := crasher.CrashAfterEvery(ctx, begin, done, func(int) {
			disabled := mode == "Disabled"
			err := env.Admin.Get(ctx, client.ObjectKeyFromObject(authDelegatorBinding()), authDelegatorBinding())
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(err != nil).To(Equal(disabled), "the ClusterRoleBinding must exist only with the proxy")
			current := secret(ns, "model-catalog-postgres")
			env.Get(ctx, current)
			Expect(current.Data).To(Equal(password.Data))
		})
		Expect(crashes).To(BeNumerically(">", 2))
	}, NodeTimeout(2*specTimeout))
})
