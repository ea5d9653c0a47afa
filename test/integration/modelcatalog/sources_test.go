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

const (
	// referencesAnnotation of a Deployment contains the last known hashes of the objects that its pods consume.
	referencesAnnotation = "platform.opendatahub.io/references"
	// rolloutAnnotation of a pod template is set after the first change of such a hash.
	rolloutAnnotation = "platform.opendatahub.io/references-rollout"
)

// labelledSources returns the labeled sources that the pods of the catalog mount in addition to the fixed ones, and checks the
// argument and the mount of each.
func (env *controlPlane) labelledSources(g Gomega, ctx context.Context, namespace string) []string {
	d := deployment(namespace, "model-catalog")
	g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	var names []string
	pod := d.Spec.Template.Spec
	for _, v := range pod.Volumes {
		if name, isLabelled := strings.CutPrefix(v.Name, "labeled-"); isLabelled {
			g.Expect(pod.Containers[0].Args).To(ContainElement("--catalogs-path=/data/labeled-sources/" + name + "/sources.yaml"))
			g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: v.Name, MountPath: "/data/labeled-sources/" + name}))
			names = append(names, name)
		}
	}
	return names
}

var _ = Describe("Sources", func() {
	It("with the label are mounted by name, and the status shows the result of each [modelregistry-97] [S10]", func(ctx SpecContext) {
		env := onOpenShift
		ns := env.namespace(ctx)
		env.create(ctx, source(ns, "zebra", "catalogs: []"))
		c := env.createReady(ctx, catalog(ns))
		Expect(env.labelledSources(Default, ctx, ns)).To(Equal([]string{"zebra"}))

		By("adding other ConfigMaps")
		keyless := source(ns, "keyless", "")
		keyless.Data = map[string]string{"other": "x"}
		env.create(ctx, keyless)
		env.create(ctx, source(ns, "alpha", "catalogs: ["))
		env.create(ctx, source(ns, "dotted.name", "catalogs: []"))
		Eventually(env.labelledSources).WithContext(ctx).WithArguments(ctx, ns).WithTimeout(waitTimeout).Should(Equal([]string{"alpha", "zebra"}))
		env.WaitFor(ctx, c, func(g Gomega) {
			states := map[string]string{}
			for _, s := range c.Status.Sources {
				states[s.Name] = string(s.State) + " " + s.Reason
			}
			g.Expect(states).To(Equal(map[string]string{
				"alpha": "Accepted ContentNotUnderstood", "dotted.name": "Rejected NameInvalid",
				"keyless": "Rejected KeyMissing", "zebra": "Accepted Mounted",
			}))
		})
		env.waitAvailable(ctx, c)

		By("editing a ConfigMap, which replaces no pod")
		d := deployment(ns, "model-catalog")
		env.Get(ctx, d)
		env.Patch(ctx, source(ns, "alpha", ""), map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []"}})
		env.WaitFor(ctx, c, func(g Gomega) {
			g.Expect(c.Status.Sources[0].Reason).To(Equal("Mounted"))
		})
		current := deployment(ns, "model-catalog")
		env.Get(ctx, current)
		Expect(current.Generation).To(Equal(d.Generation))

		By("removing a ConfigMap")
		Expect(env.Admin.Delete(ctx, source(ns, "zebra", ""))).To(Succeed())
		Eventually(env.labelledSources).WithContext(ctx).WithArguments(ctx, ns).WithTimeout(waitTimeout).Should(Equal([]string{"alpha"}))
		env.waitIdle()
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("of users are not changed, except for the entry of older releases; the default ones are restored [modelregistry-90] [modelregistry-91] [modelregistry-92] [modelregistry-93] [modelregistry-94] [modelregistry-95] [modelregistry-127]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		userSource := configMap(ns, "model-catalog-sources")
		userSource.Data = map[string]string{"sources.yaml": "catalogs:\n- id: default_catalog\n  type: yaml\n- {id: mine, properties: {limit: 10}}\n"}
		Expect(env.Admin.Create(ctx, userSource)).To(Succeed())
		broken := configMap(ns, "mcp-catalog-sources")
		broken.Data = map[string]string{"sources.yaml": "mcp_catalogs: [\n"}
		Expect(env.Admin.Create(ctx, broken)).To(Succeed())
		foreign := configMap(ns, "serving-runtime-catalog-sources")
		foreign.Data = map[string]string{"sources.yaml": "serving_runtime_catalogs: [] # mine\n"}
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		c := env.createReady(ctx, catalog(ns))
		env.Get(ctx, userSource)
		Expect(userSource.Data["sources.yaml"]).NotTo(ContainSubstring("default_catalog"))
		Expect(userSource.Data["sources.yaml"]).To(ContainSubstring("mine"))
		env.Get(ctx, broken)
		Expect(broken.Data["sources.yaml"]).To(Equal("mcp_catalogs: [\n"))
		agents := configMap(ns, "agent-catalog-sources")
		env.Get(ctx, agents)
		Expect(agents.Data["sources.yaml"]).To(Equal("agent_catalogs: []\n"))

		By("deleting the list of runtimes of an administrator, which is recreated empty")
		runtimes := configMap(ns, "serving-runtime-catalog-sources")
		env.Get(ctx, runtimes)
		Expect(runtimes.Data["sources.yaml"]).To(Equal("serving_runtime_catalogs: [] # mine\n"))
		Expect(env.Admin.Delete(ctx, runtimes.DeepCopy())).To(Succeed())
		env.WaitFor(ctx, runtimes, func(g Gomega) { g.Expect(runtimes.Data["sources.yaml"]).To(Equal("serving_runtime_catalogs: []\n")) })
		Expect(runtimes.OwnerReferences).To(BeEmpty())
		server := deployment(ns, "model-catalog")
		env.Get(ctx, server)
		Expect(server.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--catalogs-path=/data/user-serving-runtime-sources/sources.yaml"))

		By("changing the ConfigMap as a user")
		custom := "catalogs:\n    - {id:   mine, name: \"x\"}   # as I like it\n"
		env.Patch(ctx, userSource, map[string]any{"data": map[string]any{"sources.yaml": custom}})
		defaults := configMap(ns, "default-catalog-sources")
		env.Get(ctx, defaults)
		shipped := defaults.Data["sources.yaml"]
		Expect(shipped).To(And(ContainSubstring("rh_agents"), ContainSubstring("rh_serving_runtimes")))
		env.Patch(ctx, defaults, map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []"}})
		env.WaitFor(ctx, defaults, func(g Gomega) { g.Expect(defaults.Data["sources.yaml"]).To(Equal(shipped)) })
		env.waitIdle()
		env.Get(ctx, userSource)
		Expect(userSource.Data["sources.yaml"]).To(Equal(custom))

		By("deleting the Catalog")
		Expect(env.Admin.Delete(ctx, c)).To(Succeed())
		env.WaitDeleted(ctx, c, defaults)
		env.Get(ctx, userSource)
		Expect(userSource.Data["sources.yaml"]).To(Equal(custom))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A modified child object", func() {
	It("is repaired on its watch event, and foreign objects trigger no reconcile [modelregistry-87] [modelregistry-99] [W1]", func(ctx SpecContext) {
		env := onOpenShift
		ns := env.namespace(ctx)
		foreign := policy(ns, "foreign")
		foreign.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		env.create(ctx, foreign)
		env.createReady(ctx, catalog(ns))
		for _, name := range []string{"model-catalog-postgres", "model-catalog-https-route"} {
			original, recreated := policy(ns, name), policy(ns, name)
			env.Get(ctx, original)
			Expect(env.Admin.Delete(ctx, policy(ns, name))).To(Succeed())
			env.WaitFor(ctx, recreated, func(g Gomega) { g.Expect(recreated.UID).NotTo(Equal(original.UID)) })
			Expect(recreated.Spec).To(Equal(original.Spec))
			Expect(recreated.Labels).To(Equal(original.Labels))
		}
		rule := configMap(ns, "model-catalog-kube-rbac-proxy-config")
		env.Get(ctx, rule)
		shipped := rule.Data
		env.Patch(ctx, rule, map[string]any{"data": map[string]any{"config-file.yaml": "authorization: {}"}})
		env.WaitFor(ctx, rule, func(g Gomega) { g.Expect(rule.Data).To(Equal(shipped)) })
		binding := authDelegatorBinding()
		Expect(env.Admin.Delete(ctx, binding)).To(Succeed())
		env.WaitExists(ctx, authDelegatorBinding())
		s := secret(ns, "model-catalog-postgres")
		env.Patch(ctx, s, map[string]any{"data": map[string]any{"database-user": nil}})
		env.WaitFor(ctx, s, func(g Gomega) { g.Expect(string(s.Data["database-user"])).To(Equal("catalog_user")) })
		env.waitIdle()

		By("deleting a foreign policy")
		Expect(env.Admin.Delete(ctx, policy(ns, "foreign"))).To(Succeed())
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("causes no write if no managed field changed, nor does a restart [W5]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		env.createReady(ctx, catalog(ns))
		env.Touch(ctx, service(ns, "model-catalog"), role(ns, "model-catalog"), configMap(ns, "model-catalog-sources"), secret(ns, "model-catalog-postgres"))
		env.waitIdle()
		env.ExpectNoWrites(env.manager.User, idlePeriod)

		By("restarting the manager")
		start := env.AuditPosition()
		env.manager.Restart(ctx)
		env.waitIdle()
		writes := env.Since(start).ObjectWrites(env.manager.User)
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A second Catalog", func() {
	It("reports the active Catalog, and becomes active when the active one is deleted [D23]", func(ctx SpecContext) {
		env := onKubernetes
		first, second := env.namespace(ctx), env.namespace(ctx)
		c := env.createReady(ctx, catalog(first))
		other := catalog(second)
		Expect(env.Admin.Create(ctx, other)).To(MatchError(ContainSubstring(first)))
		other = catalog(second)
		env.withoutWebhook(ctx, func() { env.create(ctx, other) })
		env.WaitFor(ctx, other, func(g Gomega) {
			g.Expect(framework.FindCondition(other.Status.Conditions, "Available").Reason).To(Equal("AnotherCatalogActive"))
			g.Expect(framework.FindCondition(other.Status.Conditions, "Available").Message).To(ContainSubstring(first))
		})
		env.ExpectAbsent(ctx, deployment(second, "model-catalog"))
		binding := authDelegatorBinding()
		env.Get(ctx, binding)
		Expect(binding.Subjects[0].Namespace).To(Equal(first))
		env.waitIdle()
		env.ExpectIdle(env.manager.User, idlePeriod)

		By("deleting the first Catalog")
		Expect(env.Admin.Delete(ctx, c)).To(Succeed())
		env.waitAvailable(ctx, other)
		env.Get(ctx, binding)
		Expect(binding.Subjects[0].Namespace).To(Equal(second))
		Expect(framework.FindCondition(other.Status.Conditions, "Available").Status).To(BeEquivalentTo("True"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The pods of a Catalog", func() {
	It("are restarted when the password of their database is rotated, and not for a key that they do not use [W2]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns))
		server, database, databaseSecret := deployment(ns, "model-catalog"), deployment(ns, "model-catalog-postgres"), secret(ns, "model-catalog-postgres")
		env.Get(ctx, server)
		generation := server.Generation
		Expect(server.Annotations).To(HaveKey(referencesAnnotation))
		Expect(server.Spec.Template.Annotations).NotTo(HaveKey(rolloutAnnotation), "the Secret has not changed yet")

		env.Patch(ctx, databaseSecret, map[string]any{"data": map[string]any{"note": "Mg=="}})
		env.Patch(ctx, configMap(ns, "model-catalog-sources"), map[string]any{"data": map[string]any{"sources.yaml": "catalogs: [] # mine\n"}})
		env.waitIdle()
		env.Get(ctx, server)
		Expect(server.Generation).To(Equal(generation), "the server reloads its sources without a restart")

		env.Patch(ctx, databaseSecret, map[string]any{"data": map[string]any{"database-password": "c2Vjb25k"}})
		for _, d := range []*appsv1.Deployment{server, database} {
			env.WaitFor(ctx, d, func(g Gomega) {
				g.Expect(d.Spec.Template.Annotations).To(HaveKey(rolloutAnnotation))
				g.Expect(conditions.Rollout(d).Ready).To(BeTrue(), "the status of the Catalog may change until then")
			})
		}
		env.Get(ctx, databaseSecret)
		Expect(string(databaseSecret.Data["database-password"])).To(Equal("second"))

		env.waitAvailable(ctx, c)
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("keep running while a referenced object is missing, which the Catalog reports until it exists", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		login := secret(ns, "model-catalog-postgres")
		login.StringData = map[string]string{"database-name": "d", "database-user": "u", "database-password": "p"}
		Expect(env.Admin.Create(ctx, login.DeepCopy())).To(Succeed())
		c := env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) {
			s.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db.example.com", SecretName: login.Name}}
		}))
		DeferCleanup(func(ctx SpecContext) { env.deleteAndWait(ctx, login) }, NodeTimeout(specTimeout))
		expectMessage := func(message string) {
			GinkgoHelper()
			env.WaitFor(ctx, c, func(g Gomega) {
				ready, _ := conditions.Get(c.Status.Conditions, "ReferencesReady")
				g.Expect(ready.Message).To(Equal(message))
			})
			Expect(framework.FindCondition(c.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue), "the pods must keep running")
			env.waitIdle()
			env.ExpectIdle(env.manager.User, idlePeriod)
		}
		expectMessage("")
		env.deleteAndWait(ctx, login.DeepCopy())
		expectMessage("In namespace " + ns + ": Secret model-catalog-postgres does not exist; create it")
		sources := configMap(ns, "model-catalog-sources")
		env.Patch(ctx, sources, map[string]any{"data": map[string]any{"sources.yaml": nil, "other": "x"}})
		expectMessage("In namespace " + ns + ": ConfigMap model-catalog-sources has no key sources.yaml; add it; Secret model-catalog-postgres does not exist; create it")
		Expect(env.Admin.Create(ctx, login.DeepCopy())).To(Succeed())
		env.Patch(ctx, sources, map[string]any{"data": map[string]any{"sources.yaml": "catalogs: []\n"}})
		expectMessage("")
	}, NodeTimeout(specTimeout))

	It("keep running when their Catalog is deleted with orphan propagation, and are adopted by the next one", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns))
		objects := []client.Object{
			deployment(ns, "model-catalog"), deployment(ns, "model-catalog-postgres"), service(ns, "model-catalog"), secret(ns, "model-catalog-postgres"),
			configMap(ns, "default-catalog-sources"), role(ns, "model-catalog"), policy(ns, "model-catalog-postgres"),
		}
		uids, generations := map[client.Object]types.UID{}, map[client.Object]int64{}
		for _, object := range objects {
			env.Get(ctx, object)
			uids[object], generations[object] = object.GetUID(), object.GetGeneration()
		}
		Expect(env.Admin.Delete(ctx, c, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		env.WaitDeleted(ctx, c)
		for _, object := range objects {
			env.Get(ctx, object)
			Expect(object.GetOwnerReferences()).To(BeEmpty(), "%T %s", object, object.GetName())
		}
		next := catalog(ns)
		Expect(env.Admin.Create(ctx, next)).To(Succeed())
		env.waitAvailable(ctx, next)
		for _, object := range objects {
			env.Get(ctx, object)
			Expect(metav1.IsControlledBy(object, next)).To(BeTrue(), "%T %s", object, object.GetName())
			Expect(object.GetUID()).To(Equal(uids[object]), "%T %s", object, object.GetName())
			Expect(object.GetGeneration()).To(Equal(generations[object]), "%T %s was changed", object, object.GetName())
		}
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The spec of a Catalog", func() {
	It("can disable access for authenticated users, the authenticating proxy and the generated database [S6]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns))
		env.Get(ctx, roleBinding(ns, "model-catalog-authenticated"))
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{
			"access":   map[string]any{"authenticated": "Disabled"},
			"proxy":    map[string]any{"mode": "Disabled"},
			"database": map[string]any{"external": map[string]any{"host": "db.example.com", "secretName": "db"}},
		}})
		env.WaitDeleted(ctx, roleBinding(ns, "model-catalog-authenticated"), authDelegatorBinding())
		env.WaitDeleted(ctx, configMap(ns, "model-catalog-kube-rbac-proxy-config"), deployment(ns, "model-catalog-postgres"))
		env.WaitDeleted(ctx, service(ns, "model-catalog-postgres"))
		d, s := deployment(ns, "model-catalog"), service(ns, "model-catalog")
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(1)) })
		env.Get(ctx, s)
		Expect(s.Spec.Ports).To(HaveLen(1))
		Expect(s.Spec.Ports[0].Port).To(BeEquivalentTo(8080))
		Expect(d.Spec.Template.Spec.Containers[0].Env[0].Value).To(Equal("db.example.com"))
		env.waitAvailable(ctx, c)
	}, NodeTimeout(specTimeout))
})
