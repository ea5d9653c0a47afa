package foundation

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

func desiredOf(object apply.Object) apply.Desired { return apply.Desired{object} }

var _ = Describe("The applier", func() {
	It("writes each object once, and never again, even after a restart", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := oneOfEachKind(testEnv.namespace)
		testEnv.expectRequests(ctx, desired, ownerReads, len(desired))
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 0, 0)

		testEnv.restart()
		testEnv.expectRequests(ctx, desired, len(desired), 0)
		testEnv.expectRequests(ctx, desired, 0, 0)
	})

	It("sends no write while the cache does not contain its previous writes", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := oneOfEachKind(testEnv.namespace)
		testEnv.expectRequests(ctx, desired, ownerReads, len(desired))
		for range 5 {
			_, writes, err := testEnv.apply(ctx, desired)
			Expect(err).NotTo(HaveOccurred())
			Expect(writes).To(BeZero())
		}
	})

	It("sends no write for changes of the status and for fields of other clients, and keeps them", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := oneOfEachKind(testEnv.namespace)
		testEnv.expectRequests(ctx, desired, ownerReads, len(desired))
		foreign := `{"metadata":{"labels":{"foreign":"1"},"annotations":{"foreign":"1"},"finalizers":["test.opendatahub.io/hold"]}}`
		rendered, err := apply.Render(desired, component, testEnv.owner)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range rendered {
			testEnv.patch(ctx, object.DeepCopy(), foreign)
			DeferCleanup(func(ctx context.Context) {
				testEnv.patch(ctx, object.DeepCopy(), `{"metadata":{"finalizers":null}}`)
			})
		}
		server := testEnv.live(ctx, deploymentKind, "server")
		body := `{"spec":{"template":{"spec":{"containers":[{"name":"server","env":[{"name":"FOREIGN","value":"1"}]}]}}}}`
		Expect(env.Admin.Patch(ctx, server, client.RawPatch(types.StrategicMergePatchType, []byte(body)))).To(Succeed())
		liveWidget := testEnv.live(ctx, widgetKind, "server")
		Expect(env.Admin.Status().Patch(ctx, liveWidget, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"x"}}`)))).To(Succeed())

		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 1, 0) // one read of the Deployment, whose generation has changed
		testEnv.expectRequests(ctx, desired, 0, 0)
		testEnv.restart()
		testEnv.expectRequests(ctx, desired, len(desired), 0)
		Expect(testEnv.live(ctx, deploymentKind, "server").GetLabels()).To(HaveKeyWithValue("foreign", "1"))
		Expect(environment(testEnv.live(ctx, deploymentKind, "server"))).To(ContainElement("FOREIGN"))
	})

	DescribeTable("repairs managed fields that other clients changed",
		func(ctx context.Context, restarted bool) {
			testEnv := newApplyEnv(ctx)
			desired := desiredOf(apply.Object{Config: deployment(testEnv.namespace)})
			testEnv.expectRequests(ctx, desired, 0, 1)
			server := testEnv.live(ctx, deploymentKind, "server")
			testEnv.patch(ctx, server, `{"metadata":{"annotations":{"note":null}},"spec":{"replicas":7}}`)
			testEnv.waitForCache(ctx, desired)
			if restarted {
				testEnv.restart()
			}
			testEnv.expectRequests(ctx, desired, 1, 1)
			server = testEnv.live(ctx, deploymentKind, "server")
			Expect(server.GetAnnotations()).To(HaveKeyWithValue("note", "<&>"))
			replicas, _, err := unstructured.NestedInt64(server.Object, "spec", "replicas")
			Expect(err).NotTo(HaveOccurred())
			Expect(replicas).To(BeEquivalentTo(2))
			testEnv.waitForCache(ctx, desired)
			testEnv.expectRequests(ctx, desired, 0, 0)
		},
		Entry("while the manager is running", false),
		Entry("while the manager is down", true),
	)

	It("repairs a scale through the subresource", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := desiredOf(apply.Object{Config: deployment(testEnv.namespace)})
		testEnv.expectRequests(ctx, desired, 0, 1)
		server := testEnv.live(ctx, deploymentKind, "server")
		scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
		Expect(env.Admin.SubResource("scale").Patch(ctx, server, scale)).To(Succeed())
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 1, 1)
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 0, 0)
	})

	DescribeTable("prunes fields that are no longer desired",
		func(ctx context.Context, restarted bool) {
			testEnv := newApplyEnv(ctx)
			original := deployment(testEnv.namespace).WithLabels(map[string]string{"gone": "1"})
			original.Spec.Template.Spec.Containers[0].WithEnv(corev1ac.EnvVar().WithName("GONE").WithValue("1"))
			testEnv.expectRequests(ctx, desiredOf(apply.Object{Config: original}), 0, 1)
			testEnv.waitForCache(ctx, desiredOf(apply.Object{Config: original}))
			reads := 0
			if restarted {
				testEnv.restart()
				reads = 1
			}
			updated := desiredOf(apply.Object{Config: deployment(testEnv.namespace)})
			testEnv.expectRequests(ctx, updated, reads, 1)
			server := testEnv.live(ctx, deploymentKind, "server")
			Expect(server.GetLabels()).NotTo(HaveKey("gone"))
			Expect(environment(server)).NotTo(ContainElement("GONE"))
			testEnv.restart()
			testEnv.expectRequests(ctx, updated, 1, 0)
		},
		Entry("while the manager is running", false),
		Entry("across a restart", true),
	)

	It("prunes a field of an atomic list that is no longer desired after a restart", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		original := networkPolicy(testEnv.namespace)
		original.Spec.Ingress[0].From[0].WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"a": "b"}))
		testEnv.expectRequests(ctx, desiredOf(apply.Object{Config: original}), 0, 1)
		testEnv.restart()
		updated := desiredOf(apply.Object{Config: networkPolicy(testEnv.namespace)})
		testEnv.expectRequests(ctx, updated, 1, 1)
		testEnv.restart()
		testEnv.expectRequests(ctx, updated, 1, 0)

		policy := &networkingv1.NetworkPolicy{}
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: testEnv.namespace, Name: "server"}, policy)).To(Succeed())
		Expect(policy.Spec.Ingress[0].From[0].PodSelector).To(BeNil())
	})

	It("recreates a deleted object, and ignores a terminating one", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "held")})
		testEnv.expectRequests(ctx, desired, 0, 1)
		terminating := testEnv.live(ctx, configMapKind, "held")
		testEnv.patch(ctx, terminating, `{"metadata":{"finalizers":["test.opendatahub.io/hold"]}}`)
		Expect(env.Admin.Delete(ctx, terminating)).To(Succeed())
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 0, 0)
		testEnv.expectRequests(ctx, desired, 1, 0)

		testEnv.patch(ctx, terminating, `{"metadata":{"finalizers":null}}`)
		Eventually(func() error {
			return testEnv.cache.Get(ctx, client.ObjectKeyFromObject(terminating), testEnv.cachedType(configMapKind))
		}).Should(MatchError(apierrors.IsNotFound, "gone"))
		testEnv.expectRequests(ctx, desired, 0, 1)
		Expect(testEnv.live(ctx, configMapKind, "held").GetUID()).NotTo(Equal(terminating.GetUID()))
	})

	It("returns the error of an immutable field, and applies the other objects of its stage and of the earlier ones", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		testEnv.expectRequests(ctx, desiredOf(apply.Object{Config: deployment(testEnv.namespace)}), 0, 1)
		changed := deployment(testEnv.namespace)
		changed.Spec.Selector.WithMatchLabels(map[string]string{"more": "1"})
		changed.Spec.Template.WithLabels(map[string]string{"more": "1"})
		desired := apply.Desired{{Config: changed}, {Config: deployment(testEnv.namespace).WithName("rest")}, {Config: configMap(testEnv.namespace, "rest")}}
		var err error
		Eventually(func() error {
			_, _, err = testEnv.apply(ctx, desired)
			return err
		}).WithContext(ctx).Should(MatchError(apierrors.IsInvalid, "invalid"), "after conflicts with the Deployment controller")
		applyErr, ok := errors.AsType[*apply.Error](err)
		Expect(ok).To(BeTrue())
		Expect(applyErr.Kind).To(Equal("Deployment"))
		testEnv.live(ctx, deploymentKind, "rest")
		testEnv.live(ctx, configMapKind, "rest")
	})
})

var _ = Describe("Adoption by the applier", func() {
	It("rejects an object that another client created, and writes nothing", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		testEnv.restart()
		foreign := &corev1.ConfigMap{Data: map[string]string{"a": "theirs"}}
		foreign.Namespace, foreign.Name = testEnv.namespace, "server"
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())

		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server")})
		_, writes, err := testEnv.apply(ctx, desired)
		Expect(writes).To(BeZero())
		refused, ok := errors.AsType[*apply.ForeignError](err)
		Expect(ok).To(BeTrue(), "%v", err)
		Expect(refused.Error()).To(Equal("ConfigMap " + testEnv.namespace + "/server exists and was not created by this operator; " +
			"delete it or recreate it under another name, and the operator will create its own"))

		desired[0].AdoptIf = func(live *unstructured.Unstructured) bool { return live.GetName() == "server" }
		testEnv.expectRequests(ctx, desired, 1, 1)
		Expect(testEnv.live(ctx, configMapKind, "server").GetLabels()).To(HaveKeyWithValue(names.ComponentLabel, component))
	})

	It("detects an object of another client by its first write, which changes nothing, and only reads it afterwards", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		foreign := &corev1.ConfigMap{Data: map[string]string{"a": "theirs"}}
		foreign.Namespace, foreign.Name = testEnv.namespace, "server"
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		for _, expectedWrites := range []int64{1, 0, 0} {
			reads, writes, err := testEnv.apply(ctx, desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server")}))
			_, refused := errors.AsType[*apply.ForeignError](err)
			Expect(refused).To(BeTrue(), "%v", err)
			Expect(reads).To(BeEquivalentTo(1))
			Expect(writes).To(Equal(expectedWrites))
		}
		Expect(testEnv.live(ctx, configMapKind, "server").GetResourceVersion()).To(Equal(foreign.ResourceVersion))
	})

	DescribeTable("takes over objects of legacy operators, with all their fields",
		func(ctx context.Context, manager string, subject func(*applyEnv) client.Object) {
			testEnv := newApplyEnv(ctx)
			testEnv.restart("manager", "kubectl-client-side-apply")
			Expect(env.Admin.Create(ctx, subject(testEnv), client.FieldOwner(manager))).To(Succeed())

			desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server"),
				AdoptIf: func(*unstructured.Unstructured) bool { return true }})
			testEnv.expectRequests(ctx, desired, 1, 2) // field managers, then content
			live := testEnv.live(ctx, configMapKind, "server")
			Expect(live.Object["data"]).To(Equal(map[string]any{"a": "1", "b": ""}))
			Expect(live.GetAnnotations()).To(BeEmpty())
			testEnv.waitForCache(ctx, desired)
			testEnv.expectRequests(ctx, desired, 0, 0)
			testEnv.restart("manager", "kubectl-client-side-apply")
			testEnv.expectRequests(ctx, desired, 1, 0)

			testEnv.patch(ctx, live, `{"data":{"later":"1"}}`, client.FieldOwner(manager))
			testEnv.restart("manager", "kubectl-client-side-apply")
			testEnv.expectRequests(ctx, desired, 1, 0) // fields that this field manager sets after the adoption stay
		},
		Entry("written by update", "manager", func(testEnv *applyEnv) client.Object { return legacyConfigMap(testEnv, nil) }),
		Entry("written by client-side apply", "kubectl-client-side-apply", func(testEnv *applyEnv) client.Object {
			return legacyConfigMap(testEnv, map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})
		}),
		Entry("written by update with the field manager of the operator", fieldOwner, func(testEnv *applyEnv) client.Object { return legacyConfigMap(testEnv, nil) }),
	)

	It("adopts objects of its field manager without its labels with one write", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		testEnv.restart()
		existing := configMap(testEnv.namespace, "server").WithData(map[string]string{"old": "1"})
		Expect(env.Admin.Apply(ctx, existing, client.FieldOwner(fieldOwner))).To(Succeed())
		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server")})
		testEnv.expectRequests(ctx, desired, 1, 1)
		Expect(testEnv.live(ctx, configMapKind, "server").Object["data"]).NotTo(HaveKey("old"))
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 0, 0)
	})

	It("adopts restored objects whose owner reference has the UID of a deleted owner", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		restored := legacyConfigMap(testEnv, nil)
		restored.OwnerReferences = append(restored.OwnerReferences, controllerReference(testEnv.owner.Name, "2d4c7c3e-gone"))
		Expect(env.Admin.Create(ctx, restored, client.FieldOwner("velero"))).To(Succeed())
		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server")})
		Eventually(func(g Gomega) { // if the garbage collector deletes the object first, the applier recreates it
			g.Expect(testEnv.applier.Apply(ctx, testEnv.owner, desired)).To(Succeed())
			object := &corev1.ConfigMap{}
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(restored), object)).To(Succeed())
			g.Expect(object.OwnerReferences).To(HaveLen(1))
			g.Expect(object.OwnerReferences[0].UID).To(Equal(testEnv.owner.UID))
		}).Should(Succeed())
	})

	It("rejects an object that another owner controls, and names that owner", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server")})
		testEnv.expectRequests(ctx, desired, 0, 1)
		testEnv.owner = testEnv.newOwner(ctx, "other")
		testEnv.restart()
		_, writes, err := testEnv.apply(ctx, desired)
		Expect(writes).To(BeZero())
		refused, ok := errors.AsType[*apply.ForeignError](err)
		Expect(ok).To(BeTrue(), "%v", err)
		Expect(refused.Controller).To(Equal("ClusterRole " + testEnv.namespace + "-owner"))
	})

	It("removes the owner reference of data that outlives its owner", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		testEnv.restart()
		existing := legacyConfigMap(testEnv, nil)
		existing.OwnerReferences = append(existing.OwnerReferences, controllerReference(testEnv.owner.Name, testEnv.owner.UID))
		Expect(env.Admin.Create(ctx, existing, client.FieldOwner("another-manager"))).To(Succeed())
		desired := desiredOf(apply.Object{Config: configMap(testEnv.namespace, "server"), Ownership: apply.Unowned})
		testEnv.expectRequests(ctx, desired, 1, 2)
		Expect(testEnv.live(ctx, configMapKind, "server").GetOwnerReferences()).To(BeEmpty())
		testEnv.restart()
		testEnv.expectRequests(ctx, desired, 1, 0)

		desired[0].Ownership = apply.Controlled
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 2, 1) // the object, and its owner, which must not be terminating
		Expect(testEnv.live(ctx, configMapKind, "server").GetOwnerReferences()).To(HaveLen(1))
	})
})

// environment returns the names of the environment variables of the first container.
func environment(deployment *unstructured.Unstructured) []string {
	GinkgoHelper()
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, variable := range containers[0].(map[string]any)["env"].([]any) {
		found = append(found, variable.(map[string]any)["name"].(string))
	}
	return found
}
