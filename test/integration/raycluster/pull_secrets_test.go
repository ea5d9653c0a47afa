package raycluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// unpullableImage is an image that the fake kubelet cannot pull.
const unpullableImage = "testcluster.invalid/image-pull:1"

// createPod creates a pod as KubeRay would. The pod runs, or waits for its image if that is unpullableImage.
func createPod(ctx context.Context, rayCluster *unstructured.Unstructured, nodeType, image string) *corev1.Pod {
	GinkgoHelper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName() + "-" + nodeType,
			Labels:          map[string]string{raycluster.LabelCluster: rayCluster.GetName(), raycluster.LabelNodeType: nodeType},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rayCluster, raycluster.GVK)}},
		Spec: corev1.PodSpec{ServiceAccountName: namesOf(rayCluster).ServiceAccount, Containers: []corev1.Container{{Name: "ray", Image: image}}},
	}
	Expect(env.Admin.Create(ctx, p)).To(Succeed())
	return p
}

// addPullSecret adds a pull Secret to the ServiceAccount of a cluster, as OpenShift does after the creation of a ServiceAccount.
func addPullSecret(ctx context.Context, rayCluster *unstructured.Unstructured) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: objectMeta(rayCluster, namesOf(rayCluster).ServiceAccount)}
	env.Patch(ctx, account, map[string]any{"imagePullSecrets": []any{map[string]any{"name": "late-dockercfg"}}})
}

func waitForImagePullBackOff(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	env.WaitFor(ctx, p, func(g Gomega) {
		g.Expect(p.Status.ContainerStatuses).NotTo(BeEmpty())
		g.Expect(p.Status.ContainerStatuses[0].State.Waiting).NotTo(BeNil())
	})
}

var _ = Describe("A Ray pod that was created before its ServiceAccount had pull Secrets", func() {
	It("is deleted if it cannot pull its image, whether it is the head or a worker [raycluster-5] [R22]", func(ctx SpecContext) {
		rayCluster := create(ctx, newRayCluster(env.Namespace(ctx, "pull"), "demo", withVersion))
		env.WaitExists(ctx, proxyObjects(rayCluster)...)
		head, worker := createPod(ctx, rayCluster, raycluster.NodeTypeHead, unpullableImage), createPod(ctx, rayCluster, raycluster.NodeTypeWorker, unpullableImage)
		waitForImagePullBackOff(ctx, head)
		waitForImagePullBackOff(ctx, worker)
		addPullSecret(ctx, rayCluster)
		env.WaitDeleted(ctx, head, worker)
		Expect(env.WaitForEvent(ctx, rayCluster, "PullSecretsMissing", "")).To(ContainSubstring("late-dockercfg"))
	}, NodeTimeout(specTimeout))

	It("is kept if it runs, or if its RayCluster lists pull Secrets [raycluster-6] [R22]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "nopull")
		running := create(ctx, newRayCluster(ns, "running", withVersion))
		listed := create(ctx, newRayCluster(ns, "listed", withVersion,
			setField([]any{map[string]any{"name": "mine"}}, "spec", "headGroupSpec", "template", "spec", "imagePullSecrets")))
		env.WaitExists(ctx, append(proxyObjects(running), proxyObjects(listed)...)...)
		runningPod, waitingPod := createPod(ctx, running, raycluster.NodeTypeHead, "registry.example.com/ray:1"), createPod(ctx, listed, raycluster.NodeTypeHead, unpullableImage)
		env.WaitFor(ctx, runningPod, func(g Gomega) { g.Expect(runningPod.Status.Phase).To(Equal(corev1.PodRunning)) })
		waitForImagePullBackOff(ctx, waitingPod)
		start := env.AuditPosition()
		addPullSecret(ctx, running)
		addPullSecret(ctx, listed)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		Expect(env.Since(start).ByUser(manager.User).ForResource("pods").Writes()).To(BeEmpty())
		for _, p := range []*corev1.Pod{runningPod, waitingPod} {
			env.Get(ctx, p)
			Expect(p.DeletionTimestamp).To(BeNil())
			Expect(env.Admin.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}, NodeTimeout(specTimeout))
})
