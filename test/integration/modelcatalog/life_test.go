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
	It("are the groups of Auth at any time, and cannot read Secrets [modelregistry-79] [modelregistry-98] [S5] [W7]", func(ctx SpecContext) {
		w := onOpenShift
		ns := w.namespace(ctx)
		a := auth("odh-admins")
		w.create(ctx, a)
		w.createReady(ctx, catalog(ns))
		binding := roleBinding(ns, "model-catalog-admin-binding")
		w.WaitExists(ctx, binding)
		Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "odh-admins")))
		r := role(ns, "model-catalog-admin")
		w.Get(ctx, r)
		for _, rule := range r.Rules {
			Expect(rule.Resources).To(Equal([]string{"configmaps"}))
			if slices.Contains(rule.Verbs, "update") {
				Expect(rule.ResourceNames).NotTo(BeEmpty())
			}
		}

		By("changing the groups")
		w.Patch(ctx, a, map[string]any{"spec": map[string]any{"adminGroups": []any{"one", "two"}}})
		w.WaitFor(ctx, binding, func(g Gomega) { g.Expect(binding.Subjects).To(HaveLen(2)) })
		Expect(w.Admin.Delete(ctx, a)).To(Succeed())
		w.WaitDeleted(ctx, binding)

		By("removing and adding the API")
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "auths.services.platform.opendatahub.io"}}
		Expect(w.Admin.Delete(ctx, definition)).To(Succeed())
		w.WaitDeleted(ctx, definition)
		Expect(cluster.InstallSet(ctx, w.Config, cluster.PlatformServices)).To(Succeed())
		w.create(ctx, auth("back"))
		w.WaitFor(ctx, binding, func(g Gomega) { g.Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "back"))) })
	}, NodeTimeout(specTimeout))
})

func legacyLabels(o client.Object) client.Object {
	o.SetLabels(map[string]string{"component": "model-catalog", "app.kubernetes.io/created-by": "model-registry-operator"})
	o.SetAnnotations(map[string]string{"banzaicloud.com/last-applied": "UEsDBBQACAAIAAAAAAA"})
	return o
}

// owned adds an owner reference without controller, as the legacy operator did.
func owned(o client.Object, apiVersion, kind string, owner metav1.Object) client.Object {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}})
	return o
}

// legacyServer returns a Deployment of the legacy operator, or a tenant's imitation.
func legacyServer(ns string) *appsv1.Deployment {
	server := deployment(ns, "model-catalog")
	selector := map[string]string{"component": "model-catalog", "app": "model-catalog"}
	server.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
	server.Spec.Template.Labels = selector
	server.Spec.Template.Spec.Containers = []corev1.Container{{Name: "catalog", Image: "quay.io/example/old:v0"}, {Name: "oauth-proxy", Image: "quay.io/example/oauth:v0"}}
	legacyLabels(server)
	return server
}

// makeLegacy creates the objects of the legacy operator: Deployments, one with an older selector, and objects that they own.
func (w *controlPlane) makeLegacy(ctx context.Context, ns string) (server *appsv1.Deployment, database *corev1.Secret, kept *corev1.Service) {
	GinkgoHelper()
	platform := &metav1.ObjectMeta{Name: "default-modelregistry", UID: "6c1f5f3e-0000-4000-8000-000000000001"}
	owner := func(o client.Object) client.Object {
		return owned(legacyLabels(o), "components.platform.opendatahub.io/v1alpha1", "ModelRegistry", platform)
	}
	add := func(o client.Object) {
		GinkgoHelper()
		Expect(w.Admin.Create(ctx, o, client.FieldOwner("manager"))).To(Succeed())
	}
	server = legacyServer(ns)
	add(owner(server))
	grant := delegation() // which marks this namespace as that of the catalog
	grant.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}
	grant.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "model-catalog"}}
	add(legacyLabels(grant))
	add(owner(&corev1.ServiceAccount{ObjectMeta: meta(ns, "model-catalog")}))
	database = secret(ns, "model-catalog-postgres")
	database.Data = map[string][]byte{"database-password": []byte("as-it-was"), "database-name": []byte("model_catalog")}
	add(owner(database))
	add(owner(secret(ns, "model-catalog-oauth-cookie-secret")))
	add(legacyLabels(configMap(ns, "model-catalog-default-sources")))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(ns, "model-catalog-postgres")}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("5Gi")}
	add(legacyLabels(claim))
	kept = service(ns, "model-catalog")
	kept.Spec.Ports = []corev1.ServicePort{{Name: "https-api", Port: 8443}}
	kept.Spec.Selector = server.Spec.Selector.MatchLabels
	add(owned(legacyLabels(kept), "apps/v1", "Deployment", server))
	reader := role(ns, "model-catalog")
	reader.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{"model-catalog"}, Verbs: []string{"get"}}}
	add(owned(legacyLabels(reader), "apps/v1", "Deployment", server))
	return server, database, kept
}

