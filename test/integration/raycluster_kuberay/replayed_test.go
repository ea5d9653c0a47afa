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

// withOAuth are the settings with a sidecar at dashboards.
var withOAuth = strings.Replace(settings, "rayDashboardOAuthEnabled: false", "rayDashboardOAuthEnabled: true", 1)

// stored is the label of clusters that bypass the webhooks.
const stored = "testcluster/stored"

// createStored creates a cluster while the webhooks ignore it. Without the annotation with a version, its objects have the legacy names.
func createStored(ctx context.Context, cluster *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	cluster.SetLabels(map[string]string{stored: ""})
	selectObjects := func(ctx context.Context, selector string) {
		GinkgoHelper()
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/webhooks/0/objectSelector", "value": `+selector+`}]`))
		for _, configuration := range []*unstructured.Unstructured{
			framework.Manifest("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: %s}}", webhook.MutatingConfiguration),
			framework.Manifest("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s}}", webhook.ValidatingConfiguration),
		} {
			Expect(env.Admin.Patch(ctx, configuration, patch)).To(Succeed())
		}
	}
	injects := func(ctx context.Context, want bool) {
		GinkgoHelper()
		eventually(ctx, func(g Gomega) {
			probe := cluster.DeepCopy()
			err := env.Admin.Create(ctx, probe, client.DryRunAll)
			g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
			_, hashed := probe.GetAnnotations()[raycluster.AnnotationVersion]
			g.Expect(hashed).To(Equal(want))
		})
	}
	selectObjects(ctx, `{"matchExpressions": [{"key": "`+stored+`", "operator": "DoesNotExist"}]}`)
	DeferCleanup(selectObjects, "{}", NodeTimeout(specTimeout))
	injects(ctx, false)
	live := createAndCleanUp(ctx, cluster.DeepCopy())
	selectObjects(ctx, "{}")
	cluster.SetName(cluster.GetName() + "-probe")
	injects(ctx, true)
	return live
}

// waitForHead waits until the cluster has exactly one head, with these containers, and returns it.
func waitForHead(ctx context.Context, cluster *unstructured.Unstructured, containers ...string) corev1.Pod {
	GinkgoHelper()
	var head corev1.Pod
	eventually(ctx, func(g Gomega) {
		var heads []corev1.Pod
		for _, pod := range podsOf(ctx, g, cluster) {
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

// recreatePods deletes the pods of clusters, which KubeRay creates again from the templates.
func recreatePods(ctx context.Context, clusters ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, cluster := range clusters {
		Expect(env.Admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{raycluster.LabelCluster: cluster.GetName()})).To(Succeed())
	}
}

// policiesIn returns the NetworkPolicies of a namespace, and whether the operator created each.
func policiesIn(ctx context.Context, g Gomega, namespace string) map[string]bool {
	var policies networkingv1.NetworkPolicyList
	g.Expect(env.Admin.List(ctx, &policies, client.InNamespace(namespace))).To(Succeed())
	names := map[string]bool{}
	for _, policy := range policies.Items {
		_, names[policy.Name] = policy.Labels[raycluster.LabelClusterName]
	}
	return names
}

// securedByPlatform waits until the operator adds nothing to the pod templates of a cluster, and its policies are those of the platform.
func securedByPlatform(ctx context.Context, live *unstructured.Unstructured) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		g.Expect(live.GetAnnotations()).To(HaveKeyWithValue(trusted, "true"))
		g.Expect(live.GetFinalizers()).To(ConsistOf(platformFinalizer))
		g.Expect(raycluster.View(live.Object).Injected()).To(Equal(raycluster.Injected{}))
		g.Expect(containers(live, "containers") + containers(live, "initContainers")).To(Equal("ray-head"))
		policies := policiesIn(ctx, g, live.GetNamespace())
		g.Expect(policies).To(And(HaveKeyWithValue(live.GetName()+"-head", false), HaveKeyWithValue(live.GetName()+"-workers", false)))
	})
	env.WaitForEvent(ctx, live, controller.ReasonSecuredByKubeRay, "")
}

// expectNoObjects waits until the operator has no objects for a cluster.
func expectNoObjects(ctx context.Context, live *unstructured.Unstructured) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) { g.Expect(leftovers(ctx, g, live.GetNamespace(), live.GetName())).To(BeEmpty()) })
	env.WaitDeleted(ctx, framework.Unstructured(capability.Route, live.GetNamespace(), names(live).Dashboard))
}

