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

// tampering is a change of an injected field, with its denial.
type tampering struct {
	message string
	change  func(*unstructured.Unstructured)
}

const (
	inHead   = "spec.headGroupSpec.template.spec."
	inGroup1 = "spec.workerGroupSpecs.1.template.spec."
)

func inBoth(description string, change func(*corev1.PodSpec)) []tampering {
	return []tampering{{inHead + description, changeHead(change)}, {inGroup1 + description, changeGroup(1, change)}}
}

func tamperSpec(message string, change func(*corev1.PodSpec)) []tampering {
	return []tampering{{message, changeHead(change)}}
}

var _ = Describe("An existing RayCluster", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "ray") })

	DescribeTable("cannot be changed, and is repaired by the mutating webhook:", func(ctx SpecContext, changes []tampering) {
		u := expectAdmitted(ctx, rayCluster(namespace, minimal))
		for _, t := range changes {
			before := head(u)
			beforeGroup := group(u, 1)
			Expect(update(ctx, u, t.change)).To(Succeed())
			Expect(head(u)).To(Equal(before))
			Expect(group(u, 1)).To(Equal(beforeGroup))
		}
		Expect(update(ctx, u, labelled(bypass, ""))).To(Succeed())
		for _, t := range changes {
			Expect(update(ctx, u, t.change)).To(MatchError(ContainSubstring(t.message)))
		}
	},
		Entry("arguments of the sidecar [raycluster-16]", tamperSpec(inHead+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].Args[3] = "--upstream=http://elsewhere" })),
		Entry("further arguments [R33] [raycluster-30]", tamperSpec(inHead+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].Args = append(p.Containers[1].Args, "--skip-auth-regex=.*") })),
		Entry("mounts of the sidecar [R33]", tamperSpec(inHead+`containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable`,
			func(p *corev1.PodSpec) { p.Containers[1].VolumeMounts = nil })),
		Entry("the Secret of its volume [raycluster-17]", tamperSpec(inHead+`volumes: Invalid value: "proxy-tls-secret": OAuth Proxy TLS Secret volume is immutable`,
			func(p *corev1.PodSpec) { p.Volumes[0].Secret.SecretName = "other" })),
		Entry("create-cert [raycluster-21]", inBoth(`initContainers: Invalid value: "create-cert": create-cert Init Container is immutable`,
			func(p *corev1.PodSpec) { p.InitContainers[0].Command = []string{"true"} })),
		Entry("the Secret of ca-vol [raycluster-22]", inBoth(`volumes: Invalid value: "ca-vol": ca-vol and server-cert Secret volumes are immutable`,
			func(p *corev1.PodSpec) { p.Volumes[len(p.Volumes)-2].Secret.SecretName = "other" })),
		Entry("RAY_USE_TLS [raycluster-23]", inBoth(`containers.0.env: Invalid value: "RAY_USE_TLS": RAY_TLS related environment variables are immutable`,
			func(p *corev1.PodSpec) { p.Containers[0].Env[1].Value = "0" })),
		Entry("mounts of Ray [R33]", inBoth(`containers.0.volumeMounts: Invalid value: "server-cert": ca-vol and server-cert volume mounts are immutable`,
			func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts[1].MountPath = "/elsewhere" })),
	)

	It("keeps its ServiceAccount [raycluster-18] and its rule about Ingresses [raycluster-15], and accepts an unchanged update [raycluster-19]", func(ctx SpecContext) {
		u := expectAdmitted(ctx, rayCluster(namespace, minimal, labelled("a", "b")))
		generation := u.GetGeneration()
		Expect(update(ctx, u, labelled("touched", ""))).To(Succeed())
		Expect(u.GetGeneration()).To(Equal(generation))
		Expect(update(ctx, u, set(true, "spec", "headGroupSpec", "enableIngress"))).To(MatchError(ContainSubstring("enableIngress set to true is not allowed")))
		Expect(update(ctx, u, labelled(bypass, ""))).To(Succeed())
		other := changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "other" })
		Expect(update(ctx, u, other)).To(MatchError(ContainSubstring(inHead + `serviceAccountName: Invalid value: "other": RayCluster head group service account is immutable`)))
	}, NodeTimeout(specTimeout))

	It("records the ServiceAccount of its user, or keeps it on request [R30]", func(ctx SpecContext) {
		mine := changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "mine" })
		u := expectAdmitted(ctx, rayCluster(namespace, minimal, mine))
		Expect(head(u).ServiceAccountName).To(Equal(namesOf(u).ServiceAccount))
		Expect(u.GetAnnotations()).To(HaveKeyWithValue(raycluster.AnnotationServiceAccount, "mine"))
		Expect(update(ctx, u, annotated(raycluster.AnnotationKeepServiceAccount, "true"))).To(Succeed())
		Expect(head(u).ServiceAccountName).To(Equal("mine"))
		Expect(u.GetAnnotations()).NotTo(HaveKey(raycluster.AnnotationServiceAccount))
	}, NodeTimeout(specTimeout))

	It("keeps the resources that its user gives the sidecar [R15]", func(ctx SpecContext) {
		u := expectAdmitted(ctx, rayCluster(namespace, minimal))
		more := corev1.ResourceList{corev1.ResourceMemory: head(u).Containers[0].Resources.Limits[corev1.ResourceMemory]}
		Expect(update(ctx, u, changeHead(func(p *corev1.PodSpec) { p.Containers[1].Resources.Limits = more }))).To(Succeed())
		Expect(head(u).Containers[1].Resources.Limits).To(Equal(more))
	}, NodeTimeout(specTimeout))

	It("keeps legacy names regardless of annotations of the user [R8] [raycluster-20]", func(ctx SpecContext) {
		u := legacy(ctx, expectAdmitted(ctx, rayCluster(namespace, minimal)), env.Namespace(ctx, "legacy"))
		names := raycluster.View(u.Object).LegacyNames()
		Expect(update(ctx, u, func(u *unstructured.Unstructured) { u.SetLabels(nil) })).To(Succeed())
		Expect(update(ctx, u, annotated(raycluster.AnnotationVersion, "1"), changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		Expect(u.GetAnnotations()).NotTo(HaveKey(raycluster.AnnotationVersion))
		h := head(u)
		Expect(h.ServiceAccountName).To(Equal("test-raycluster-oauth-proxy"))
		Expect(h.Volumes[2].Secret.SecretName).To(Equal("ca-secret-test-raycluster"))
		Expect(names.CASecret).To(Equal("ca-secret-test-raycluster"))
	}, NodeTimeout(specTimeout))

	It("can be applied repeatedly by an SDK without a conflict", func(ctx SpecContext) {
		apply := func(replicas int64) *unstructured.Unstructured {
			u := rayCluster(namespace, minimal)
			groups, _, _ := unstructured.NestedSlice(u.Object, workers...)
			groups[0].(map[string]any)["replicas"] = replicas
			set(groups, workers...)(u)
			Expect(env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("codeflare-sdk"))).To(Succeed())
			env.Get(ctx, u)
			return u
		}
		first := apply(1)
		for _, replicas := range []int64{2, 3} {
			again := apply(replicas)
			Expect(head(again)).To(Equal(head(first)))
			Expect(group(again, 0)).To(Equal(group(first, 0)))
			groups, _, _ := unstructured.NestedSlice(again.Object, workers...)
			Expect(groups[0]).To(HaveKeyWithValue("replicas", replicas))
		}
	}, NodeTimeout(specTimeout))
})

