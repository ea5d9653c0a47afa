package mlflow_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

func podAnnotations(value any) map[string]any {
	return map[string]any{"spec": map[string]any{"podAnnotations": map[string]any{cluster.PodBehaviorAnnotation: value}}}
}

// transition returns the lastTransitionTime of the condition Available.
func transition(m *mlflowv1.MLflow) metav1.Time {
	return meta.FindStatusCondition(m.Status.Conditions, "Available").LastTransitionTime
}

var _ = Describe("Availability [D18]", func() {
	It("is kept while the previous pod serves during a rollout, and Ready is False until the rollout is complete", func(ctx SpecContext) {
		db := secret("db", map[string]string{"uri": "postgresql://a"})
		create(ctx, db)
		m := createReady(ctx, newMLflow(withoutVolumes))

		By("rolling out pods that do not start, while the previous pod serves")
		env.Patch(ctx, m, podAnnotations("image-pull"))
		since := transition(m)
		env.WaitForCondition(ctx, m, "Ready", metav1.ConditionFalse, "DeploymentProgressing")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentReady")
		d := deployment()
		env.Get(ctx, d)
		Expect(d.Status.ReadyReplicas).To(Equal(int32(1)), "the previous pod must be ready")
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(message(m, "Available")).To(ContainSubstring("image"), "the cause") })

		By("sending no writes while the rollout is stuck")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectNoWrites(manager.User, idlePeriod)

		By("correcting the pods")
		env.Patch(ctx, m, podAnnotations(nil))
		env.WaitForCondition(ctx, m, "Ready", metav1.ConditionTrue, "DeploymentReady")
		waitAvailable(ctx, m)
		Expect(m.Status.ObservedGeneration).To(Equal(m.Generation))
		Expect(transition(m)).To(Equal(since), "it must have been available all the time")
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A foreign object with the name of a child", func() {
	It("is reported in a condition and not changed, and replaced once it is deleted", func(ctx SpecContext) {
		foreign := service()
		foreign.Spec.Selector = map[string]string{"app": "something-else"}
		foreign.Spec.Ports = servicePort(80)
		create(ctx, foreign)

		m := newMLflow()
		create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "ApplyFailed")
		Expect(message(m, "Available")).To(ContainSubstring("Service opendatahub/mlflow exists and was not created by this operator; delete it or recreate it under another name"))
		env.Get(ctx, foreign)
		Expect(foreign.Spec.Selector).To(Equal(map[string]string{"app": "something-else"}))
		Expect(foreign.Labels).To(BeEmpty())
		env.Get(ctx, deployment()) // the other children are written despite one failure [D21]

		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		env.WaitDeleted(ctx, deployment())
		env.Get(ctx, foreign)
		Expect(foreign.DeletionTimestamp).To(BeNil(), "a foreign object must never be deleted")

		Expect(env.Admin.Delete(ctx, foreign)).To(Succeed())
		createReady(ctx, newMLflow())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A ServiceAccount that a user created", func() {
	It("is used without changes, and kept when the server is deleted", func(ctx SpecContext) {
		foreign := serviceAccount("cloud-identity")
		foreign.Annotations = map[string]string{"example.com/role": "tracking"}
		create(ctx, foreign)
		start := env.AuditPosition()
		m := createReady(ctx, newMLflow(func(m *mlflowv1.MLflow) { m.Spec.ServiceAccountName = "cloud-identity" }))
		d := deployment()
		env.Get(ctx, d)
		Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal("cloud-identity"))
		deleteAndWait(ctx, m)
		Expect(env.Since(start).ByUser(manager.User).ForResource("serviceaccounts").Writes()).To(BeEmpty())
		env.Get(ctx, foreign)
		Expect(foreign.DeletionTimestamp).To(BeNil())
		Expect(foreign.OwnerReferences).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The removal of an API at run time [D31]", func() {
	It("deletes the objects of optional APIs, and the manager recreates them when the APIs are served again", func(ctx SpecContext) {
		optional := map[string]client.Object{
			"servicemonitors.monitoring.coreos.com": serviceMonitor(),
			"httproutes.gateway.networking.k8s.io":  httpRoute(),
			"consolelinks.console.openshift.io":     consoleLink(),
		}
		restore := func(ctx context.Context) {
			for crd := range optional {
				Expect(cluster.InstallCRD(ctx, env.Config, crd)).To(Succeed())
			}
		}
		m := createReady(ctx, newMLflow())
		pid, original := manager.Process.PID, deployment()
		env.Get(ctx, original)
		DeferCleanup(func(ctx SpecContext) { restore(ctx) }, NodeTimeout(specTimeout))
		for crd := range optional {
			Expect(cluster.RemoveCRD(ctx, env.Config, crd)).To(Succeed())
		}
		Eventually(func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			g.Expect(m.Status.URL).To(BeEmpty(), "[mlflow-31]")
		}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed(), "a reconcile must not wait for an informer of a removed API")
		waitAvailable(ctx, m)
		env.ExpectIdle(manager.User, idlePeriod)

		restore(ctx)
		for _, object := range optional {
			Eventually(func() error {
				return env.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
			}).WithContext(ctx).Should(Succeed())
		}
		waitAvailable(ctx, m)
		Expect(m.Status.URL).To(Equal(gatewayURL + "/mlflow"))
		Expect(manager.Process.PID).To(Equal(pid), "the manager must not restart")
		current := deployment()
		env.Get(ctx, current)
		Expect(current.Generation).To(Equal(original.Generation), "the Deployment must not change, because MLflow exposes metrics on every cluster")
		Expect(current.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--expose-prometheus=/prometheus"))
		Expect(manager.Process.Running()).To(BeTrue())
	}, NodeTimeout(specTimeout))

	It("restarts the manager if the API is that of MLflow, and the manager then waits for the API", func(ctx SpecContext) {
		const crd = "mlflows.mlflow.opendatahub.io"
		savedCRD := copyCRD(ctx, crd)
		restore := func(ctx context.Context) {
			Expect(cluster.InstallCRDs(ctx, env.Config, savedCRD.DeepCopy())).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { restore(ctx) }, NodeTimeout(specTimeout))
		deleteAndWait(ctx, savedCRD.DeepCopy())
		manager.AwaitRestart(ctx)
		env.ExpectNoWrites(manager.User, idlePeriod)
		restore(ctx)
		createReady(ctx, newMLflow())

		By("removing the API of a running server")
		deleteAndWait(ctx, savedCRD.DeepCopy())
		manager.AwaitRestart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(manager.Process.Running()).To(BeTrue())
		deleteChildren(ctx)
		restore(ctx)
		createReady(ctx, newMLflow(func(m *mlflowv1.MLflow) { m.Spec.Workers = new(int32(2)) }))
	}, NodeTimeout(2*specTimeout))
})
