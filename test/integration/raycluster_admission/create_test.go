package raycluster_admission_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var tlsVariables = []string{"MY_POD_IP", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}

var _ = Describe("A new RayCluster", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "ray") })

	It("gets its sidecar, certificates and defaults [raycluster-10] [raycluster-11] [raycluster-12] [raycluster-13] [raycluster-14]", func(ctx SpecContext) {
		admin, warnings := env.WithWarnings()
		rayCluster := newRayCluster(namespace, minimal)
		Expect(admin.Create(ctx, rayCluster)).To(Succeed())
		Expect(warnings.Texts).To(BeEmpty())
		Expect(rayCluster.GetAnnotations()).To(HaveKey(raycluster.AnnotationVersion))
		headSpec := headPodSpec(rayCluster)
		Expect(headSpec.ServiceAccountName).To(Equal("test-raycluster-oauth-proxy-ecaffa62"))
		Expect(containerNames(headSpec.Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		Expect(containerNames(headSpec.InitContainers)).To(Equal([]string{"create-cert"}))
		Expect(volumeNames(headSpec)).To(Equal([]string{"proxy-tls-secret", "oauth-proxy-token", "ca-vol", "server-cert"}))
		for _, spec := range []*corev1.PodSpec{headSpec, workerPodSpec(rayCluster, 0), workerPodSpec(rayCluster, 1)} {
			var variables []string
			for _, variable := range spec.Containers[0].Env {
				variables = append(variables, variable.Name)
			}
			Expect(variables).To(Equal(tlsVariables))
			Expect(spec.Containers[0].VolumeMounts).To(HaveLen(2))
		}
		for i := range 2 {
			Expect(volumeNames(workerPodSpec(rayCluster, i))).To(Equal([]string{"ca-vol", "server-cert"}))
			Expect(containerNames(workerPodSpec(rayCluster, i).InitContainers)).To(Equal([]string{"create-cert"}))
		}
	}, NodeTimeout(specTimeout))

	It("requires the same permission of browsers as of tokens [R10], and mounts a token into the sidecar only [R30]", func(ctx SpecContext) {
		headSpec := headPodSpec(createRayCluster(ctx, newRayCluster(namespace, minimal)))
		permission := fmt.Sprintf(`{"resource":"pods","namespace":"%s","verb":"get"}`, namespace)
		Expect(headSpec.Containers[1].Args).To(ContainElements("--openshift-sar="+permission, `--openshift-delegate-urls={"/":`+permission+`}`))
		for _, c := range append(headSpec.InitContainers, headSpec.Containers...) {
			mountsToken := false
			for _, mount := range c.VolumeMounts {
				mountsToken = mountsToken || mount.Name == raycluster.VolumeToken
			}
			Expect(mountsToken).To(Equal(c.Name == "oauth-proxy"), c.Name)
		}
	}, NodeTimeout(specTimeout))

	DescribeTable("is rejected with", func(ctx SpecContext, message string, change func(*unstructured.Unstructured)) {
		err := env.Admin.Create(ctx, newRayCluster(namespace, minimal, change))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "vraycluster.ray.openshift.ai" denied the request`)))
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no container of the head [R5] [raycluster-9] [raycluster-31]",
			"spec.headGroupSpec.template.spec.containers: Required value: the first container must be the Ray container: add it",
			setField([]any{}, append(headPodPath, "containers")...)),
		Entry("no container of workers [R5] [raycluster-31]",
			"spec.workerGroupSpecs.1.template.spec.containers: Required value: the first container must be the Ray container: add it",
			changeGroup(1, func(p *corev1.PodSpec) { p.Containers = []corev1.Container{} })),
		Entry("enableIngress [raycluster-15]",
			"spec.headGroupSpec.enableIngress: Invalid value: true: RayCluster with enableIngress set to true is not allowed",
			setField(true, "spec", "headGroupSpec", "enableIngress")),
		Entry("a name of 54 characters [R19]", "metadata.name: Invalid value", func(rayCluster *unstructured.Unstructured) { rayCluster.SetName(strings.Repeat("a", 54)) }),
		Entry("a name that is not a DNS label [R19]", "Services are named after it", func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("a.b") }),
		Entry("an unknown issuer", "metadata.annotations[ray.openshift.ai/certificates]: Invalid value", withAnnotation(raycluster.AnnotationCertificates, "me")),
	)

	It("can have the longest name that KubeRay supports, and gets a warning about a truncated host [R19]", func(ctx SpecContext) {
		admin, warnings := env.WithWarnings()
		rayCluster := newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetName(strings.Repeat("a", 53)) })
		Expect(admin.Create(ctx, rayCluster)).To(Succeed())
		Expect(warnings.Texts).To(ContainElement(ContainSubstring("the dashboard gets the host")))
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namesOf(rayCluster).ProxyService}}
		env.WaitFor(ctx, service, func(g Gomega) { g.Expect(service.Spec.Ports).To(HaveLen(1)) })
	}, NodeTimeout(specTimeout))

	It("can use generateName", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) {
			rayCluster.SetName("")
			rayCluster.SetGenerateName("team-")
		}))
		Expect(rayCluster.GetName()).To(HavePrefix("team-"))
		Expect(headPodSpec(rayCluster).ServiceAccountName).To(Equal(namesOf(rayCluster).ServiceAccount))
	}, NodeTimeout(specTimeout))

	It("has certificates for the Service that its user names [R20], as the legacy operator rendered them [raycluster-24]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, withAnnotation(raycluster.AnnotationCertificates, "pod"),
			setField(map[string]any{"metadata": map[string]any{"name": "mine"}}, "spec", "headGroupSpec", "headService")))
		Expect(headPodSpec(rayCluster).InitContainers[0].Command[2]).To(And(ContainSubstring(`\nDNS.6 = mine.`+namespace+`.svc"`),
			ContainSubstring(`\nDNS.5 = rayclient-test-raycluster-`+namespace+`.`)))
	}, NodeTimeout(specTimeout))

	It("keeps newer fields of KubeRay [R1] [raycluster-33]", func(ctx SpecContext) {
		fields := map[string]any{
			"spec.managedBy": raycluster.ManagerKubeRay, "spec.gcsFaultToleranceOptions.redisAddress": "redis:6379", "spec.upgradeStrategy.type": "None",
			"spec.authOptions.mode": "disabled", "spec.autoscalerOptions.version": "v2", "spec.headGroupSpec.labels.a": "b", "spec.headGroupSpec.resources.CPU": "1",
		}
		rayCluster := newRayCluster(namespace, minimal)
		for path, value := range fields {
			setField(value, strings.Split(path, ".")...)(rayCluster)
		}
		groups, _, _ := unstructured.NestedSlice(rayCluster.Object, workerGroupsPath...)
		groups[0].(map[string]any)["idleTimeoutSeconds"] = int64(77)
		setField(groups, workerGroupsPath...)(rayCluster)
		createRayCluster(ctx, rayCluster)
		for path, value := range fields {
			found, _, err := unstructured.NestedFieldNoCopy(rayCluster.Object, strings.Split(path, ".")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(Equal(value), path)
		}
		groups, _, _ = unstructured.NestedSlice(rayCluster.Object, workerGroupsPath...)
		Expect(groups[0]).To(HaveKeyWithValue("idleTimeoutSeconds", int64(77)))
	}, NodeTimeout(specTimeout))

	It("mounts the certificates into the autoscaler of KubeRay [R14]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, setField(true, "spec", "enableInTreeAutoscaling")))
		variables, _, _ := unstructured.NestedSlice(rayCluster.Object, "spec", "autoscalerOptions", "env")
		Expect(variables).To(HaveLen(len(tlsVariables)))
		mounts, _, _ := unstructured.NestedSlice(rayCluster.Object, "spec", "autoscalerOptions", "volumeMounts")
		Expect(mounts).To(HaveLen(3))
	}, NodeTimeout(specTimeout))

	It("is not changed if MultiKueue runs it in another cluster [R23]", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, setField(raycluster.ManagerMultiKueue, "spec", "managedBy")))
		Expect(rayCluster.GetAnnotations()).To(BeEmpty())
		Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head"}))
		Expect(updateRayCluster(ctx, rayCluster, withLabel("touched", ""))).To(Succeed())
		Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head"}))
	}, NodeTimeout(specTimeout))

	It("keeps its sidecar even if Ray requires a token", func(ctx SpecContext) {
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, setField("token", "spec", "authOptions", "mode")))
		Expect(containerNames(headPodSpec(rayCluster).Containers)).To(Equal([]string{"ray-head", "oauth-proxy"}))
		Expect(containerNames(headPodSpec(rayCluster).InitContainers)).To(Equal([]string{"create-cert"}))
	}, NodeTimeout(specTimeout))

	It("has pods that a restricted namespace with a quota admits [R15]", func(ctx SpecContext) {
		env.Patch(ctx, framework.NamespaceNamed(namespace), map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		}})
		cpu := resource.MustParse("100")
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				corev1.ResourceRequestsCPU: cpu, corev1.ResourceLimitsCPU: cpu,
				corev1.ResourceRequestsMemory: resource.MustParse("100Gi"), corev1.ResourceLimitsMemory: resource.MustParse("100Gi"),
			}},
		}
		Expect(env.Admin.Create(ctx, quota)).To(Succeed())
		env.WaitFor(ctx, quota, func(g Gomega) { g.Expect(quota.Status.Hard).To(HaveLen(4)) })
		for _, issuer := range []string{"operator", "pod"} {
			rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, withAnnotation(raycluster.AnnotationCertificates, issuer), func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("c-" + issuer) }))
			serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namesOf(rayCluster).ServiceAccount}}
			env.WaitFor(ctx, serviceAccount, func(g Gomega) { g.Expect(serviceAccount.UID).NotTo(BeEmpty()) })
			for _, spec := range []*corev1.PodSpec{headPodSpec(rayCluster), workerPodSpec(rayCluster, 0)} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"}, Spec: *spec}
				Eventually(func() error {
					return env.Admin.Create(ctx, pod.DeepCopy(), client.DryRunAll)
				}).WithContext(ctx).Should(Succeed())
				pod.Spec.Containers[0].SecurityContext = nil
				Expect(env.Admin.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring("restricted")), "the namespace enforces the level")
			}
		}
	}, NodeTimeout(specTimeout))
})

