package raycluster_kuberay_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controller "github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// oauthSettings are the settings that add the OAuth sidecar to head pods.
var oauthSettings = strings.Replace(settings, "rayDashboardOAuthEnabled: false", "rayDashboardOAuthEnabled: true", 1)

// bypassLabel is the label of clusters that the webhooks ignore in createWithoutWebhooks.
const bypassLabel = "testcluster/stored"

// createWithoutWebhooks creates a cluster while the webhooks ignore it. Without the version annotation, its objects have the legacy names.
func createWithoutWebhooks(ctx context.Context, cluster *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	cluster.SetLabels(map[string]string{bypassLabel: ""})
	setObjectSelector := func(ctx context.Context, selector string) {
		GinkgoHelper()
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/webhooks/0/objectSelector", "value": `+selector+`}]`))
		for _, configuration := range []*unstructured.Unstructured{
			framework.Manifest("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: %s}}", webhook.MutatingConfiguration),
			framework.Manifest("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s}}", webhook.ValidatingConfiguration),
		} {
			Expect(env.Admin.Patch(ctx, configuration, patch)).To(Succeed())
		}
	}
	waitForVersionAnnotation := func(ctx context.Context, wantPresent bool) {
		GinkgoHelper()
		eventually(ctx, func(g Gomega) {
			probe := cluster.DeepCopy()
			err := env.Admin.Create(ctx, probe, client.DryRunAll)
			g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
			_, hasVersion := probe.GetAnnotations()[raycluster.AnnotationVersion]
			g.Expect(hasVersion).To(Equal(wantPresent))
		})
	}
	setObjectSelector(ctx, `{"matchExpressions": [{"key": "`+bypassLabel+`", "operator": "DoesNotExist"}]}`)
	DeferCleanup(setObjectSelector, "{}", NodeTimeout(specTimeout))
	waitForVersionAnnotation(ctx, false)
	live := createAndCleanUp(ctx, cluster.DeepCopy())
	setObjectSelector(ctx, "{}")
	cluster.SetName(cluster.GetName() + "-probe")
	waitForVersionAnnotation(ctx, true)
	return live
}

// waitForHead waits until a cluster has exactly one head pod, which has the given containers, and returns the pod.
func waitForHead(ctx context.Context, cluster *unstructured.Unstructured, containers ...string) corev1.Pod {
	GinkgoHelper()
	var head corev1.Pod
	eventually(ctx, func(g Gomega) {
		var heads []corev1.Pod
		for _, pod := range listPods(ctx, g, cluster) {
			if pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead {
				heads = append(heads, pod)
			}
		}
		g.Expect(heads).To(HaveLen(1))
		var names []string
		for _, container := range heads[0].Spec.Containers {
			names = append(names, container.Name)
		}
		g.Expect(names).To(Equal(containers))
		head = heads[0]
	})
	return head
}

// recreatePods deletes the pods of clusters. KubeRay recreates them from the templates.
func recreatePods(ctx context.Context, clusters ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, cluster := range clusters {
		Expect(env.Admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{raycluster.LabelCluster: cluster.GetName()})).To(Succeed())
	}
}

// listPolicies returns the names of the NetworkPolicies of a namespace, and whether the operator created each of them.
func listPolicies(ctx context.Context, g Gomega, namespace string) map[string]bool {
	var policies networkingv1.NetworkPolicyList
	g.Expect(env.Admin.List(ctx, &policies, client.InNamespace(namespace))).To(Succeed())
	names := map[string]bool{}
	for _, policy := range policies.Items {
		_, names[policy.Name] = policy.Labels[raycluster.LabelClusterName]
	}
	return names
}

// waitSecuredByPlatform waits until the pod templates of a cluster have no additions of the operator, and its policies are those of the platform.
func waitSecuredByPlatform(ctx context.Context, live *unstructured.Unstructured) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		g.Expect(live.GetAnnotations()).To(HaveKeyWithValue(trustedNetworkAnnotation, "true"))
		g.Expect(live.GetFinalizers()).To(ConsistOf(platformFinalizer))
		g.Expect(raycluster.View(live.Object).Injected()).To(Equal(raycluster.Injected{}))
		g.Expect(containerNames(live, "containers") + containerNames(live, "initContainers")).To(Equal("ray-head"))
		policies := listPolicies(ctx, g, live.GetNamespace())
		g.Expect(policies).To(And(HaveKeyWithValue(live.GetName()+"-head", false), HaveKeyWithValue(live.GetName()+"-workers", false)))
	})
	env.WaitForEvent(ctx, live, controller.ReasonSecuredByKubeRay, "")
}

// waitNoObjects waits until a cluster has no child objects of the operator.
func waitNoObjects(ctx context.Context, live *unstructured.Unstructured) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) { g.Expect(listRemaining(ctx, g, live.GetNamespace(), live.GetName())).To(BeEmpty()) })
	env.WaitDeleted(ctx, framework.Unstructured(capability.Route, live.GetNamespace(), namesOf(live).Dashboard))
}

