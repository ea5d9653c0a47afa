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

// stuck is an image that fake kubelets cannot pull.
const stuck = "testcluster.invalid/image-pull:1"

// pod creates a pod as KubeRay would, which runs or waits for its image.
func pod(ctx context.Context, u *unstructured.Unstructured, nodeType, image string) *corev1.Pod {
	GinkgoHelper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName() + "-" + nodeType,
			Labels:          map[string]string{raycluster.LabelCluster: u.GetName(), raycluster.LabelNodeType: nodeType},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, raycluster.GVK)}},
		Spec: corev1.PodSpec{ServiceAccountName: names(u).ServiceAccount, Containers: []corev1.Container{{Name: "ray", Image: image}}},
	}
	Expect(env.Admin.Create(ctx, p)).To(Succeed())
	return p
}

// addPullSecret adds a pull secret to a ServiceAccount, as OpenShift does after its creation.
func addPullSecret(ctx context.Context, u *unstructured.Unstructured) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: inNamespace(u, names(u).ServiceAccount)}
	env.Patch(ctx, account, map[string]any{"imagePullSecrets": []any{map[string]any{"name": "late-dockercfg"}}})
}

func waitsForImage(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	env.WaitFor(ctx, p, func(g Gomega) {
		g.Expect(p.Status.ContainerStatuses).NotTo(BeEmpty())
		g.Expect(p.Status.ContainerStatuses[0].State.Waiting).NotTo(BeNil())
	})
}

var _ = Describe("A Ray pod that was created before its ServiceAccount had pull Secrets", func() {
	It("is recreated if it cannot pull its image, also for workers [raycluster-5] [R22]", func(ctx SpecContext) {
		u := create(ctx, rayCluster(env.Namespace(ctx, "pull"), "demo", hashed))
		env.WaitExists(ctx, proxyObjects(u)...)
		head, worker := pod(ctx, u, raycluster.NodeTypeHead, stuck), pod(ctx, u, raycluster.NodeTypeWorker, stuck)
		waitsForImage(ctx, head)
		waitsForImage(ctx, worker)
		addPullSecret(ctx, u)
		env.WaitDeleted(ctx, head, worker)
		Expect(env.WaitForEvent(ctx, u, "PullSecretsMissing", "")).To(ContainSubstring("late-dockercfg"))
	}, NodeTimeout(specTimeout))

	It("is kept if it runs, or if its user lists pull Secrets [raycluster-6] [R22]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "nopull")
		running := create(ctx, rayCluster(ns, "running", hashed))
		listed := create(ctx, rayCluster(ns, "listed", hashed,
			set([]any{map[string]any{"name": "mine"}}, "spec", "headGroupSpec", "template", "spec", "imagePullSecrets")))
		env.WaitExists(ctx, append(proxyObjects(running), proxyObjects(listed)...)...)
		runs, waits := pod(ctx, running, raycluster.NodeTypeHead, "registry.example.com/ray:1"), pod(ctx, listed, raycluster.NodeTypeHead, stuck)
		env.WaitFor(ctx, runs, func(g Gomega) { g.Expect(runs.Status.Phase).To(Equal(corev1.PodRunning)) })
		waitsForImage(ctx, waits)
		start := env.AuditPosition()
		addPullSecret(ctx, running)
		addPullSecret(ctx, listed)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		Expect(env.Since(start).ByUser(manager.User).Of("pods").Writes()).To(BeEmpty())
		for _, p := range []*corev1.Pod{runs, waits} {
			env.Get(ctx, p)
			Expect(p.DeletionTimestamp).To(BeNil())
			Expect(env.Admin.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}, NodeTimeout(specTimeout))
})
