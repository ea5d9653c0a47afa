package raycluster_admission_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
)

// deniedChange is a change of an injected field, with the message of its denial.
type deniedChange struct {
	message string
	change  func(*unstructured.Unstructured)
}

const (
	headPrefix   = "spec.headGroupSpec.template.spec."
	workerPrefix = "spec.workerGroupSpecs.1.template.spec."
)

func inHeadAndWorkers(field string, change func(*corev1.PodSpec)) []deniedChange {
	return []deniedChange{{headPrefix + field, changeHead(change)}, {workerPrefix + field, changeGroup(1, change)}}
}

func inHeadOnly(message string, change func(*corev1.PodSpec)) []deniedChange {
	return []deniedChange{{message, changeHead(change)}}
}

var _ = Describe("An existing RayCluster", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "ray") })

	DescribeTable("has its injected fields restored by the mutating webhook, and changes to them denied by the validating webhook:", func(ctx SpecContext, changes []deniedChange) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal))
		for _, t := range changes {
			before := headPodSpec(rayCluster)
			beforeGroup := workerPodSpec(rayCluster, 1)
			Expect(updateRayCluster(ctx, rayCluster, t.change)).To(Succeed())
			Expect(headPodSpec(rayCluster)).To(Equal(before))
			Expect(workerPodSpec(rayCluster, 1)).To(Equal(beforeGroup))
		}
		Expect(updateRayCluster(ctx, rayCluster, withLabel(bypass, ""))).To(Succeed())
		for _, t := range changes {
			Expect(updateRayCluster(ctx, rayCluster, t.change)).To(MatchError(ContainSubstring(t.message)))
		}
	},
		Entry("arguments of the sidecar [raycluster-16]", inHeadOnly(headPrefix+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].Args[3] = "--upstream=http://other" })),
		Entry("further arguments [R33] [raycluster-30]", inHeadOnly(headPrefix+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].Args = append(p.Containers[1].Args, "--skip-auth-regex=.*") })),
		Entry("mounts of the sidecar [R33]", inHeadOnly(headPrefix+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].VolumeMounts = nil })),
		Entry("the Secret of its volume [raycluster-17]", inHeadOnly(headPrefix+`volumes: Invalid value: "proxy-tls-secret": OAuth Proxy TLS Secret volume is immutable`,
			func(p *corev1.PodSpec) { p.Volumes[0].Secret.SecretName = "other" })),
		Entry("create-cert [raycluster-21]", inHeadAndWorkers(`initContainers: Invalid value: "create-cert": create-cert Init Container is immutable`,
			func(p *corev1.PodSpec) { p.InitContainers[0].Command = []string{"true"} })),
		Entry("the Secret of ca-vol [raycluster-22]", inHeadAndWorkers(`volumes: Invalid value: "ca-vol": ca-vol and server-cert Secret volumes are immutable`,
			func(p *corev1.PodSpec) { p.Volumes[len(p.Volumes)-2].Secret.SecretName = "other" })),
		Entry("RAY_USE_TLS [raycluster-23]", inHeadAndWorkers(`containers.0.env: Invalid value: "RAY_USE_TLS": RAY_TLS related environment variables are immutable`,
			func(p *corev1.PodSpec) { p.Containers[0].Env[1].Value = "0" })),
		Entry("mounts of Ray [R33]", inHeadAndWorkers(`containers.0.volumeMounts: Invalid value: "server-cert": ca-vol and server-cert volume mounts are immutable`,
			func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts[1].MountPath = "/other" })),
	)

	It("is denied changes of its ServiceAccount [raycluster-18] and enableIngress [raycluster-15], and keeps its generation when metadata changes [raycluster-19]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, withLabel("a", "b")))
		generation := rayCluster.GetGeneration()
		Expect(updateRayCluster(ctx, rayCluster, withLabel("touched", ""))).To(Succeed())
		Expect(rayCluster.GetGeneration()).To(Equal(generation))
		Expect(updateRayCluster(ctx, rayCluster, setField(true, "spec", "headGroupSpec", "enableIngress"))).To(MatchError(ContainSubstring("enableIngress set to true is not allowed")))
		Expect(updateRayCluster(ctx, rayCluster, withLabel(bypass, ""))).To(Succeed())
		other := changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "other" })
		Expect(updateRayCluster(ctx, rayCluster, other)).To(MatchError(ContainSubstring(headPrefix + `serviceAccountName: Invalid value: "other": RayCluster head group service account is immutable`)))
	}, NodeTimeout(specTimeout))

	It("records the ServiceAccount that a user set in an annotation, or keeps it if the user requests that [R30]", func(ctx SpecContext) {
		withServiceAccount := changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "mine" })
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, withServiceAccount))
		Expect(headPodSpec(rayCluster).ServiceAccountName).To(Equal(namesOf(rayCluster).ServiceAccount))
		Expect(rayCluster.GetAnnotations()).To(HaveKeyWithValue(raycluster.AnnotationServiceAccount, "mine"))
		Expect(updateRayCluster(ctx, rayCluster, withAnnotation(raycluster.AnnotationKeepServiceAccount, "true"))).To(Succeed())
		Expect(headPodSpec(rayCluster).ServiceAccountName).To(Equal("mine"))
		Expect(rayCluster.GetAnnotations()).NotTo(HaveKey(raycluster.AnnotationServiceAccount))
	}, NodeTimeout(specTimeout))

	It("keeps the resources that its user gives the sidecar [R15]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal))
		more := corev1.ResourceList{corev1.ResourceMemory: headPodSpec(rayCluster).Containers[0].Resources.Limits[corev1.ResourceMemory]}
		Expect(updateRayCluster(ctx, rayCluster, changeHead(func(p *corev1.PodSpec) { p.Containers[1].Resources.Limits = more }))).To(Succeed())
		Expect(headPodSpec(rayCluster).Containers[1].Resources.Limits).To(Equal(more))
	}, NodeTimeout(specTimeout))

	It("keeps legacy names regardless of annotations of the user [R8] [raycluster-20]", func(ctx SpecContext) {
		rayCluster := createLegacyCopy(ctx, createRayCluster(ctx, newRayCluster(namespace, minimal)), env.Namespace(ctx, "legacy"))
		names := raycluster.View(rayCluster.Object).LegacyNames()
		Expect(updateRayCluster(ctx, rayCluster, func(rayCluster *unstructured.Unstructured) { rayCluster.SetLabels(nil) })).To(Succeed())
		Expect(updateRayCluster(ctx, rayCluster, withAnnotation(raycluster.AnnotationVersion, "1"), changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		Expect(rayCluster.GetAnnotations()).NotTo(HaveKey(raycluster.AnnotationVersion))
		headSpec := headPodSpec(rayCluster)
		Expect(headSpec.ServiceAccountName).To(Equal("test-raycluster-oauth-proxy"))
		Expect(headSpec.Volumes[2].Secret.SecretName).To(Equal("ca-secret-test-raycluster"))
		Expect(names.CASecret).To(Equal("ca-secret-test-raycluster"))
	}, NodeTimeout(specTimeout))

	It("can be applied repeatedly by the SDK without a conflict", func(ctx SpecContext) {
		apply := func(replicas int64) *unstructured.Unstructured {
			u := newRayCluster(namespace, minimal)
			groups, _, _ := unstructured.NestedSlice(u.Object, workerGroupsPath...)
			groups[0].(map[string]any)["replicas"] = replicas
			setField(groups, workerGroupsPath...)(u)
			Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("codeflare-sdk"))).To(Succeed())
			env.Get(ctx, u)
			return u
		}
		first := apply(1)
		for _, replicas := range []int64{2, 3} {
			again := apply(replicas)
			Expect(headPodSpec(again)).To(Equal(headPodSpec(first)))
			Expect(workerPodSpec(again, 0)).To(Equal(workerPodSpec(first, 0)))
			groups, _, _ := unstructured.NestedSlice(again.Object, workerGroupsPath...)
			Expect(groups[0]).To(HaveKeyWithValue("replicas", replicas))
		}
	}, NodeTimeout(specTimeout))
})

