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

// prune prunes objects, and returns the number of read and write requests.
func (a *applyEnv) prune(ctx context.Context, owner client.Object, desired apply.Desired, legacy client.ListOption, kinds ...schema.GroupVersionKind) (reads, writes int64) {
	GinkgoHelper()
	a.reads.Store(0)
	a.writes.Store(0)
	Expect(a.applier.Prune(ctx, owner, desired, kinds, legacy)).To(Succeed())
	return a.reads.Load(), a.writes.Load()
}

var _ = Describe("Pruning by the applier", func() {
	It("deletes only objects that are no longer desired", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		data := apply.Object{Config: configMap(testEnv.namespace, "data"), Ownership: apply.Unowned}
		keep, drop := apply.Object{Config: configMap(testEnv.namespace, "keep")}, apply.Object{Config: configMap(testEnv.namespace, "drop")}
		server := apply.Object{Config: deployment(testEnv.namespace)}
		all := apply.Desired{data, keep, drop, server}
		testEnv.expectRequests(ctx, all, ownerReads, 4)
		foreign := legacyConfigMap(testEnv, nil)
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		testEnv.waitForCache(ctx, all)

		unserved := schema.GroupVersionKind{Group: "nowhere.test.opendatahub.io", Version: "v1", Kind: "Nothing"}
		reads, writes := testEnv.prune(ctx, testEnv.owner, apply.Desired{keep}, nil, configMapKind, unserved, deploymentKind)
		Expect(reads).To(BeZero())
		Expect(writes).To(BeEquivalentTo(2))
		testEnv.live(ctx, configMapKind, "data")
		testEnv.live(ctx, configMapKind, "keep")
		testEnv.live(ctx, configMapKind, "server")
		for kind, name := range map[schema.GroupVersionKind]string{configMapKind: "drop", deploymentKind: "server"} {
			key := client.ObjectKey{Namespace: testEnv.namespace, Name: name}
			Expect(apierrors.IsNotFound(env.Admin.Get(ctx, key, testEnv.cachedType(kind)))).To(BeTrue())
			Eventually(func() error { return testEnv.cache.Get(ctx, key, testEnv.cachedType(kind)) }).Should(MatchError(apierrors.IsNotFound, "gone"))
		}
		reads, writes = testEnv.prune(ctx, testEnv.owner, apply.Desired{keep}, nil, configMapKind, deploymentKind)
		Expect(reads + writes).To(BeZero())
	})

	It("searches for the objects of legacy operators once", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		legacy := legacyConfigMap(testEnv, nil)
		legacy.Labels = map[string]string{"app": "legacy"}
		legacy.OwnerReferences = []metav1.OwnerReference{controllerReference(testEnv.owner.Name, testEnv.owner.UID)}
		Expect(env.Admin.Create(ctx, legacy)).To(Succeed())
		foreign := legacy.DeepCopy()
		foreign.ResourceVersion, foreign.Name, foreign.OwnerReferences = "", "foreign", nil
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())

		reads, writes := testEnv.prune(ctx, testEnv.owner, nil, client.MatchingLabels{"app": "legacy"}, configMapKind)
		Expect(reads).To(BeEquivalentTo(1))
		Expect(writes).To(BeEquivalentTo(1))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(legacy), legacy))).To(BeTrue())
		testEnv.live(ctx, configMapKind, "foreign")
		reads, writes = testEnv.prune(ctx, testEnv.owner, nil, client.MatchingLabels{"app": "legacy"}, configMapKind)
		Expect(reads + writes).To(BeZero())
	})
})

// legacyConfigMap returns a ConfigMap of another operator.
func legacyConfigMap(testEnv *applyEnv, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: testEnv.namespace, Name: "server", Annotations: annotations},
		Data:       map[string]string{"a": "old", "old": "1"},
	}
}

func controllerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: name, UID: uid,
		Controller: new(true), BlockOwnerDeletion: new(true)}
}