var _ = Describe("With a newer CRD", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "rayclusters.ray.io"}}
		env.Get(ctx, crd)
		for i := range crd.Spec.Versions {
			if version := &crd.Spec.Versions[i]; version.Name == "v1" {
				anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
				spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
				for _, field := range []string{"tlsOptions", "networkPolicy", "futureField"} {
					spec.Properties[field] = anything
				}
				headGroup := spec.Properties["headGroupSpec"]
				headGroup.Properties["futureField"] = anything
				version.Schema.OpenAPIV3Schema.Properties["spec"] = spec
			}
		}
		Expect(env.Admin.Update(ctx, crd)).To(Succeed())
		Eventually(func(g Gomega) {
			rayCluster := newRayCluster(metav1.NamespaceDefault, minimal, setField(map[string]any{"a": "b"}, "spec", "futureField"))
			g.Expect(env.Admin.Create(ctx, rayCluster, client.DryRunAll)).To(Succeed())
			_, found, _ := unstructured.NestedMap(rayCluster.Object, "spec", "futureField")
			g.Expect(found).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("unknown fields survive creation and updates [R1] [raycluster-33]", func(ctx SpecContext) {
		unknownFields := map[string]any{"deep": []any{map[string]any{"number": int64(9007199254740993), "nothing": nil, "float": 1.5}}}
		rayCluster := createRayCluster(ctx, newRayCluster(env.Namespace(ctx, "ray"), minimal, setField(unknownFields, "spec", "futureField"), setField(unknownFields, "spec", "headGroupSpec", "futureField")))
		Expect(updateRayCluster(ctx, rayCluster, changeHead(func(p *corev1.PodSpec) { p.Containers[0].Image = "example.com/ray:2" }))).To(Succeed())
		for _, path := range [][]string{{"spec", "futureField"}, {"spec", "headGroupSpec", "futureField"}} {
			found, _, err := unstructured.NestedFieldNoCopy(rayCluster.Object, path...)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(Equal(unknownFields))
		}
	}, NodeTimeout(specTimeout))

	It("nothing is injected for mTLS if KubeRay 1.7 issues the certificates, even if an update enables tlsOptions [R29]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		rayCluster := createRayCluster(ctx, newRayCluster(namespace, minimal, setField(true, "spec", "tlsOptions", "enabled")))
		Expect(headPodSpec(rayCluster).InitContainers).To(BeEmpty())
		Expect(headPodSpec(rayCluster).Containers[0].Env).To(BeEmpty())
		Expect(volumeNames(headPodSpec(rayCluster))).To(Equal([]string{"proxy-tls-secret", "oauth-proxy-token"}))
		other := createRayCluster(ctx, newRayCluster(namespace, minimal, func(rayCluster *unstructured.Unstructured) { rayCluster.SetName("other") }))
		Expect(updateRayCluster(ctx, other, setField(true, "spec", "tlsOptions", "enabled"))).To(Succeed())
		Expect(headPodSpec(other).InitContainers).To(BeEmpty())
		Expect(workerPodSpec(other, 1).Volumes).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
