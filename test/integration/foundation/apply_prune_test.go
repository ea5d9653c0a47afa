package foundation

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// prune returns the number of reads and writes that pruning took.
func (a *applyEnv) prune(ctx context.Context, owner client.Object, desired apply.Desired, legacy client.ListOption, kinds ...schema.GroupVersionKind) (reads, writes int64) {
	GinkgoHelper()
	a.reads.Store(0)
	a.writes.Store(0)
	Expect(a.applier.Prune(ctx, owner, desired, kinds, legacy)).To(Succeed())
	return a.reads.Load(), a.writes.Load()
}

var _ = Describe("Pruning by the applier", func() {
	It("deletes only objects that are no longer desired", func(ctx context.Context) {
		w := newApplyEnv(ctx)
		data := apply.Object{Config: configMap(w.namespace, "data"), Ownership: apply.Unowned}
		keep, drop := apply.Object{Config: configMap(w.namespace, "keep")}, apply.Object{Config: configMap(w.namespace, "drop")}
		server := apply.Object{Config: deployment(w.namespace)}
		all := apply.Desired{data, keep, drop, server}
		w.expect(ctx, all, ownerReads, 4)
		foreign := olderConfigMap(w, nil)
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		w.waitForCache(ctx, all)

		unserved := schema.GroupVersionKind{Group: "nowhere.test.opendatahub.io", Version: "v1", Kind: "Nothing"}
		reads, writes := w.prune(ctx, w.owner, apply.Desired{keep}, nil, configMapKind, unserved, deploymentKind)
		Expect(reads).To(BeZero())
		Expect(writes).To(BeEquivalentTo(2))
		w.live(ctx, configMapKind, "data")
		w.live(ctx, configMapKind, "keep")
		w.live(ctx, configMapKind, "server")
		for kind, name := range map[schema.GroupVersionKind]string{configMapKind: "drop", deploymentKind: "server"} {
			key := client.ObjectKey{Namespace: w.namespace, Name: name}
			Expect(apierrors.IsNotFound(env.Admin.Get(ctx, key, w.cachedType(kind)))).To(BeTrue())
			Eventually(func() error { return w.cache.Get(ctx, key, w.cachedType(kind)) }).Should(MatchError(apierrors.IsNotFound, "gone"))
		}
		reads, writes = w.prune(ctx, w.owner, apply.Desired{keep}, nil, configMapKind, deploymentKind)
		Expect(reads + writes).To(BeZero())
	})

	It("searches for the objects of legacy operators once", func(ctx context.Context) {
		w := newApplyEnv(ctx)
		legacy := olderConfigMap(w, nil)
		legacy.Labels = map[string]string{"app": "older"}
		legacy.OwnerReferences = []metav1.OwnerReference{controllerReference(w.owner.Name, w.owner.UID)}
		Expect(env.Admin.Create(ctx, legacy)).To(Succeed())
		stranger := legacy.DeepCopy()
		stranger.ResourceVersion, stranger.Name, stranger.OwnerReferences = "", "stranger", nil
		Expect(env.Admin.Create(ctx, stranger)).To(Succeed())

		reads, writes := w.prune(ctx, w.owner, nil, client.MatchingLabels{"app": "older"}, configMapKind)
		Expect(reads).To(BeEquivalentTo(1))
		Expect(writes).To(BeEquivalentTo(1))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(legacy), legacy))).To(BeTrue())
		w.live(ctx, configMapKind, "stranger")
		reads, writes = w.prune(ctx, w.owner, nil, client.MatchingLabels{"app": "older"}, configMapKind)
		Expect(reads + writes).To(BeZero())
	})
})

// olderConfigMap returns a ConfigMap as another operator would create it.
func olderConfigMap(w *applyEnv, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "server", Annotations: annotations},
		Data:       map[string]string{"a": "old", "old": "1"},
	}
}

func controllerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: name, UID: uid,
		Controller: new(true), BlockOwnerDeletion: new(true)}
}