var _ = Describe("The catalog of an older operator", func() {
	It("is taken over by a Catalog without losing data or leaving objects [modelregistry-77] [modelregistry-85] [modelregistry-88] [modelregistry-89] [D24]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		w.manager.Stop(ctx)
		server, database, kept := w.makeLegacy(ctx, ns)
		start := w.AuditPosition()
		w.manager.Restart(ctx)
		c := catalog(ns)
		w.WaitExists(ctx, c)
		DeferCleanup(func(ctx SpecContext) { w.remove(ctx, c) }, NodeTimeout(specTimeout))
		w.available(ctx, c)

		now := deployment(ns, "model-catalog")
		w.Get(ctx, now)
		Expect(now.UID).NotTo(Equal(server.UID), "its selector was that of an older release")
		Expect(now.Spec.Selector.MatchLabels).To(HaveLen(3))
		deletions := w.Since(start).ByUser(w.manager.User).Of("deployments").Where(func(e framework.Entry) bool { return e.Verb == "delete" })
		Expect(deletions).To(HaveLen(1), "recreated once:\n%s", deletions)
		for _, o := range []client.Object{
			now, database, kept, &corev1.ServiceAccount{ObjectMeta: meta(ns, "model-catalog")}, role(ns, "model-catalog"), deployment(ns, "model-catalog-postgres"),
		} {
			before := o.GetUID()
			w.Get(ctx, o)
			Expect(before == "" || o.GetUID() == before).To(BeTrue(), "%T was recreated", o)
			Expect(o.GetOwnerReferences()).To(HaveLen(1), "%T", o)
			Expect(metav1.IsControlledBy(o, c)).To(BeTrue(), "%T", o)
			Expect(o.GetAnnotations()).NotTo(HaveKey("banzaicloud.com/last-applied"), "%T", o)
		}
		Expect(string(database.Data["database-password"])).To(Equal("as-it-was"))
		Expect(string(database.Data["database-user"])).To(Equal("catalog_user"))
		for _, container := range now.Spec.Template.Spec.Containers {
			Expect(container.Name).NotTo(Equal("oauth-proxy"))
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(ns, "model-catalog-postgres")}
		if w.Admin.Get(ctx, client.ObjectKeyFromObject(claim), claim) == nil {
			Expect(claim.DeletionTimestamp).NotTo(BeNil())
		}
		w.ExpectAbsent(ctx, secret(ns, "model-catalog-oauth-cookie-secret"))
		w.ExpectAbsent(ctx, configMap(ns, "model-catalog-default-sources"))
		all := &appsv1.DeploymentList{}
		Expect(w.Admin.List(ctx, all, client.InNamespace(ns))).To(Succeed())
		var names []string
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		slices.Sort(names)
		Expect(names).To(Equal([]string{"model-catalog", "model-catalog-postgres"}))
		w.ExpectIdle(w.manager.User, quiet)

		By("being deleted: it stays away until the next start")
		w.remove(ctx, c)
		w.waitIdle()
		w.ExpectAbsent(ctx, catalog(ns))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A Deployment with the labels of an older operator's catalog", func() {
	It("creates a Catalog only in namespaces of administrators, and reports others", func(ctx SpecContext) {
		w := onKubernetes
		forged := legacyServer(w.Namespace(ctx, "team"))
		forged.Spec.Replicas = new(int32(0))
		w.create(ctx, forged)
		start := w.AuditPosition()
		w.manager.Restart(ctx)
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(w.Admin.List(ctx, list, client.InNamespace(forged.Namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", "CatalogNotTakenOver"), HaveField("Regarding.UID", forged.UID),
				HaveField("Note", ContainSubstring("set REGISTRIES_NAMESPACE to "+forged.Namespace)))))
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
		w.waitIdle()
		w.ExpectAbsent(ctx, catalog(forged.Namespace))
		w.ExpectAbsent(ctx, delegation())
		Expect(w.Since(start).ByUser(w.manager.User).Refused()).To(BeEmpty())

		for _, place := range []struct {
			*controlPlane
			namespace string
		}{{onKubernetes, w.Installed.ServiceAccount.Namespace}, {onOpenShift, registries}} {
			By("namespace " + place.namespace)
			place.manager.Stop(ctx)
			place.create(ctx, legacyServer(place.namespace))
			place.manager.Restart(ctx)
			c := catalog(place.namespace)
			place.WaitExists(ctx, c)
			DeferCleanup(func(ctx SpecContext) { place.remove(ctx, c) }, NodeTimeout(specTimeout))
			place.available(ctx, c)
		}
		w.ExpectAbsent(ctx, catalog(forged.Namespace))
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("A manager that is killed", func() {
	It("after any write continues the change when it is restarted", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		c := w.createReady(ctx, catalog(ns))
		password := secret(ns, "model-catalog-postgres")
		w.Get(ctx, password)
		crasher := w.StartCrasher(ctx, w.manager, specTimeout)
		mode, containers := "Enabled", 2
		begin := func() {
			if mode == "Enabled" {
				mode, containers = "Disabled", 1
			} else {
				mode, containers = "Enabled", 2
			}
			w.Patch(ctx, c, map[string]any{"spec": map[string]any{"authProxy": map[string]any{"mode": mode}}})
		}
		done := func(g Gomega) {
			d := deployment(ns, "model-catalog")
			g.Expect(w.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(containers))
			g.Expect(w.Admin.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
			g.Expect(client.IgnoreNotFound(w.Admin.Get(ctx, client.ObjectKeyFromObject(delegation()), delegation()))).To(Succeed())
		}
		crashes := crasher.CrashAfterEvery(ctx, begin, done, func(int) {
			gone := mode == "Disabled"
			err := w.Admin.Get(ctx, client.ObjectKeyFromObject(delegation()), delegation())
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			Expect(err != nil).To(Equal(gone), "the binding of the proxy goes and comes with it")
			now := secret(ns, "model-catalog-postgres")
			w.Get(ctx, now)
			Expect(now.Data).To(Equal(password.Data))
		})
		Expect(crashes).To(BeNumerically(">", 2))
	}, NodeTimeout(2*specTimeout))
})
