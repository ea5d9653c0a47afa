package modelcatalog_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Annotations with the hashes of the objects that pods have read: on a Deployment and, after a change, on its pods.
const (
	recorded = "platform.opendatahub.io/references"
	rollout  = "platform.opendatahub.io/references-rollout"
)

// labelled returns the labeled sources that the pods of the catalog mount in addition to the fixed ones, and checks their arguments.
func (w *controlPlane) labelled(ctx context.Context, namespace string) []string {
	d := deployment(namespace, "model-catalog")
	if err := w.Admin.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return []string{err.Error()}
	}
	var names []string
	pod := d.Spec.Template.Spec
	for _, v := range pod.Volumes {
		if name, is := strings.CutPrefix(v.Name, "labeled-"); is {
			Expect(pod.Containers[0].Args).To(ContainElement("--catalogs-path=/data/labeled-sources/" + name + "/sources.yaml"))
			Expect(pod.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: v.Name, MountPath: "/data/labeled-sources/" + name}))
			names = append(names, name)
		}
	}
	return names
}

var _ = Describe("Sources", func() {
	It("with the label are mounted by name, and the status shows the result of each [modelregistry-97] [S10]", func(ctx SpecContext) {
		w := onOpenShift
		ns := w.namespace(ctx)
		w.create(ctx, source(ns, "zebra", "catalogs: []"))
		c := w.createReady(ctx, catalog(ns))
		Expect(w.labelled(ctx, ns)).To(Equal([]string{"zebra"}))

		By("adding other ConfigMaps")
		keyless := source(ns, "keyless", "")
		keyless.Data = map[string]string{"other": "x"}
		w.create(ctx, keyless)
		w.create(ctx, source(ns, "alpha", "catalogs: ["))
		w.create(ctx, source(ns, "dotted.name", "catalogs: []"))
		Eventually(w.labelled).WithContext(ctx).WithArguments(ctx, ns).WithTimeout(waitTimeout).Should(Equal([]string{"alpha", "zebra"}))
		w.WaitFor(ctx, c, func(g Gomega) {
			states := map[string]string{}
			for _, s := range c.Status.Sources {
				states[s.Name] = string(s.State) + " " + s.Reason
			}
			g.Expect(states).To(Equal(map[string]string{
				"alpha": "Accepted ContentNotUnderstood", "dotted.name": "Rejected NameInvalid",
				"keyless": "Rejected KeyMissing", "zebra": "Accepted Mounted",
			}))
		})
		w.available(ctx, c)

		By("editing a ConfigMap, which replaces no pod")
		d := deployment(ns, "model-catalog")
		w.Get(ctx, d)
		w.Patch(ctx, source(ns, "alpha", ""), map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []"}})
		w.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Sources[0].Reason).To(Equal("Mounted"))
		})
		after := deployment(ns, "model-catalog")
		w.Get(ctx, after)
		Expect(after.Generation).To(Equal(d.Generation))

		By("removing a ConfigMap")
		Expect(w.Admin.Delete(ctx, source(ns, "zebra", ""))).To(Succeed())
		Eventually(w.labelled).WithContext(ctx).WithArguments(ctx, ns).WithTimeout(waitTimeout).Should(Equal([]string{"alpha"}))
		w.waitIdle()
		w.ExpectIdle(w.manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("of users are not changed, except for the entry of older releases; the default ones are restored [modelregistry-90] [modelregistry-91] [modelregistry-92] [modelregistry-93] [modelregistry-94] [modelregistry-95] [modelregistry-127]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		old := configMap(ns, "model-catalog-sources")
		old.Data = map[string]string{"sources.yaml": "catalogs:\n- id: default_catalog\n  type: yaml\n- {id: mine, properties: {limit: 10}}\n"}
		Expect(w.Admin.Create(ctx, old)).To(Succeed())
		broken := configMap(ns, "mcp-catalog-sources")
		broken.Data = map[string]string{"sources.yaml": "mcp_catalogs: [\n"}
		Expect(w.Admin.Create(ctx, broken)).To(Succeed())
		foreign := configMap(ns, "serving-runtime-catalog-sources")
		foreign.Data = map[string]string{"sources.yaml": "serving_runtime_catalogs: [] # mine\n"}
		Expect(w.Admin.Create(ctx, foreign)).To(Succeed())
		c := w.createReady(ctx, catalog(ns))
		w.Get(ctx, old)
		Expect(old.Data["sources.yaml"]).NotTo(ContainSubstring("default_catalog"))
		Expect(old.Data["sources.yaml"]).To(ContainSubstring("mine"))
		w.Get(ctx, broken)
		Expect(broken.Data["sources.yaml"]).To(Equal("mcp_catalogs: [\n"))
		agents := configMap(ns, "agent-catalog-sources")
		w.Get(ctx, agents)
		Expect(agents.Data["sources.yaml"]).To(Equal("agent_catalogs: []\n"))

		By("deleting the list of runtimes of an administrator, which is recreated empty")
		runtimes := configMap(ns, "serving-runtime-catalog-sources")
		w.Get(ctx, runtimes)
		Expect(runtimes.Data["sources.yaml"]).To(Equal("serving_runtime_catalogs: [] # mine\n"))
		Expect(w.Admin.Delete(ctx, runtimes.DeepCopy())).To(Succeed())
		w.WaitFor(ctx, runtimes, func(g Gomega) { g.Expect(runtimes.Data["sources.yaml"]).To(Equal("serving_runtime_catalogs: []\n")) })
		Expect(runtimes.OwnerReferences).To(BeEmpty())
		server := deployment(ns, "model-catalog")
		w.Get(ctx, server)
		Expect(server.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--catalogs-path=/data/user-serving-runtime-sources/sources.yaml"))

		By("changing the ConfigMap as a user")
		custom := "catalogs:\n    - {id:   mine, name: \"x\"}   # as I like it\n"
		w.Patch(ctx, old, map[string]any{"data": map[string]any{"sources.yaml": custom}})
		defaults := configMap(ns, "default-catalog-sources")
		w.Get(ctx, defaults)
		shipped := defaults.Data["sources.yaml"]
		Expect(shipped).To(And(ContainSubstring("rh_agents"), ContainSubstring("rh_serving_runtimes")))
		w.Patch(ctx, defaults, map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []"}})
		w.WaitFor(ctx, defaults, func(g Gomega) { g.Expect(defaults.Data["sources.yaml"]).To(Equal(shipped)) })
		w.waitIdle()
		w.Get(ctx, old)
		Expect(old.Data["sources.yaml"]).To(Equal(custom))

		By("deleting the Catalog")
		Expect(w.Admin.Delete(ctx, c)).To(Succeed())
		w.WaitDeleted(ctx, c, defaults)
		w.Get(ctx, old)
		Expect(old.Data["sources.yaml"]).To(Equal(custom))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A modified child object", func() {
	It("is repaired on its watch event, and foreign objects trigger no reconcile [modelregistry-87] [modelregistry-99] [W1]", func(ctx SpecContext) {
		w := onOpenShift
		ns := w.namespace(ctx)
		foreign := policy(ns, "foreign")
		foreign.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		w.create(ctx, foreign)
		w.createReady(ctx, catalog(ns))
		for _, name := range []string{"model-catalog-postgres", "model-catalog-https-route"} {
			before, after := policy(ns, name), policy(ns, name)
			w.Get(ctx, before)
			Expect(w.Admin.Delete(ctx, policy(ns, name))).To(Succeed())
			w.WaitFor(ctx, after, func(g Gomega) { g.Expect(after.UID).NotTo(Equal(before.UID)) })
			Expect(after.Spec).To(Equal(before.Spec))
			Expect(after.Labels).To(Equal(before.Labels))
		}
		rule := configMap(ns, "model-catalog-kube-rbac-proxy-config")
		w.Get(ctx, rule)
		shipped := rule.Data
		w.Patch(ctx, rule, map[string]any{"data": map[string]any{"config-file.yaml": "authorization: {}"}})
		w.WaitFor(ctx, rule, func(g Gomega) { g.Expect(rule.Data).To(Equal(shipped)) })
		binding := delegation()
		Expect(w.Admin.Delete(ctx, binding)).To(Succeed())
		w.WaitExists(ctx, delegation())
		s := secret(ns, "model-catalog-postgres")
		w.Patch(ctx, s, map[string]any{"data": map[string]any{"database-user": nil}})
		w.WaitFor(ctx, s, func(g Gomega) { g.Expect(string(s.Data["database-user"])).To(Equal("catalog_user")) })
		w.waitIdle()

		By("deleting a foreign policy")
		Expect(w.Admin.Delete(ctx, policy(ns, "foreign"))).To(Succeed())
		w.ExpectIdle(w.manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("causes no write if no managed field changed, nor does a restart [W5]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		w.createReady(ctx, catalog(ns))
		w.Touch(ctx, service(ns, "model-catalog"), role(ns, "model-catalog"), configMap(ns, "model-catalog-sources"), secret(ns, "model-catalog-postgres"))
		w.waitIdle()
		w.ExpectNoWrites(w.manager.User, quiet)

		By("restarting the manager")
		start := w.AuditPosition()
		w.manager.Restart(ctx)
		w.waitIdle()
		writes := w.Since(start).ChildWrites(w.manager.User)
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A second Catalog", func() {
	It("reports the active Catalog, and becomes active when that is deleted [D23]", func(ctx SpecContext) {
		w := onKubernetes
		first, second := w.namespace(ctx), w.namespace(ctx)
		c := w.createReady(ctx, catalog(first))
		other := catalog(second)
		Expect(w.Admin.Create(ctx, other)).To(MatchError(ContainSubstring(first)))
		other = catalog(second)
		w.withoutWebhook(ctx, func() { w.create(ctx, other) })
		w.WaitFor(ctx, other, func(g Gomega) {
			g.Expect(framework.FindCondition(other.Status.Conditions, "Available").Reason).To(Equal("AnotherCatalogActive"))
			g.Expect(framework.FindCondition(other.Status.Conditions, "Available").Message).To(ContainSubstring(first))
		})
		w.ExpectAbsent(ctx, deployment(second, "model-catalog"))
		binding := delegation()
		w.Get(ctx, binding)
		Expect(binding.Subjects[0].Namespace).To(Equal(first))
		w.waitIdle()
		w.ExpectIdle(w.manager.User, quiet)

		By("deleting the first Catalog")
		Expect(w.Admin.Delete(ctx, c)).To(Succeed())
		w.available(ctx, other)
		w.Get(ctx, binding)
		Expect(binding.Subjects[0].Namespace).To(Equal(second))
		Expect(framework.FindCondition(other.Status.Conditions, "Available").Status).To(BeEquivalentTo("True"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The pods of a Catalog", func() {
	It("are restarted when the password of their database is rotated, and for no other key [W2]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		c := w.createReady(ctx, catalog(ns))
		server, database, own := deployment(ns, "model-catalog"), deployment(ns, "model-catalog-postgres"), secret(ns, "model-catalog-postgres")
		w.Get(ctx, server)
		generation := server.Generation
		Expect(server.Annotations).To(HaveKey(recorded))
		Expect(server.Spec.Template.Annotations).NotTo(HaveKey(rollout), "nothing has changed yet")

		w.Patch(ctx, own, map[string]any{"data": map[string]any{"note": "Mg=="}})
		w.Patch(ctx, configMap(ns, "model-catalog-sources"), map[string]any{"data": map[string]any{"sources.yaml": "catalogs: [] # mine\n"}})
		w.waitIdle()
		w.Get(ctx, server)
		Expect(server.Generation).To(Equal(generation), "the server reads its sources by itself")

		w.Patch(ctx, own, map[string]any{"data": map[string]any{"database-password": "c2Vjb25k"}})
		for _, d := range []*appsv1.Deployment{server, database} {
			w.WaitFor(ctx, d, func(g Gomega) {
				g.Expect(d.Spec.Template.Annotations).To(HaveKey(rollout))
				g.Expect(conditions.Rollout(d).Ready).To(BeTrue(), "the status of the Catalog may change until then")
			})
		}
		w.Get(ctx, own)
		Expect(string(own.Data["database-password"])).To(Equal("second"))

		w.available(ctx, c)
		w.ExpectIdle(w.manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("keep running while a referenced object is missing, which the Catalog reports until it exists", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		login := secret(ns, "model-catalog-postgres")
		login.StringData = map[string]string{"database-name": "d", "database-user": "u", "database-password": "p"}
		Expect(w.Admin.Create(ctx, login.DeepCopy())).To(Succeed())
		c := w.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) {
			s.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db.example.com", SecretName: login.Name}}
		}))
		DeferCleanup(func(ctx SpecContext) { w.remove(ctx, login) }, NodeTimeout(specTimeout))
		expectMessage := func(message string) {
			GinkgoHelper()
			w.WaitFor(ctx, c, func(g Gomega) {
				ready, _ := conditions.Get(c.Status.Conditions, "ReferencesReady")
				g.Expect(ready.Message).To(Equal(message))
			})
			Expect(framework.FindCondition(c.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue), "its pods run on")
			w.waitIdle()
			w.ExpectIdle(w.manager.User, quiet)
		}
		expectMessage("")
		w.remove(ctx, login.DeepCopy())
		expectMessage("In namespace " + ns + ": Secret model-catalog-postgres does not exist; create it")
		sources := configMap(ns, "model-catalog-sources")
		w.Patch(ctx, sources, map[string]any{"data": map[string]any{"sources.yaml": nil, "other": "x"}})
		expectMessage("In namespace " + ns + ": ConfigMap model-catalog-sources has no key sources.yaml; add it; Secret model-catalog-postgres does not exist; create it")
		Expect(w.Admin.Create(ctx, login.DeepCopy())).To(Succeed())
		w.Patch(ctx, sources, map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []\n"}})
		expectMessage("")
	}, NodeTimeout(specTimeout))

	It("keep running when their Catalog is deleted with orphaning, and are adopted by the next", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		c := w.createReady(ctx, catalog(ns))
		parts := []client.Object{
			deployment(ns, "model-catalog"), deployment(ns, "model-catalog-postgres"), service(ns, "model-catalog"), secret(ns, "model-catalog-postgres"),
			configMap(ns, "default-catalog-sources"), role(ns, "model-catalog"), policy(ns, "model-catalog-postgres"),
		}
		uids, generations := map[client.Object]types.UID{}, map[client.Object]int64{}
		for _, part := range parts {
			w.Get(ctx, part)
			uids[part], generations[part] = part.GetUID(), part.GetGeneration()
		}
		Expect(w.Admin.Delete(ctx, c, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		w.WaitDeleted(ctx, c)
		for _, part := range parts {
			w.Get(ctx, part)
			Expect(part.GetOwnerReferences()).To(BeEmpty(), "%T %s", part, part.GetName())
		}
		next := catalog(ns)
		Expect(w.Admin.Create(ctx, next)).To(Succeed())
		w.available(ctx, next)
		for _, part := range parts {
			w.Get(ctx, part)
			Expect(metav1.IsControlledBy(part, next)).To(BeTrue(), "%T %s", part, part.GetName())
			Expect(part.GetUID()).To(Equal(uids[part]), "%T %s", part, part.GetName())
			Expect(part.GetGeneration()).To(Equal(generations[part]), "%T %s was changed", part, part.GetName())
		}
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The switches of a Catalog", func() {
	It("disable the access of all users, the proxy and the database [S6]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		c := w.createReady(ctx, catalog(ns))
		w.Get(ctx, roleBinding(ns, "model-catalog-authenticated"))
		w.Patch(ctx, c, map[string]any{"spec": map[string]any{
			"access":   map[string]any{"authenticated": "Disabled"},
			"proxy":    map[string]any{"mode": "Disabled"},
			"database": map[string]any{"external": map[string]any{"host": "db.example.com", "secretName": "db"}},
		}})
		w.WaitDeleted(ctx, roleBinding(ns, "model-catalog-authenticated"), delegation())
		w.WaitDeleted(ctx, configMap(ns, "model-catalog-kube-rbac-proxy-config"), deployment(ns, "model-catalog-postgres"))
		w.WaitDeleted(ctx, service(ns, "model-catalog-postgres"))
		d, s := deployment(ns, "model-catalog"), service(ns, "model-catalog")
		w.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(1)) })
		w.Get(ctx, s)
		Expect(s.Spec.Ports).To(HaveLen(1))
		Expect(s.Spec.Ports[0].Port).To(BeEquivalentTo(8080))
		Expect(d.Spec.Template.Spec.Containers[0].Env[0].Value).To(Equal("db.example.com"))
		w.available(ctx, c)
	}, NodeTimeout(specTimeout))
})