// legacy copies a cluster to another namespace, as an operator without hashed names would have created it.
func legacy(ctx context.Context, u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	GinkgoHelper()
	hashed, plain := raycluster.View(u.Object).HashedNames(), raycluster.View(u.Object).LegacyNames()
	text, err := yaml.Marshal(map[string]any{"spec": u.Object["spec"]})
	Expect(err).NotTo(HaveOccurred())
	old := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte(strings.NewReplacer(
		hashed.ServiceAccount, plain.ServiceAccount, hashed.CookieSecret, plain.CookieSecret, hashed.ProxyTLS, plain.ProxyTLS,
		hashed.CASecret, plain.CASecret, hashed.HeadTLS, plain.HeadTLS, hashed.WorkerTLS, plain.WorkerTLS, u.GetNamespace(), namespace,
	).Replace(string(text))), &old.Object)).To(Succeed())
	old.SetGroupVersionKind(raycluster.GVK)
	old.SetNamespace(namespace)
	old.SetName(u.GetName())
	labelled(bypass, "")(old)
	Expect(env.Admin.Create(ctx, old)).To(Succeed())
	Expect(update(ctx, old, labelled("touched", ""))).To(Succeed())
	return old
}

var _ = Describe("The webhooks", func() {
	It("remove only injected elements when a feature is disabled [R28]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		u := expectAdmitted(ctx, rayCluster(namespace, minimal, changeHead(func(p *corev1.PodSpec) { p.ServiceAccountName = "mine" })))
		original := rayCluster(namespace, minimal)
		settings(ctx, "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false}")
		probe := rayCluster(metav1.NamespaceDefault, minimal)
		Eventually(func(g Gomega) {
			p := probe.DeepCopy()
			g.Expect(env.Admin.Create(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(head(p).Volumes).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		before := head(u)
		Expect(update(ctx, u, labelled("touched", ""))).To(Succeed())
		Expect(head(u)).To(Equal(before), "pods that run keep what they have")
		Expect(update(ctx, u, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		want := head(original)
		want.ServiceAccountName, want.Containers[0].Image = "mine", "example.com/ray:2"
		Expect(head(u)).To(Equal(want))
		Expect(group(u, 0)).To(Equal(group(original, 0)))
	}, NodeTimeout(specTimeout))

	It("allow only deletion and changes of finalizers while the manager is down [R29]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		u := expectAdmitted(ctx, rayCluster(namespace, minimal, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/held"}) }))
		stopManager(ctx)
		Expect(env.Admin.Create(ctx, rayCluster(namespace, minimal, func(u *unstructured.Unstructured) { u.SetName("other") }))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(update(ctx, u, func(u *unstructured.Unstructured) {
			u.SetFinalizers(append(u.GetFinalizers(), "ray.io/gcs-ft-redis-cleanup-finalizer"))
		})).To(Succeed())
		Expect(update(ctx, u, set(true, "spec", "suspend"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(update(ctx, u, annotated(raycluster.AnnotationVersion, "x"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(env.Admin.Delete(ctx, u)).To(Succeed())
		env.Patch(ctx, u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, u)
	}, NodeTimeout(specTimeout))

	It("keep injected images after an upgrade until a template changes [R34] [raycluster-29]", func(ctx SpecContext) {
		u := expectAdmitted(ctx, rayCluster(env.Namespace(ctx, "ray"), minimal))
		stopManager(ctx)
		upgraded := env.StartManager(ctx, options("upgraded", "OAUTH_PROXY_IMAGE=example.com/oauth:2"))
		DeferCleanup(func(ctx SpecContext) { upgraded.Stop(ctx) }, NodeTimeout(specTimeout))
		waitForWebhooks(ctx)
		before := head(u)
		Expect(update(ctx, u, labelled("touched", ""), set(true, "spec", "suspend"))).To(Succeed())
		Expect(head(u)).To(Equal(before))
		Expect(update(ctx, u, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		Expect(head(u).Containers[1].Image).To(Equal("example.com/oauth:2"))
	}, NodeTimeout(specTimeout))

	It("accept every request with a warning while the component is disabled", func(ctx SpecContext) {
		stopManager(ctx)
		o := options("manager-off", "MLFLOW_IMAGE=example.com/mlflow:1")
		o.Args = []string{"--components=*,-raycluster"}
		off := env.StartManager(ctx, o)
		DeferCleanup(func(ctx SpecContext) { off.Stop(ctx) }, NodeTimeout(specTimeout))
		admin, heard := env.WithWarnings()
		namespace := env.Namespace(ctx, "ray")
		Eventually(func() error {
			return admin.Create(ctx, rayCluster(namespace, minimal, set(true, "spec", "headGroupSpec", "enableIngress")))
		}).WithContext(ctx).Should(Succeed())
		Expect(heard.Texts).To(ContainElement(ContainSubstring("the component raycluster is disabled")))
	}, NodeTimeout(specTimeout))

	It("reject requests while the initial settings are invalid, and name the error [R4] [R24]", func(ctx SpecContext) {
		stopManager(ctx)
		settings(ctx, "kuberay: {mTLSEnabled: perhaps}")
		manager.Restart(ctx)
		Eventually(func() error {
			return env.Admin.Create(ctx, rayCluster(metav1.NamespaceDefault, minimal), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(And(ContainSubstring("mTLSEnabled"), ContainSubstring("perhaps"))))
	}, NodeTimeout(specTimeout))
})

func settingsObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: raysettings.ConfigMapName}}
}

// settings writes the ConfigMap, and deletes it at the end of the spec, which restores the defaults.
func settings(ctx context.Context, text string) {
	GinkgoHelper()
	object := settingsObject()
	object.Data = map[string]string{"config.yaml": text}
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, settingsObject()))).To(Succeed())
		Eventually(func(g Gomega) {
			p := rayCluster(metav1.NamespaceDefault, minimal)
			g.Expect(env.Admin.Create(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(head(p).Volumes).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))
}