// createLegacyCopy copies a cluster to another namespace, as if the legacy operator had created it without hashes in the names.
func createLegacyCopy(ctx context.Context, rayCluster *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	GinkgoHelper()
	hashed, legacyNames := raycluster.View(rayCluster.Object).HashedNames(), raycluster.View(rayCluster.Object).LegacyNames()
	text, err := yaml.Marshal(map[string]any{"spec": rayCluster.Object["spec"]})
	Expect(err).NotTo(HaveOccurred())
	legacyCluster := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte(strings.NewReplacer(
		hashed.ServiceAccount, legacyNames.ServiceAccount, hashed.CookieSecret, legacyNames.CookieSecret, hashed.ProxyTLS, legacyNames.ProxyTLS,
		hashed.CASecret, legacyNames.CASecret, hashed.HeadTLS, legacyNames.HeadTLS, hashed.WorkerTLS, legacyNames.WorkerTLS, rayCluster.GetNamespace(), namespace,
	).Replace(string(text))), &legacyCluster.Object)).To(Succeed())
	legacyCluster.SetGroupVersionKind(raycluster.GVK)
	legacyCluster.SetNamespace(namespace)
	legacyCluster.SetName(rayCluster.GetName())
	withLabel(bypass, "")(legacyCluster)
	Expect(env.Admin.Create(ctx, legacyCluster)).To(Succeed())
	Expect(updateRayCluster(ctx, legacyCluster, withLabel("touched", ""))).To(Succeed())
	return legacyCluster
}