var _ = Describe("RayClusters next to the KubeRay of the platform", func() {
	It("are secured by it when it is installed, and by the operator again when it is removed", func(ctx SpecContext) {
		installOpenShiftAPIs(ctx)
		changeSettings(ctx, oauthSettings, string(raycluster.AuthOAuth), raycluster.InitCertificate)
		namespace := env.Namespace(ctx, "ray")
		kept := createAndCleanUp(ctx, newRayCluster(namespace, "kept"))
		legacy := createWithoutWebhooks(ctx, newRayCluster(namespace, "legacy"))
		waitForCertificates(ctx, waitReady(ctx, kept), 3)
		waitForHead(ctx, kept, "ray-head", "oauth-proxy")
		eventually(ctx, func(g Gomega) {
			g.Expect(listPolicies(ctx, g, namespace)).To(And(HaveKeyWithValue("legacy-head", true), HaveKeyWithValue(namesOf(kept).HeadPolicy, true)))
		})

		By("installing the KubeRay of the platform")
		platform := installPlatformKubeRay(ctx, namespace, true)
		for _, live := range []*unstructured.Unstructured{kept, legacy} {
			waitSecuredByPlatform(ctx, live)
		}
		env.WaitForEvent(ctx, kept, controller.ReasonPodsOutdated, "delete all pods")
		recreatePods(ctx, kept, legacy)
		created := createAndCleanUp(ctx, newRayCluster(namespace, "fresh"))
		for _, live := range []*unstructured.Unstructured{kept, legacy, created} {
			head := waitForHead(ctx, live, "ray-head", "kube-rbac-proxy")
			Expect(head.Spec.ServiceAccountName).To(Equal(live.GetName() + "-oauth-proxy-sa"))
			Expect(head.Spec.InitContainers).To(BeEmpty())
			waitReady(ctx, live)
			waitSecuredByPlatform(ctx, live)
			waitNoObjects(ctx, live)
		}
		Expect(listPolicies(ctx, Default, namespace)).To(HaveLen(6), "policies of the operator remain")
		env.Patch(ctx, reference(created), map[string]any{"spec": map[string]any{"headGroupSpec": map[string]any{"enableIngress": true}}})
		env.Get(ctx, created)
		ingress, _, _ := unstructured.NestedBool(created.Object, "spec", "headGroupSpec", "enableIngress")
		Expect(ingress).To(BeFalse(), "the webhook of the platform did not override the field")
		deleted := createAndCleanUp(ctx, newRayCluster(namespace, "deleted"))
		waitSecuredByPlatform(ctx, waitReady(ctx, deleted))
		deleteCompletely(ctx, deleted)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("removing the KubeRay of the platform")
		platform.remove(ctx)
		for _, live := range []*unstructured.Unstructured{kept, legacy, created} {
			env.WaitForEvent(ctx, live, controller.ReasonNotSecured, "while the KubeRay of the platform secured it")
			removePlatformFinalizer(ctx, live)
			Expect(env.Admin.Patch(ctx, live, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op": "add", "path": "/spec/headGroupSpec/template/spec/containers/0/image", "value": "example.com/ray:2"}]`)))).To(Succeed())
		}
		recreatePods(ctx, kept, legacy, created)
		for _, live := range []*unstructured.Unstructured{kept, legacy, created} {
			waitForHead(ctx, live, "ray-head", "oauth-proxy")
			waitForCertificates(ctx, live, 3)
			n := namesOf(live)
			eventually(ctx, func(g Gomega) {
				g.Expect(listPolicies(ctx, g, namespace)).To(And(HaveKeyWithValue(n.HeadPolicy, true), HaveKeyWithValue(n.WorkerPolicy, true)))
			})
			env.WaitExists(ctx, framework.Unstructured(capability.Route, namespace, n.Dashboard))
		}
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
		for _, live := range []*unstructured.Unstructured{kept, legacy, created} {
			deleteCompletely(ctx, live)
		}
	}, SpecTimeout(2*specTimeout))

	It("are secured by the operator if the Route API is not served, with policies that the platform does not delete", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		legacy := createWithoutWebhooks(ctx, newRayCluster(namespace, "legacy"))
		eventually(ctx, func(g Gomega) { g.Expect(listPolicies(ctx, g, namespace)).To(HaveKeyWithValue("legacy-head", true)) })
		platform := installPlatformKubeRay(ctx, namespace, false)
		created := createAndCleanUp(ctx, newRayCluster(namespace, "fresh"))
		waitForCertificates(ctx, waitReady(ctx, created), 3)
		waitForHead(ctx, created, "ray-head")
		hashedPolicies := map[string]bool{}
		for _, live := range []*unstructured.Unstructured{legacy, created} {
			n := raycluster.View(live.Object).HashedNames()
			hashedPolicies[n.HeadPolicy], hashedPolicies[n.WorkerPolicy] = true, true
		}
		eventually(ctx, func(g Gomega) { g.Expect(listPolicies(ctx, g, namespace)).To(Equal(hashedPolicies)) })
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("removing the KubeRay of the platform")
		platform.remove(ctx)
		eventually(ctx, func(g Gomega) { g.Expect(listPolicies(ctx, g, namespace)).To(HaveKeyWithValue("legacy-head", true)) })
		waitForCertificates(ctx, created, 3)
	}, SpecTimeout(specTimeout))
})
