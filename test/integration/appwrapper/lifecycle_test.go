package appwrapper_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var _ = Describe("An AppWrapper", func() {
	It("runs from suspended to succeeded, and releases its quota [appwrapper-1] [appwrapper-2] [appwrapper-3] [appwrapper-4] [appwrapper-5] [appwrapper-6] [appwrapper-7]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "life")
		start := env.AuditPosition()
		aw := create(ctx, wrap(ns, "two", []string{pod("one", runningImage), pod("other", unpullableImage)}, suspended, withAnnotations("successTTLDuration", "3s")))
		waitForPhase(ctx, aw, awv1beta2.PhaseSuspended)
		Expect(aw.Status.ComponentStatus).To(HaveLen(2))
		Expect(aw.Status.ComponentStatus[0].PodSets).To(HaveLen(1))
		Expect(aw.Finalizers).To(BeEmpty())

		resume(ctx, aw)
		waitForWrittenStatus(ctx, start, aw, awv1beta2.PhaseRunning, "QuotaReserved=True/Resuming", "ResourcesDeployed=True/Resuming", "PodsReady=False/Resuming", "Unhealthy=False/Resuming")
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=False"))
		Expect(aw.Finalizers).To(ConsistOf(awv1beta2.Finalizer))
		Expect(podsOf(ctx, aw)).To(HaveLen(2))

		waitForRunning(ctx, ns, "one")
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=False"))
		setPhase(ctx, ns, "other", corev1.PodRunning)
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True/SufficientPodsReady"))
		setPhase(ctx, ns, "one", corev1.PodSucceeded)
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"), func(g Gomega) {
			g.Expect(meta.FindStatusCondition(aw.Status.Conditions, "PodsReady").Message).To(Equal("1 pods running; 1 pods succeeded"))
		})
		setPhase(ctx, ns, "other", corev1.PodSucceeded)
		waitForWrittenStatus(ctx, start, aw, awv1beta2.PhaseSucceeded, "ResourcesDeployed=True/Succeeded", "QuotaReserved=False/Succeeded", "PodsReady=True/SufficientPodsReady")
		waitForPhase(ctx, aw, awv1beta2.PhaseSucceeded)
		Expect(aw.Status.CompletionTime).NotTo(BeNil())
		waitForPhase(ctx, aw, awv1beta2.PhaseSucceeded, hasConditions(aw, "ResourcesDeployed=False/Succeeded", "DeletingResources=False/DeletionComplete"))
		Expect(podsOf(ctx, aw)).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("deletes its objects when it is suspended, and leaves none when it is deleted [appwrapper-8] [appwrapper-15] [appwrapper-14]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "suspend")
		aw := wrap(ns, "mixed", []string{pod("declared", runningImage), pod("inferred", runningImage)})
		aw.Spec.Components[0].PodSets = []awv1beta2.AppWrapperPodSet{{Path: "template", Replicas: new(int32(1))}}
		create(ctx, aw)
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))

		start := env.AuditPosition()
		suspend(ctx, aw)
		waitForWrittenStatus(ctx, start, aw, awv1beta2.PhaseSuspending, "QuotaReserved=True", "ResourcesDeployed=True", "DeletingResources=True")
		waitForPhase(ctx, aw, awv1beta2.PhaseSuspended, hasConditions(aw, "QuotaReserved=False/Suspended", "ResourcesDeployed=False/Suspended", "PodsReady=False/Suspended"))
		Expect(podsOf(ctx, aw)).To(BeEmpty())
		Expect(componentReason(aw, 0)).To(Equal("CompononetDeleted"))

		resume(ctx, aw)
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.WaitDeleted(ctx, aw)
		waitForNoPods(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("merges the podSetInfos of Kueue into its pods [appwrapper-11]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "infos")
		aw := wrap(ns, "reported", []string{pod("p", runningImage)})
		aw.Spec.Components[0].PodSetInfos = []awv1beta2.AppWrapperPodSetInfo{{
			Labels: map[string]string{"quota": "granted"}, Annotations: map[string]string{"flavor": "a"}, NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}, SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/gate"}},
		}}
		create(ctx, aw)
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning)
		p := podsOf(ctx, aw)[0]
		Expect(p.Labels).To(And(HaveKeyWithValue("quota", "granted"), HaveKeyWithValue(awv1beta2.LabelAppWrapper, "reported")))
		Expect(p.Annotations).To(HaveKeyWithValue("flavor", "a"))
		Expect(p.Spec.NodeSelector).To(HaveKeyWithValue("kubernetes.io/os", "linux"))
		Expect(p.Spec.Tolerations).To(ContainElement(HaveField("Key", "spot")))
		Expect(p.Spec.SchedulingGates).To(ConsistOf(HaveField("Name", "example.com/gate")))
		Expect(p.OwnerReferences).To(ConsistOf(And(HaveField("UID", aw.UID), HaveField("Controller", HaveValue(BeTrue())))))
	}, SpecTimeout(specTimeout))

	It("fails permanently if the API server rejects a component, and keeps the created objects until it is suspended [appwrapper-10]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "invalid")
		aw := create(ctx, wrap(ns, "half", []string{pod("first", runningImage), `{apiVersion: v1, kind: Pod, metadata: {name: second}, spec: {containers: [{name: main}]}}`},
			withAnnotations("deletionOnFailureGracePeriodDuration", "1h")))
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "ResourcesDeployed=True", "QuotaReserved=True", "Unhealthy=True/CreateFailed", "DeletingResources=False/DeletionPaused"))
		Expect(meta.FindStatusCondition(aw.Status.Conditions, "Unhealthy").Message).To(HavePrefix("error creating components: "))
		Expect(podsOf(ctx, aw)).To(ConsistOf(HaveField("Name", "first")))
		Expect(aw.Status.Retries).To(BeZero())
		Expect(aw.Status.LastFailure.Message).To(ContainSubstring("image"))

		By("suspending the AppWrapper, which ends the delay [appwrapper-53]")
		suspend(ctx, aw)
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "ResourcesDeployed=False/Failed", "QuotaReserved=False/Failed"))
		Expect(meta.FindStatusCondition(aw.Status.Conditions, "ResourcesDeployed").Message).To(Equal("Kueue forced resource deletion by suspending AppWrapper"))
		Expect(podsOf(ctx, aw)).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("is deleted if it never ran", func(ctx SpecContext) {
		aw := create(ctx, wrap(env.Namespace(ctx, "never"), "idle", []string{pod("p", runningImage)}, suspended))
		waitForPhase(ctx, aw, awv1beta2.PhaseSuspended)
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.WaitDeleted(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("is not reconciled if spec.managedBy names another controller, but its finalizer is removed on deletion [D36]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "elsewhere")
		aw := create(ctx, wrap(ns, "unmanaged", []string{pod("p", runningImage)}, func(aw *awv1beta2.AppWrapper) {
			aw.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue")
			aw.Finalizers = []string{awv1beta2.Finalizer}
		}))
		managed := create(ctx, wrap(ns, "managed", []string{pod("q", runningImage)}))
		waitForPhase(ctx, managed, awv1beta2.PhaseRunning)
		env.Get(ctx, aw)
		Expect(aw.Status.Phase).To(BeEmpty())
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.WaitDeleted(ctx, aw)
	}, SpecTimeout(specTimeout))
})
