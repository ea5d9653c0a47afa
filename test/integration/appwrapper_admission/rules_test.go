package appwrapper_admission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A new AppWrapper", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "admission") })

	It("gets the default queue and the labels of its creator, even if it sets these labels [appwrapper-26] [appwrapper-27]", func(ctx SpecContext) {
		plain := expectAdmitted(ctx, wrapper(namespace, component(pod)))
		Expect(plain.Labels).To(HaveKeyWithValue(v1beta2.LabelQueue, defaultQueue))
		Expect(plain.Labels).To(HaveKeyWithValue(v1beta2.LabelUser, "testcluster_admin"))

		labelled := wrapper(namespace, component(pod))
		labelled.Labels = map[string]string{v1beta2.LabelQueue: "own", v1beta2.LabelUser: "bad", v1beta2.LabelUserID: "bad", "free": "x"}
		Expect(newLimitedClient(ctx, namespace).Create(ctx, labelled)).To(Succeed())
		Expect(labelled.Labels).To(Equal(map[string]string{
			v1beta2.LabelQueue: "own", v1beta2.LabelUser: "limited", v1beta2.LabelUserID: "uid_of_limited", "free": "x",
		}))
	}, NodeTimeout(specTimeout))

	DescribeTable("is rejected with [appwrapper-28] [appwrapper-29]", func(ctx SpecContext, text string, components ...string) {
		err := env.Admin.Create(ctx, wrapper(namespace, components...))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "vappwrapper.kb.io" denied the request`)))
		Expect(err).To(MatchError(ContainSubstring(text)))
	},
		Entry("no components", "components contains no podspecs"),
		Entry("only a Service", "components contains no podspecs", component(service)),
		Entry("nine pods", "components contains 9 podspecs; at most 8 are allowed", strings.Repeat(component(pod), 9)),
		Entry("an empty path", "spec.components[0].podSets[0].path: Required value", component(pod, "{path: ''}")),
		Entry("a path to metadata", "path does not refer to a v1.PodSpecTemplate", component(pod, "{path: template.metadata}")),
		Entry("map access on an array", "at path position 'template.spec.replicatedJobs' non-map value", component(jobSet, "{path: template.spec.replicatedJobs.template}")),
		Entry("index 10", "out of bounds index '10'", component(jobSet, "{path: 'template.spec.replicatedJobs[10].template'}")),
		Entry("another namespace", "AppWrappers cannot create objects in other namespaces",
			component("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: a, image: a}]}}")),
		Entry("a nested AppWrapper", "Nested AppWrappers are forbidden",
			component("{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: x}, spec: {components: []}}"), component(pod)),
		Entry("cluster scope", "AppWrappers cannot create cluster-scoped objects such as PriorityClass.scheduling.k8s.io",
			component("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: x}, value: 1}"), component(pod)),
		Entry("a RoleBinding", "objects that grant permissions must be created by the user who grants them",
			component("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: cluster-admin, apiGroup: rbac.authorization.k8s.io}}"), component(pod)),
		Entry("a kind that is not served", "the cluster serves no Strange.example.com in version v1",
			component("{apiVersion: example.com/v1, kind: Strange, metadata: {name: x}}"), component(pod)),
		Entry("negative replicas", "spec.components[0].podSets[0].replicas: Invalid value: -1",
			component(deployment, "{path: template.spec.template, replicas: -1}")),
	)

	It("can have as many pod sets as the Kueue of the cluster supports", Serial, func(ctx SpecContext) {
		podSets := apiextensionsv1.JSONSchemaProps{Type: "array", MaxItems: new(int64(18)), Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}
		crd := framework.SampleCRD("kueue.x-k8s.io", "v1beta1", "Workload")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"podSets": podSets}}}
		Expect(env.Admin.Create(ctx, crd)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, crd)).To(Succeed()) })
		expectAdmitted(ctx, wrapper(namespace, strings.Repeat(component(pod), 18)))
		Expect(env.Admin.Create(ctx, wrapper(namespace, strings.Repeat(component(pod), 19)))).To(MatchError(ContainSubstring("at most 18 are allowed")))
	}, NodeTimeout(specTimeout))

	It("is rejected by its schema without a path [appwrapper-28]", func(ctx SpecContext) {
		aw := &unstructured.Unstructured{Object: map[string]any{}}
		Expect(yaml.Unmarshal([]byte("apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: x}\nspec:\n  components:\n"+
			"  - podSets: [{replicas: 1}]\n    template: "+pod), &aw.Object)).To(Succeed())
		aw.SetNamespace(namespace)
		Expect(env.Admin.Create(ctx, aw)).To(MatchError(ContainSubstring("spec.components[0].podSets[0].path")))
	}, NodeTimeout(specTimeout))

	It("is rejected when its name is too long for labels and pod sets [D12]", func(ctx SpecContext) {
		aw := wrapper(namespace, component(pod))
		aw.Name, aw.GenerateName = strings.Repeat("a", 62), ""
		Expect(env.Admin.Create(ctx, aw)).To(MatchError(ContainSubstring("metadata.name: Invalid value")))
		aw.Name = strings.Repeat("a", 61)
		Expect(env.Admin.Create(ctx, aw)).To(Succeed())
	}, NodeTimeout(specTimeout))

	DescribeTable("is accepted with [appwrapper-34] [appwrapper-35]", func(ctx SpecContext, components ...string) {
		expectAdmitted(ctx, wrapper(namespace, components...))
	},
		Entry("pod, deployment, Ray and JobSet", component(pod), component(deployment), component(rayCluster),
			component(jobSet, "{path: 'template.spec.replicatedJobs[0].template.spec.template'}",
				"{path: 'template.spec.replicatedJobs[1].template.spec.template', replicas: 4}")),
		Entry("Jobs", component(job("2", "4")), component(job("8", "4"))),
		Entry("PyTorchJob", component(pyTorch)),
		Entry("RayCluster with seven workers", component(rayCluster)),
		Entry("RayJob", component(rayJob)),
	)

	It("can set its own namespace in a template [appwrapper-34]", func(ctx SpecContext) {
		template := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s}, spec: {containers: [{name: a, image: a}]}}", namespace)
		expectAdmitted(ctx, wrapper(namespace, component(template)))
	}, NodeTimeout(specTimeout))

	It("can contain only objects that its creator is allowed to create [appwrapper-33]", func(ctx SpecContext) {
		user := newLimitedClient(ctx, namespace)
		start := env.AuditPosition()
		Expect(user.Create(ctx, wrapper(namespace, component(pod)))).To(Succeed())
		err := user.Create(ctx, wrapper(namespace, component(deployment)))
		Expect(err).To(MatchError(ContainSubstring("User limited is not authorized to create deployments.apps in " + namespace)))
		requests := env.Since(start).ByUser(manager.User).ForResource("subjectaccessreviews")
		Expect(requests).To(HaveLen(2))
		for _, review := range requests {
			Expect(string(review.Request)).To(And(ContainSubstring(`"user":"limited"`), ContainSubstring(`"uid":"uid:of/limited"`),
				ContainSubstring(`"team"`), ContainSubstring(`"department":["research"]`)))
		}
	}, NodeTimeout(specTimeout))

	It("cannot contain cluster-scoped objects or roles, not even for an administrator of a namespace [D6] [appwrapper-57]", func(ctx SpecContext) {
		user := newLimitedClient(ctx, namespace)
		bind(ctx, namespace, "admin", "ClusterRole")
		env.WaitAllowed(ctx, "limited", authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings"})
		for _, template := range []string{
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: up}, roleRef: {kind: ClusterRole, name: cluster-admin, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: limited}]}",
			"{apiVersion: v1, kind: Namespace, metadata: {name: mine}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: up}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
		} {
			Expect(user.Create(ctx, wrapper(namespace, component(template), component(pod)))).To(MatchError(ContainSubstring("AppWrappers cannot create")))
		}
	}, NodeTimeout(specTimeout))

	It("is validated against the kinds that the cluster currently serves [D30]", func(ctx SpecContext) {
		template := "{apiVersion: late.example.com/v1, kind: Late, metadata: {name: x}}"
		Expect(env.Admin.Create(ctx, wrapper(namespace, component(template), component(pod)))).To(MatchError(ContainSubstring("the cluster serves no Late")))
		crd := framework.SampleCRD("late.example.com", "v1", "Late")
		Expect(env.Admin.Create(ctx, crd)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, crd)).To(Succeed()) }, NodeTimeout(specTimeout))
		Eventually(func() error {
			return env.Admin.Create(ctx, wrapper(namespace, component(template), component(pod)))
		}).WithContext(ctx).WithTimeout(specTimeout / 2).WithPolling(poll).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("gets warnings for annotations without effect [D24], and for unknown fields of pods [D19]", func(ctx SpecContext) {
		admin, warnings := env.WithWarnings()
		aw := wrapper(namespace, component(strings.Replace(pod, "spec: {", "spec: {fieldOfTomorrow: 1, ", 1)))
		aw.Labels = map[string]string{v1beta2.LabelQueue: ""}
		aw.Annotations = map[string]string{v1beta2.AnnotationPrefix + "retryLimits": "1", v1beta2.AnnotationRetryLimit: "many"}
		Expect(admin.Create(ctx, aw)).To(Succeed())
		Expect(warnings.Texts).To(ContainElements(ContainSubstring("retryLimits"), ContainSubstring("fieldOfTomorrow"), ContainSubstring("a whole number")))
		By("rejecting a queued AppWrapper with such a field, which would never start")
		aw = wrapper(namespace, component(strings.Replace(pod, "spec: {", "spec: {fieldOfTomorrow: 1, ", 1)))
		Expect(admin.Create(ctx, aw)).To(MatchError(ContainSubstring("fieldOfTomorrow")))
	}, NodeTimeout(specTimeout))

	It("is accepted for each of the samples", func(ctx SpecContext) {
		root, err := cluster.RepositoryRoot()
		Expect(err).NotTo(HaveOccurred())
		files, err := filepath.Glob(filepath.Join(root, "config", "samples", "appwrapper_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			content, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			sample := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal(content, &sample.Object)).To(Succeed(), file)
			sample.SetNamespace(namespace)
			Expect(unstructured.SetNestedField(sample.Object, true, "spec", "suspend")).To(Succeed())
			admin, warnings := env.WithWarnings()
			Expect(admin.Create(ctx, sample)).To(Succeed(), file)
			misspelt := slices.ContainsFunc(warnings.Texts, func(text string) bool { return strings.Contains(text, "delectionOnFailureGracePeriodDuration") })
			Expect(misspelt).To(Equal(strings.Contains(string(content), "delectionOnFailure")), file)
		}
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An existing AppWrapper", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "admission") })

	It("keeps the labels of its creator when another user updates it [appwrapper-30]", func(ctx SpecContext) {
		user := newLimitedClient(ctx, namespace)
		aw := wrapper(namespace, component(pod))
		Expect(user.Create(ctx, aw)).To(Succeed())
		other := env.Impersonate(rest.ImpersonationConfig{UserName: "other", Groups: []string{"system:masters"}})
		Expect(update(ctx, other, aw, func(aw *v1beta2.AppWrapper) { aw.Annotations = map[string]string{"free": "x"} })).To(Succeed())
		Expect(aw.Labels).To(HaveKeyWithValue(v1beta2.LabelUser, "limited"))
		for _, label := range []string{v1beta2.LabelUser, v1beta2.LabelUserID} {
			overwrite := func(aw *v1beta2.AppWrapper) { aw.Labels[label] = "bad" }
			Expect(update(ctx, other, aw, overwrite)).To(MatchError(ContainSubstring("metadata.labels[" + label + "]: Forbidden: attempt to change immutable field")))
		}
	}, NodeTimeout(specTimeout))

	It("accepts podSetInfos and annotations [appwrapper-31]", func(ctx SpecContext) {
		aw := expectAdmitted(ctx, wrapper(namespace, component(pod)))
		Expect(update(ctx, env.Admin, aw, func(aw *v1beta2.AppWrapper) {
			aw.Spec.Components[0].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{Labels: map[string]string{"a": "b"}}}
		})).To(Succeed())
		env.SetAnnotation(ctx, aw, v1beta2.AnnotationRetryLimit, "1")
	}, NodeTimeout(specTimeout))

	DescribeTable("cannot be changed in [appwrapper-32]", func(ctx SpecContext, field string, change func(*v1beta2.AppWrapper)) {
		aw := expectAdmitted(ctx, wrapper(namespace, component(deployment, "{path: template.spec.template, replicas: 2}"), component(pod)))
		Expect(update(ctx, env.Admin, aw, change)).To(MatchError(ContainSubstring(field + ": Forbidden: attempt to change immutable field")))
	},
		Entry("templates", "spec.components[0].template.raw", func(aw *v1beta2.AppWrapper) { aw.Spec.Components[0].Template = raw(service) }),
		Entry("the number of components", "spec.components", func(aw *v1beta2.AppWrapper) {
			aw.Spec.Components = append(aw.Spec.Components, aw.Spec.Components[1])
		}),
		Entry("the number of pod sets", "spec.components[0].podsets", func(aw *v1beta2.AppWrapper) {
			c := &aw.Spec.Components[0]
			c.PodSets = append(c.PodSets, c.PodSets[0])
		}),
		Entry("paths", "spec.components[0].podsets[0].path", func(aw *v1beta2.AppWrapper) { aw.Spec.Components[0].PodSets[0].Path = "template" }),
		Entry("replicas", "spec.components[0].podsets[0].replicas", func(aw *v1beta2.AppWrapper) { aw.Spec.Components[0].PodSets[0].Replicas = new(int32(3)) }),
		Entry("managedBy", "spec.managedBy", func(aw *v1beta2.AppWrapper) { aw.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") }),
	)

	It("can be applied again with nulls and other forms of numbers [D18]", func(ctx SpecContext) {
		aw := expectAdmitted(ctx, wrapper(namespace, component(job("2", "4"))))
		reapplied := strings.NewReplacer("metadata: {", "metadata: {creationTimestamp: null, ", "parallelism: 2", "parallelism: 2.0").Replace(job("2", "4"))
		Expect(update(ctx, env.Admin, aw, func(aw *v1beta2.AppWrapper) { aw.Spec.Components[0].Template = raw(reapplied) })).To(Succeed())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The webhooks", Ordered, func() {
	It("allow the deletion of an AppWrapper while the manager is down, and reject creation", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "admission")
		aw := wrapper(namespace, component(pod))
		aw.Finalizers = []string{"example.com/held"}
		expectAdmitted(ctx, aw)
		stopManager(ctx)
		Expect(env.Admin.Create(ctx, wrapper(namespace, component(pod)))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.Patch(ctx, aw, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, aw)
	}, NodeTimeout(specTimeout))

	It("validate requests, with a warning, while the component is disabled [D17]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "admission")
		stopManager(ctx)
		env.StartManager(ctx, disabledOptions())
		admin, warnings := env.WithWarnings()
		Eventually(func() error {
			return admin.Create(ctx, wrapper(namespace, component(pod)))
		}).WithContext(ctx).WithTimeout(webhookTimeout).WithPolling(poll).Should(Succeed())
		Expect(admin.Create(ctx, wrapper(namespace, component(service)))).To(MatchError(ContainSubstring("components contains no podspecs")))
		Expect(warnings.Texts).To(ContainElement(ContainSubstring("the component appwrapper is disabled")))
	}, NodeTimeout(specTimeout))

	It("reject new AppWrappers while the legacy ConfigMap is invalid, and report the error", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "admission")
		config := legacyConfig()
		env.Get(ctx, config)
		original := config.Data["config.yaml"]
		DeferCleanup(func(ctx SpecContext) {
			env.Patch(ctx, legacyConfig(), map[string]any{"data": map[string]any{"config.yaml": original}})
			manager.Restart(ctx)
			waitForWebhooks(ctx)
		}, NodeTimeout(specTimeout))
		manager.Stop(ctx)
		env.Patch(ctx, config, map[string]any{"data": map[string]any{"config.yaml": "appwrapper: {faultTolerance: {admissionGracePeriod: 3600000000000}}"}})
		manager.Restart(ctx)
		Eventually(func() error {
			return env.Admin.Create(ctx, wrapper(namespace, component(pod)))
		}).WithContext(ctx).WithTimeout(webhookTimeout).WithPolling(poll).Should(MatchError(And(
			ContainSubstring("admissionGracePeriod"), ContainSubstring("warmupGracePeriod"), ContainSubstring("configuration of appwrapper"))))
		Eventually(manager.Process.LogTail).WithContext(ctx).WithTimeout(webhookTimeout).WithPolling(poll).Should(ContainSubstring("admissionGracePeriod"))
		By("reading the corrected ConfigMap without a restart, because the component has not started")
		env.Patch(ctx, legacyConfig(), map[string]any{"data": map[string]any{"config.yaml": original}})
		Eventually(func() error {
			return env.Admin.Create(ctx, wrapper(namespace, component(pod)))
		}).WithContext(ctx).WithTimeout(webhookTimeout).WithPolling(poll).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("send no request in the steady state", func(ctx SpecContext) {
		env.WaitIdle(manager.User, poll*20, specTimeout)
		env.ExpectIdle(manager.User, poll*50)
	}, NodeTimeout(specTimeout))
})
