package mlflow_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const artifactsURL = gatewayURL + "/mlflow-artifacts/api/2.0/mlflow-artifacts/artifacts"

// withArtifactsServer enables a server for artifacts, with the URI of the database in Secret db.
func withArtifactsServer(m *mlflowv1.MLflow) {
	withoutVolumes(m)
	m.Spec.ServeArtifacts, m.Spec.ArtifactsServer = false, &mlflowv1.ArtifactsServerConfig{Enabled: true, Replicas: new(int32(2))}
}

func artifactsDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-artifacts"}}
}

// artifactsServer returns the Deployment, HTTPRoute, Service and PodDisruptionBudget of a server for artifacts.
func artifactsServer() []client.Object {
	return []client.Object{
		artifactsDeployment(), framework.Unstructured(capability.HTTPRoute, namespace, "mlflow-artifacts"),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-artifacts"}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-artifacts"}},
	}
}

// disabledArtifactsServer returns a patch that lets the tracking server serve the artifacts.
func disabledArtifactsServer() map[string]any {
	return map[string]any{"spec": map[string]any{"serveArtifacts": true, "artifactsServer": map[string]any{"enabled": false}}}
}

var _ = Describe("A server for artifacts", func() {
	BeforeEach(func(ctx SpecContext) {
		create(ctx, secret("db", map[string]string{"uri": "postgresql://tracker@db/x"}))
		DeferCleanup(func(ctx SpecContext) {
			for _, child := range artifactsServer() {
				Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, child))).To(Succeed())
				env.WaitDeleted(ctx, child)
			}
		}, NodeTimeout(specTimeout))
	}, NodeTimeout(specTimeout))

	It("runs next to the tracking server with the shipped permissions, sends no write in the steady state, and is deleted separately [mlflow-82] [mlflow-92]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := createReady(ctx, newMLflow(withArtifactsServer))
		Expect(m.Status.ArtifactsURL).To(Equal(artifactsURL))
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(Equal("MLflow and MLflow artifacts deployments are ready and available"))
		for _, child := range artifactsServer() {
			env.Get(ctx, child)
			Expect(metav1.IsControlledBy(child, m)).To(BeTrue(), "%T", child)
		}
		d := artifactsDeployment()
		env.Get(ctx, d)
		Expect(*d.Spec.Replicas).To(Equal(int32(2)))
		Expect(d.Spec.Template.Spec.Containers[0].Args).To(ContainElements("--serve-artifacts", "--artifacts-destination=s3://bucket", "--default-artifact-root="+artifactsURL))
		Expect(template(ctx)).To(And(ContainSubstring("--no-serve-artifacts"), ContainSubstring("--default-artifact-root="+artifactsURL)))
		monitor := serviceMonitor()
		env.Get(ctx, monitor)
		selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		Expect(err).NotTo(HaveOccurred())
		services := &corev1.ServiceList{}
		Expect(env.Admin.List(ctx, services, client.InNamespace(namespace), client.MatchingLabels(selected))).To(Succeed())
		Expect(services.Items).To(ConsistOf(HaveField("Name", "mlflow")), "the ServiceMonitor must select only the tracking server")

		env.ExpectIdle(manager.User, idlePeriod)
		env.Touch(ctx, artifactsServer()...)
		env.ExpectIdle(manager.User, idlePeriod)
		restart := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(restart).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(requests.Writes()).To(BeEmpty(), "writes after a restart:\n%s", requests.Writes())

		By("changing the Deployment as a user")
		env.Patch(ctx, artifactsDeployment(), map[string]any{"spec": map[string]any{"replicas": 5}})
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(*d.Spec.Replicas).To(Equal(int32(2))) })

		By("disabling the server for artifacts")
		env.Patch(ctx, m, disabledArtifactsServer())
		env.WaitDeleted(ctx, artifactsServer()...)
		waitAvailable(ctx, m)
		Expect(m.Status.ArtifactsURL).To(BeEmpty())
		Expect(template(ctx)).To(ContainSubstring("--artifacts-destination=s3://bucket"))
		for _, child := range children() {
			env.Get(ctx, child)
			Expect(child.GetDeletionTimestamp()).To(BeNil())
		}
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return isAuthError(e.Code) })).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is not created unless two servers can share its stores [mlflow-88]", func(ctx SpecContext) {
		db := secret("db", nil)
		env.Patch(ctx, db, map[string]any{"stringData": map[string]any{"uri": "sqlite:////mlflow/hidden.db"}})
		m := newMLflow(withArtifactsServer)
		start := env.AuditPosition()
		create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "MetadataStoreValidationFailed")
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(And(ContainSubstring("spec.backendStoreUriFrom: key uri of Secret opendatahub/db must hold a postgresql or mysql URI"),
			Not(ContainSubstring("hidden"))))
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Status).To(Equal(metav1.ConditionFalse))
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // Events are sent later
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Writes().Where(func(e framework.Entry) bool {
			return e.Resource != "mlflows" && strings.HasPrefix(e.Name, "mlflow") && e.Resource != "events"
		})).To(BeEmpty())
		env.Patch(ctx, db, map[string]any{"stringData": map[string]any{"uri": "mysql+pymysql://tracker@db/x"}})
		waitAvailable(ctx, m)
	}, NodeTimeout(specTimeout))

	It("is stopped before a migration, even if it is disabled at the same time, and the Job waits for its pods [mlflow-84]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withArtifactsServer))
		pods := &corev1.PodList{}
		Expect(env.Admin.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": "mlflow-artifacts"})).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		pod := &pods.Items[0]
		setFinalizers := func(ctx context.Context, finalizers any) {
			GinkgoHelper()
			env.Patch(ctx, pod, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
		}
		setFinalizers(ctx, []string{"test.opendatahub.io/hold"})
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		}, NodeTimeout(specTimeout))

		manager.StopTemporarily(ctx)
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"version": "3.10.1"}}, "status")
		env.Patch(ctx, m, disabledArtifactsServer())
		for _, job := range jobs(ctx) {
			Expect(env.Admin.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		}
		start := env.AuditPosition()
		manager.Restart(ctx)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationScalingDown", "Waiting for MLflow pods to quiesce before migration: mlflow-artifacts=1 because")
		d := artifactsDeployment()
		env.Get(ctx, d)
		Expect(*d.Spec.Replicas).To(BeZero())
		Expect(createdJobs(start)).To(BeEmpty())
		setFinalizers(ctx, nil)
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(HaveLen(1))
		env.WaitDeleted(ctx, artifactsServer()...)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("does not change a foreign Service with its name while it is disabled [mlflow-85]", func(ctx SpecContext) {
		foreign := foreignService()
		create(ctx, foreign)
		m := createReady(ctx, newMLflow())
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"workers": 2}})
		waitAvailable(ctx, m)
		env.Get(ctx, foreign)
		Expect(foreign.OwnerReferences).To(BeEmpty())
		Expect(foreign.Spec.Ports[0].Port).To(Equal(int32(1)))
	}, NodeTimeout(specTimeout))
})

func foreignService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-artifacts", Labels: map[string]string{"app": "mlflow"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
}
