package modelregistry_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A generated database", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "database") }, NodeTimeout(specTimeout))

	unrouted := func(m *v1beta1.ModelRegistry) {
		m.Spec.KubeRBACProxy = &v1beta1.ProxyConfig{ServiceRoute: v1beta1.RouteDisabled}
	}
	credentials := func(ctx context.Context, m *v1beta1.ModelRegistry) *corev1.Secret {
		GinkgoHelper()
		s := child(m, &corev1.Secret{}, "-postgres-credentials")
		env.Get(ctx, s)
		return s
	}

	It("is created with the registry, and outlives it with its data [modelregistry-34]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted))
		claim := child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage")
		for _, c := range []client.Object{claim, credentials(ctx, m)} {
			env.Get(ctx, c)
			Expect(c.GetOwnerReferences()).To(BeEmpty(), "%T is data", c)
		}
		for _, c := range []client.Object{
			child(m, &appsv1.Deployment{}, "-postgres"), child(m, &corev1.Service{}, "-postgres"), child(m, &networkingv1.NetworkPolicy{}, "-postgres"),
			child(m, &networkingv1.NetworkPolicy{}, "-egress"), child(m, &networkingv1.NetworkPolicy{}, "-postgres-egress"),
		} {
			env.Get(ctx, c)
			Expect(metav1.IsControlledBy(c, m)).To(BeTrue(), "%T", c)
		}
		before, uid := credentials(ctx, m), claim.UID
		env.Delete(ctx, m)
		env.Get(ctx, claim)
		again := registry(namespace, namespace, withGeneratedDatabase, unrouted)
		create(ctx, again)
		waitAvailable(ctx, again)
		env.Get(ctx, claim)
		Expect(claim.UID).To(Equal(uid))
		Expect(credentials(ctx, again).Data).To(Equal(before.Data))
		env.WaitForCondition(ctx, again, "EarlierData", metav1.ConditionTrue, "DataTakenUp")
		Expect(framework.FindCondition(m.Status.Conditions, "EarlierData")).To(Equal(metav1.Condition{}))
	}, NodeTimeout(specTimeout))

	It("has no egress even if other clients add NetworkPolicies [modelregistry-132]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted))
		closed := child(m, &networkingv1.NetworkPolicy{}, "-postgres-egress")
		env.Patch(ctx, closed, map[string]any{"spec": map[string]any{"egress": []any{map[string]any{}}}})
		env.WaitFor(ctx, closed, func(g Gomega) { g.Expect(closed.Spec.Egress).To(BeEmpty()) })
		Expect(closed.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress))
		open := child(m, &networkingv1.NetworkPolicy{}, "-egress")
		env.Patch(ctx, open, map[string]any{"spec": map[string]any{"egress": nil}})
		env.WaitFor(ctx, open, func(g Gomega) { g.Expect(open.Spec.Egress).To(Equal([]networkingv1.NetworkPolicyEgressRule{{}})) })
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("is deleted with its data if the registry requires it, and keeps the names of its creation [D12]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted, func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres.RetentionPolicy, m.Spec.Postgres.Username, m.Spec.Postgres.Database = v1beta1.DeleteData, "ann", "models"
		}))
		secret := credentials(ctx, m)
		Expect(secret.Data).To(And(HaveKeyWithValue("username", []byte("ann")), HaveKeyWithValue("database", []byte("models"))))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"postgres": map[string]any{"database": "other"}}})
		env.WaitIdle(manager.User, quiet, specTimeout)
		d := child(m, &appsv1.Deployment{}, "")
		env.Get(ctx, d)
		Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(And(HaveField("Name", "MR_EMBEDMD_DATABASE_DSN"),
			HaveField("Value", ContainSubstring("postgresql://ann:$(POSTGRES_PASSWORD)@"+m.Name+"-postgres:5432/models")))))
		Expect(metav1.IsControlledBy(secret, m)).To(BeTrue())
		claim := child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage")
		env.Get(ctx, claim)
		Expect(metav1.IsControlledBy(claim, m)).To(BeTrue())
	}, NodeTimeout(specTimeout))

	It("is kept and reported when the registry uses another database [modelregistry-35] [D25]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"postgres": map[string]any{"generateDeployment": nil, "host": "db"}}})
		env.WaitForCondition(ctx, m, "UnusedDatabase", metav1.ConditionTrue, "DatabaseKept")
		env.Get(ctx, child(m, &appsv1.Deployment{}, "-postgres"))
		Expect(env.Admin.Delete(ctx, child(m, &appsv1.Deployment{}, "-postgres"))).To(Succeed())
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "UnusedDatabase")).To(Equal(metav1.Condition{}))
		})
	}, NodeTimeout(specTimeout))

	It("is never changed, except for the labels of its volume and its credentials [D7] [S2]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted))
		claim, secret := child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), credentials(ctx, m)
		env.Get(ctx, claim)
		spec := claim.Spec.DeepCopy()
		marks := map[string]any{"metadata": map[string]any{"labels": map[string]any{"platform.opendatahub.io/component": nil},
			"annotations": map[string]any{"banzaicloud.com/last-applied": "x"}}}
		env.Patch(ctx, claim, marks)
		env.Patch(ctx, secret, marks)
		for _, o := range []client.Object{claim, secret} {
			env.WaitFor(ctx, o, func(g Gomega) {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), "%T", o)
				g.Expect(o.GetAnnotations()).NotTo(HaveKey("banzaicloud.com/last-applied"), "%T", o)
			})
		}
		Expect(claim.Spec).To(Equal(*spec))
	}, NodeTimeout(specTimeout))

	It("is backed up to a claim that is kept, and serves TLS", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted, func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres.ServerTLS = server.Enabled
			m.Spec.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "99 3 * * *"}
		}))
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionFalse, "BackupRefused")
		Expect(framework.FindCondition(m.Status.Conditions, "BackupReady").Message).To(ContainSubstring("correct spec.postgres.backup"))
		backup := func(change any) {
			env.Patch(ctx, m, map[string]any{"spec": map[string]any{"postgres": map[string]any{"backup": change}}})
		}
		backup(map[string]any{"schedule": "0 0 29 2 *"}) // due only in leap years: the CronJob controller starts a missed Job
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionUnknown, "BackupPending")
		job, policy := child(m, &batchv1.CronJob{}, "-postgres-backup"), child(m, &networkingv1.NetworkPolicy{}, "-postgres-backup")
		claim, certificate := child(m, &corev1.PersistentVolumeClaim{}, "-postgres-backup"), child(m, &corev1.Secret{}, "-postgres-tls")
		for _, o := range []client.Object{job, policy, claim, certificate} {
			env.Get(ctx, o)
			Expect(metav1.IsControlledBy(o, m)).To(Equal(o != client.Object(claim)), "%T", o)
		}
		Expect(certificate.Data).To(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt")))
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)

		By("failing and completing a Job of the CronJob")
		env.Patch(ctx, job, map[string]any{"status": map[string]any{"lastScheduleTime": "2024-02-29T00:00:00Z"}}, "status")
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionFalse, "BackupFailed")
		env.Patch(ctx, job, map[string]any{"status": map[string]any{"lastSuccessfulTime": "2024-02-29T00:01:00Z"}}, "status")
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionTrue, "BackupSucceeded")
		backup(map[string]any{"suspend": true})
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionFalse, "BackupSuspended")

		By("removing the field, and deleting the registry")
		backup(nil)
		env.WaitDeleted(ctx, job, policy)
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "BackupReady")).To(Equal(metav1.Condition{}))
		})
		env.Delete(ctx, m)
		env.Get(ctx, claim)
	}, NodeTimeout(specTimeout))

	It("is not backed up to a foreign claim", func(ctx SpecContext) {
		m := registry(namespace, namespace, withGeneratedDatabase, unrouted, func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "@daily"}
		})
		create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace + "-postgres-backup"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		})
		createReady(ctx, m)
		env.WaitForCondition(ctx, m, "BackupReady", metav1.ConditionFalse, "BackupClaimForeign")
		Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace + "-postgres-backup"}, &batchv1.CronJob{})).NotTo(Succeed())
	}, NodeTimeout(specTimeout))

	It("keeps its image if the next one has another major version, and its size if the next one is smaller", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, withGeneratedDatabase, unrouted))
		claim, d := child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(m, &appsv1.Deployment{}, "-postgres")
		env.WaitFor(ctx, claim, func(g Gomega) {
			g.Expect(claim.Annotations).To(HaveKeyWithValue("modelregistry.opendatahub.io/postgres-major-version", "16"))
		})
		postgres := func(change map[string]any) {
			env.Patch(ctx, m, map[string]any{"spec": map[string]any{"postgres": change}})
		}
		postgres(map[string]any{"image": "quay.io/example/postgresql:17", "storage": map[string]any{"size": "1Gi"}, "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}})
		env.WaitForCondition(ctx, m, "DatabaseImageInSync", metav1.ConditionFalse, "MajorVersionDiffers")
		env.WaitForCondition(ctx, m, "StorageInSync", metav1.ConditionFalse, "ClaimDiffers")
		Expect(framework.FindCondition(m.Status.Conditions, "StorageInSync").Message).To(ContainSubstring("spec.postgres.storage.size is 1Gi"))
		env.WaitFor(ctx, d, func(g Gomega) {
			c := d.Spec.Template.Spec.Containers[0]
			g.Expect(c.Image + " " + c.Resources.Requests.Cpu().String()).To(Equal("quay.io/example/postgresql:16 1"))
		})
		postgres(map[string]any{"image": "example.com/mine", "storage": map[string]any{"size": "50Gi"}})
		env.WaitForCondition(ctx, m, "DatabaseImageInSync", metav1.ConditionFalse, "MajorVersionUnknown")
		env.WaitFor(ctx, claim, func(g Gomega) { g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("50Gi")) })
		postgres(map[string]any{"majorVersion": 16})
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "DatabaseImageInSync")).To(Equal(metav1.Condition{}))
			g.Expect(framework.FindCondition(m.Status.Conditions, "StorageInSync")).To(Equal(metav1.Condition{}))
		})
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("example.com/mine")) })
	}, NodeTimeout(specTimeout))

	It("is not created if a connection Secret is named", func(ctx SpecContext) {
		m := registry(namespace, namespace, unrouted, func(m *v1beta1.ModelRegistry) {
			m.Spec.Postgres = &v1beta1.PostgresConfig{ConnectionSecretName: "models-app", SSLMode: "require"}
		})
		create(ctx, certificate(m), m)
		env.WaitForCondition(ctx, m, "ReferencesReady", metav1.ConditionFalse, "ReferencesMissing")
		Expect(framework.FindCondition(m.Status.Conditions, "ReferencesReady").Message).To(ContainSubstring("Secret models-app does not exist"))
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "models-app"}, StringData: map[string]string{"uri": "postgresql://u:p@h:5432/d"}})
		waitAvailable(ctx, m)
		d := child(m, &appsv1.Deployment{}, "")
		env.Get(ctx, d)
		Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("Value", "$(POSTGRES_URI)?sslmode=require")))
	}, NodeTimeout(specTimeout))
})