var _ = Describe("The webhooks", func() {
	It("remove only injected elements when a feature is disabled [R28]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "mine" })))
		original := newRayCluster(namespace, minimal)
		createSettings(ctx, "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false}")
		probe := newRayCluster(metav1.NamespaceDefault, minimal)
		Eventually(func(g Gomega) {
			p := probe.DeepCopy()
			g.Expect(env.Admin.Create(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(headPodSpec(p).Volumes).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		before := headPodSpec(rayCluster)
		Expect(updateRayCluster(ctx, rayCluster, withLabel("touched", ""))).To(Succeed())
		Expect(headPodSpec(rayCluster)).To(Equal(before), "running pods are not changed")
		Expect(updateRayCluster(ctx, rayCluster, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		want := headPodSpec(original)
		want.ServiceAccountName, want.Containers[0].Image = "mine", "example.com/ray:2"
		Expect(headPodSpec(rayCluster)).To(Equal(want))
		Expect(workerPodSpec(rayCluster, 0)).To(Equal(workerPodSpec(original, 0)))
	}, NodeTimeout(specTimeout))

	It("allow only deletion and changes of finalizers while the manager is down [R29]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetFinalizers([]string{"example.com/held"}) }))
		stopManager(ctx)
		Expect(env.Admin.Create(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("other") }))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(updateRayCluster(ctx, rayCluster, func(rayCluster *unstructured.Unstructured) {
			rayCluster.SetFinalizers(append(rayCluster.GetFinalizers(), "ray.io/gcs-ft-redis-cleanup-finalizer"))
		})).To(Succeed())
		Expect(updateRayCluster(ctx, rayCluster, setField(true, "spec", "suspend"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(updateRayCluster(ctx, rayCluster, withAnnotation(raycluster.AnnotationVersion, "x"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(env.Admin.Delete(ctx, rayCluster)).To(Succeed())
		env.Patch(ctx, rayCluster, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, rayCluster)
	}, NodeTimeout(specTimeout))

	It("keep injected images after an upgrade until a template changes [R34] [raycluster-29]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(env.Namespace(ctx, "ray"), minimal))
		stopManager(ctx)
		upgraded := env.StartManager(ctx, managerOptions("upgraded", "OAUTH_PROXY_IMAGE=example.com/oauth:2"))
		DeferCleanup(func(ctx SpecContext) { upgraded.Stop(ctx) }, NodeTimeout(specTimeout))
		waitForWebhooks(ctx)
		before := headPodSpec(rayCluster)
		Expect(updateRayCluster(ctx, rayCluster, withLabel("touched", ""), setField(true, "spec", "suspend"))).To(Succeed())
		Expect(headPodSpec(rayCluster)).To(Equal(before))
		Expect(updateRayCluster(ctx, rayCluster, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		Expect(headPodSpec(rayCluster).Containers[1].Image).To(Equal("example.com/oauth:2"))
	}, NodeTimeout(specTimeout))

	It("accept a RayCluster that they would deny, with a warning, while the component is disabled", func(ctx SpecContext) {
		stopManager(ctx)
		options := managerOptions("manager-disabled", "MLFLOW_IMAGE=example.com/mlflow:1")
		options.Args = []string{"--components=*,-raycluster"}
		disabledManager := env.StartManager(ctx, options)
		DeferCleanup(func(ctx SpecContext) { disabledManager.Stop(ctx) }, NodeTimeout(specTimeout))
		admin, warnings := env.WithWarnings()
		namespace := env.Namespace(ctx, "ray")
		Eventually(func() error {
			return admin.Create(ctx, newRayCluster(namespace, minimal, setField(true, "spec", "headGroupSpec", "enableIngress")))
		}).WithContext(ctx).Should(Succeed())
		Expect(warnings.Texts).To(ContainElement(ContainSubstring("the component raycluster is disabled")))
	}, NodeTimeout(specTimeout))

	It("reject requests while the initial settings are invalid, and name the error [R4] [R24]", func(ctx SpecContext) {
		stopManager(ctx)
		createSettings(ctx, "kuberay: {mTLSEnabled: perhaps}")
		manager.Restart(ctx)
		Eventually(func() error {
			return env.Admin.Create(ctx, newRayCluster(metav1.NamespaceDefault, minimal), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(And(ContainSubstring("mTLSEnabled"), ContainSubstring("perhaps"))))
	}, NodeTimeout(specTimeout))
})

func settingsConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: raysettings.ConfigMapName}}
}

// createSettings creates the ConfigMap with the settings. It is deleted after the spec, and the defaults apply again.
func createSettings(ctx context.Context, text string) {
	GinkgoHelper()
	object := settingsConfigMap()
	object.Data = map[string]string{"config.yaml": text}
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, settingsConfigMap()))).To(Succeed())
		Eventually(func(g Gomega) {
			p := newRayCluster(metav1.NamespaceDefault, minimal)
			g.Expect(env.Admin.Create(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(headPodSpec(p).Volumes).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))
}