var _ = Describe("Next to the KubeRay of the platform", func() {
	It("running clusters change to its security when it is installed, and back when it is removed", func(ctx SpecContext) {
		onOpenShift(ctx)
		withSettings(ctx, withOAuth, string(raycluster.AuthOAuth), raycluster.InitCertificate)
		namespace := env.Namespace(ctx, "ray")
		kept := createAndCleanUp(ctx, rayCluster(namespace, "kept"))
		legacy := createStored(ctx, rayCluster(namespace, "legacy"))
		waitForCertificates(ctx, waitReady(ctx, kept), 3)
		waitForHead(ctx, kept, "ray-head", "oauth-proxy")
		eventually(ctx, func(g Gomega) {
			g.Expect(policiesIn(ctx, g, namespace)).To(And(HaveKeyWithValue("legacy-head", true), HaveKeyWithValue(names(kept).HeadPolicy, true)))
		})

		By("installing it")
		platform := installPlatformKubeRay(ctx, namespace, true)
		for _, live := range []*unstructured.Unstructured{kept, legacy} {
			securedByPlatform(ctx, live)
		}
		env.WaitForEvent(ctx, kept, controller.ReasonPodsOutdated, "delete all pods")
		recreatePods(ctx, kept, legacy)
		fresh := createAndCleanUp(ctx, rayCluster(namespace, "fresh"))
		for _, live := range []*unstructured.Unstructured{kept, legacy, fresh} {
			head := waitForHead(ctx, live, "ray-head", "kube-rbac-proxy")
			Expect(head.Spec.ServiceAccountName).To(Equal(live.GetName() + "-oauth-proxy-sa"))
			Expect(head.Spec.InitContainers).To(BeEmpty())
			waitReady(ctx, live)
			securedByPlatform(ctx, live)
			expectNoObjects(ctx, live)
		}
		Expect(policiesIn(ctx, Default, namespace)).To(HaveLen(6), "those of the platform alone")
		env.Patch(ctx, reference(fresh), map[string]any{"spec": map[string]any{"headGroupSpec": map[string]any{"enableIngress": true}}})
		env.Get(ctx, fresh)
		ingress, _, _ := unstructured.NestedBool(fresh.Object, "spec", "headGroupSpec", "enableIngress")
		Expect(ingress).To(BeFalse(), "its webhook wins")
		gone := createAndCleanUp(ctx, rayCluster(namespace, "gone"))
		securedByPlatform(ctx, waitReady(ctx, gone))
		deleteCompletely(ctx, gone)
		env.WaitIdle(manager.User, rest, waitTimeout)
		env.ExpectIdle(manager.User, rest)

		By("removing it")
		platform.remove(ctx)
		for _, live := range []*unstructured.Unstructured{kept, legacy, fresh} {
			env.WaitForEvent(ctx, live, controller.ReasonNotSecured, "while the KubeRay of the platform secured it")
			removePlatformFinalizer(ctx, live)
			Expect(env.Admin.Patch(ctx, live, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op": "add", "path": "/spec/headGroupSpec/template/spec/containers/0/image", "value": "example.com/ray:2"}]`)))).To(Succeed())
		}
		recreatePods(ctx, kept, legacy, fresh)
		for _, live := range []*unstructured.Unstructured{kept, legacy, fresh} {
			waitForHead(ctx, live, "ray-head", "oauth-proxy")
			waitForCertificates(ctx, live, 3)
			n := names(live)
			eventually(ctx, func(g Gomega) {
				g.Expect(policiesIn(ctx, g, namespace)).To(And(HaveKeyWithValue(n.HeadPolicy, true), HaveKeyWithValue(n.WorkerPolicy, true)))
			})
			env.WaitExists(ctx, framework.Unstructured(capability.Route, namespace, n.Dashboard))
		}
		env.WaitIdle(manager.User, rest, waitTimeout)
		env.ExpectIdle(manager.User, rest)
		for _, live := range []*unstructured.Unstructured{kept, legacy, fresh} {
			deleteCompletely(ctx, live)
		}
	}, SpecTimeout(2*specTimeout))

	It("clusters keep the security of the operator without Routes, and policies that it does not delete", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		legacy := createStored(ctx, rayCluster(namespace, "legacy"))
		eventually(ctx, func(g Gomega) { g.Expect(policiesIn(ctx, g, namespace)).To(HaveKeyWithValue("legacy-head", true)) })
		platform := installPlatformKubeRay(ctx, namespace, false)
		fresh := createAndCleanUp(ctx, rayCluster(namespace, "fresh"))
		waitForCertificates(ctx, waitReady(ctx, fresh), 3)
		waitForHead(ctx, fresh, "ray-head")
		hashed := map[string]bool{}
		for _, live := range []*unstructured.Unstructured{legacy, fresh} {
			n := raycluster.View(live.Object).HashedNames()
			hashed[n.HeadPolicy], hashed[n.WorkerPolicy] = true, true
		}
		eventually(ctx, func(g Gomega) { g.Expect(policiesIn(ctx, g, namespace)).To(Equal(hashed)) })
		env.WaitIdle(manager.User, rest, waitTimeout)
		env.ExpectIdle(manager.User, rest)

		By("removing it")
		platform.remove(ctx)
		eventually(ctx, func(g Gomega) { g.Expect(policiesIn(ctx, g, namespace)).To(HaveKeyWithValue("legacy-head", true)) })
		waitForCertificates(ctx, fresh, 3)
	}, SpecTimeout(specTimeout))
})
