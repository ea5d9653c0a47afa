package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

func storageSize(size string) map[string]any {
	return map[string]any{"spec": map[string]any{"storage": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}}}
}

func requestedSize(c *corev1.PersistentVolumeClaim) string {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

var _ = Describe("The volume claim of a server [D23]", func() {
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		It("outlives its MLflow by default, deleted in the "+string(propagation)+", and is used by the next one", func(ctx SpecContext) {
			m := createReady(ctx, newMLflow())
			original := claim()
			env.Get(ctx, original)
			Expect(original.OwnerReferences).To(BeEmpty())

			Expect(env.Admin.Delete(ctx, m, client.PropagationPolicy(propagation))).To(Succeed())
			for _, object := range append(children(), m) {
				env.WaitDeleted(ctx, object)
			}
			env.Get(ctx, original)
			Expect(original.DeletionTimestamp).To(BeNil())

			start := env.AuditPosition()
			createReady(ctx, newMLflow())
			reused := claim()
			env.Get(ctx, reused)
			Expect(reused.UID).To(Equal(original.UID))
			Expect(env.Since(start).ByUser(manager.User).ForResource("persistentvolumeclaims").Writes()).To(BeEmpty())
		}, NodeTimeout(specTimeout))
	}

	It("is deleted with its MLflow if the spec requests it", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(func(m *mlflowv1.MLflow) { m.Spec.StorageRetentionPolicy = mlflowv1.StorageDelete }))
		c := claim()
		env.Get(ctx, c)
		Expect(metav1.IsControlledBy(c, m)).To(BeTrue())
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		env.WaitDeleted(ctx, claim())
	}, NodeTimeout(specTimeout))

	It("gains or loses its owner reference when the retention policy changes", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		owners := func() []metav1.OwnerReference {
			c := claim()
			env.Get(ctx, c)
			return c.OwnerReferences
		}
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"storageRetentionPolicy": "Delete"}})
		Eventually(owners).WithContext(ctx).Should(HaveLen(1))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"storageRetentionPolicy": "Retain"}})
		Eventually(owners).WithContext(ctx).Should(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is expanded, and a smaller size is reported as impossible", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		env.Patch(ctx, m, storageSize("3Gi"))
		Eventually(func(g Gomega) {
			c := claim()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			g.Expect(requestedSize(c)).To(Equal("3Gi"))
		}).WithContext(ctx).Should(Succeed())

		env.Patch(ctx, m, storageSize("2Gi"))
		env.WaitForCondition(ctx, m, "StorageInSync", metav1.ConditionFalse, "ClaimDiffers")
		Expect(message(m, "StorageInSync")).To(ContainSubstring("spec.storage.resources.requests.storage is 2Gi and PersistentVolumeClaim mlflow-pvc has 3Gi"))
		waitAvailable(ctx, m)
		env.Patch(ctx, m, storageSize("3Gi"))
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(message(m, "StorageInSync")).To(BeEmpty()) })
	}, NodeTimeout(specTimeout))

	It("is used without changes if a user created it", func(ctx SpecContext) {
		restored := claim()
		restored.Spec = corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")}},
		}
		create(ctx, restored)
		start := env.AuditPosition()
		m := createReady(ctx, newMLflow(func(m *mlflowv1.MLflow) { m.Spec.StorageRetentionPolicy = mlflowv1.StorageDelete }))
		Expect(env.Since(start).ByUser(manager.User).ForResource("persistentvolumeclaims").Writes()).To(BeEmpty())
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		env.WaitDeleted(ctx, children()...)
		env.Get(ctx, restored)
		Expect(restored.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("loses its owner reference if the legacy operator created it", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		m := newMLflow()
		create(ctx, m)
		original := claim()
		original.Labels = map[string]string{"app": "mlflow", "component": "mlflow"}
		original.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, mlflowv1.GroupVersion.WithKind("MLflow"))}
		original.Spec = *m.Spec.Storage.DeepCopy()
		Expect(env.Admin.Create(ctx, original, client.FieldOwner("mlflow-operator"))).To(Succeed())
		manager.Restart(ctx)
		waitAvailable(ctx, m)
		env.Get(ctx, original)
		Expect(original.OwnerReferences).To(BeEmpty())
		Expect(original.Labels).To(HaveKeyWithValue("platform.opendatahub.io/component", "mlflow"))
	}, NodeTimeout(specTimeout))
})
