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

	withoutRoute := func(registry *v1beta1.ModelRegistry) {
		registry.Spec.KubeRBACProxy = &v1beta1.ProxyConfig{ServiceRoute: v1beta1.RouteDisabled}
	}
	getCredentials := func(ctx context.Context, registry *v1beta1.ModelRegistry) *corev1.Secret {
		GinkgoHelper()
		secret := child(registry, &corev1.Secret{}, "-postgres-credentials")
		env.Get(ctx, secret)
		return secret
	}

	It("is created with the registry, and outlives it with its data [modelregistry-34]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute))
		claim := child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage")
		for _, c := range []client.Object{claim, getCredentials(ctx, registry)} {
			env.Get(ctx, c)
			Expect(c.GetOwnerReferences()).To(BeEmpty(), "%T must outlive the registry", c)
		}
		for _, c := range []client.Object{
			child(registry, &appsv1.Deployment{}, "-postgres"), child(registry, &corev1.Service{}, "-postgres"), child(registry, &networkingv1.NetworkPolicy{}, "-postgres"),
			child(registry, &networkingv1.NetworkPolicy{}, "-egress"), child(registry, &networkingv1.NetworkPolicy{}, "-postgres-egress"),
		} {
			env.Get(ctx, c)
			Expect(metav1.IsControlledBy(c, registry)).To(BeTrue(), "%T", c)
		}
		before, uid := getCredentials(ctx, registry), claim.UID
		env.Delete(ctx, registry)
		env.Get(ctx, claim)
		recreated := newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute)
		create(ctx, recreated)
		waitAvailable(ctx, recreated)
		env.Get(ctx, claim)
		Expect(claim.UID).To(Equal(uid))
		Expect(getCredentials(ctx, recreated).Data).To(Equal(before.Data))
		env.WaitForCondition(ctx, recreated, "EarlierData", metav1.ConditionTrue, "DataTakenUp")
		Expect(framework.FindCondition(registry.Status.Conditions, "EarlierData")).To(Equal(metav1.Condition{}))
	}, NodeTimeout(specTimeout))

	It("has its egress policies restored when other clients change them [modelregistry-132]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute))
		databaseEgress := child(registry, &networkingv1.NetworkPolicy{}, "-postgres-egress")
		env.Patch(ctx, databaseEgress, map[string]any{"spec": map[string]any{"egress": []any{map[string]any{}}}})
		env.WaitFor(ctx, databaseEgress, func(g Gomega) { g.Expect(databaseEgress.Spec.Egress).To(BeEmpty()) })
		Expect(databaseEgress.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress))
		serverEgress := child(registry, &networkingv1.NetworkPolicy{}, "-egress")
		env.Patch(ctx, serverEgress, map[string]any{"spec": map[string]any{"egress": nil}})
		env.WaitFor(ctx, serverEgress, func(g Gomega) {
			g.Expect(serverEgress.Spec.Egress).To(Equal([]networkingv1.NetworkPolicyEgressRule{{}}))
		})
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("is owned by a registry that deletes its data, and keeps the names that it was created with [D12]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute, func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres.RetentionPolicy, registry.Spec.Postgres.Username, registry.Spec.Postgres.Database = v1beta1.DeleteData, "ann", "models"
		}))
		secret := getCredentials(ctx, registry)
		Expect(secret.Data).To(And(HaveKeyWithValue("username", []byte("ann")), HaveKeyWithValue("database", []byte("models"))))
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"postgres": map[string]any{"database": "other"}}})
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		deployment := child(registry, &appsv1.Deployment{}, "")
		env.Get(ctx, deployment)
		Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(ContainElement(And(HaveField("Name", "MR_EMBEDMD_DATABASE_DSN"),
			HaveField("Value", ContainSubstring("postgresql://ann:$(POSTGRES_PASSWORD)@"+registry.Name+"-postgres:5432/models")))))
		Expect(metav1.IsControlledBy(secret, registry)).To(BeTrue())
		claim := child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage")
		env.Get(ctx, claim)
		Expect(metav1.IsControlledBy(claim, registry)).To(BeTrue())
	}, NodeTimeout(specTimeout))

	It("is kept and reported when the registry uses another database [modelregistry-35] [D25]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute))
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"postgres": map[string]any{"generateDeployment": nil, "host": "db"}}})
		env.WaitForCondition(ctx, registry, "UnusedDatabase", metav1.ConditionTrue, "DatabaseKept")
		env.Get(ctx, child(registry, &appsv1.Deployment{}, "-postgres"))
		Expect(env.Admin.Delete(ctx, child(registry, &appsv1.Deployment{}, "-postgres"))).To(Succeed())
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "UnusedDatabase")).To(Equal(metav1.Condition{}))
		})
	}, NodeTimeout(specTimeout))

	It("has only the labels and annotations of its volume and its credentials corrected [D7] [S2]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute))
		claim, secret := child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), getCredentials(ctx, registry)
		env.Get(ctx, claim)
		spec := claim.Spec.DeepCopy()
		metadata := map[string]any{"metadata": map[string]any{"labels": map[string]any{"platform.opendatahub.io/component": nil},
			"annotations": map[string]any{"banzaicloud.com/last-applied": "x"}}}
		env.Patch(ctx, claim, metadata)
		env.Patch(ctx, secret, metadata)
		for _, o := range []client.Object{claim, secret} {
			env.WaitFor(ctx, o, func(g Gomega) {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), "%T", o)
				g.Expect(o.GetAnnotations()).NotTo(HaveKey("banzaicloud.com/last-applied"), "%T", o)
			})
		}
		Expect(claim.Spec).To(Equal(*spec))
	}, NodeTimeout(specTimeout))

	It("is backed up to a claim that is kept, and serves TLS", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute, func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres.ServerTLS = server.Enabled
			registry.Spec.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "99 3 * * *"}
		}))
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionFalse, "BackupRefused")
		Expect(framework.FindCondition(registry.Status.Conditions, "BackupReady").Message).To(ContainSubstring("correct spec.postgres.backup"))
		setBackup := func(change any) {
			env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"postgres": map[string]any{"backup": change}}})
		}
		setBackup(map[string]any{"schedule": "0 0 29 2 *"}) // due only in leap years: the CronJob controller starts a missed Job
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionUnknown, "BackupPending")
		cronJob, policy := child(registry, &batchv1.CronJob{}, "-postgres-backup"), child(registry, &networkingv1.NetworkPolicy{}, "-postgres-backup")
		claim, certificate := child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-backup"), child(registry, &corev1.Secret{}, "-postgres-tls")
		for _, o := range []client.Object{cronJob, policy, claim, certificate} {
			env.Get(ctx, o)
			Expect(metav1.IsControlledBy(o, registry)).To(Equal(o != client.Object(claim)), "%T", o)
		}
		Expect(certificate.Data).To(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt")))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("setting the results of a Job in the status of the CronJob")
		env.Patch(ctx, cronJob, map[string]any{"status": map[string]any{"lastScheduleTime": "2024-02-29T00:00:00Z"}}, "status")
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionFalse, "BackupFailed")
		env.Patch(ctx, cronJob, map[string]any{"status": map[string]any{"lastSuccessfulTime": "2024-02-29T00:01:00Z"}}, "status")
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionTrue, "BackupSucceeded")
		setBackup(map[string]any{"suspend": true})
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionFalse, "BackupSuspended")

		By("removing the field, and deleting the registry")
		setBackup(nil)
		env.WaitDeleted(ctx, cronJob, policy)
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "BackupReady")).To(Equal(metav1.Condition{}))
		})
		env.Delete(ctx, registry)
		env.Get(ctx, claim)
	}, NodeTimeout(specTimeout))

	It("is not backed up to a foreign claim", func(ctx SpecContext) {
		registry := newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute, func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres.Backup = &v1beta1.PostgresBackup{Schedule: "@daily"}
		})
		create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace + "-postgres-backup"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		})
		createReady(ctx, registry)
		env.WaitForCondition(ctx, registry, "BackupReady", metav1.ConditionFalse, "BackupClaimForeign")
		env.ExpectAbsent(ctx, child(registry, &batchv1.CronJob{}, "-postgres-backup"))
	}, NodeTimeout(specTimeout))

	It("keeps its image if the new one has another major version, and its size if the new one is smaller", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withGeneratedDatabase, withoutRoute))
		claim, deployment := child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(registry, &appsv1.Deployment{}, "-postgres")
		env.WaitFor(ctx, claim, func(g Gomega) {
			g.Expect(claim.Annotations).To(HaveKeyWithValue("modelregistry.opendatahub.io/postgres-major-version", "16"))
		})
		patchPostgres := func(change map[string]any) {
			env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"postgres": change}})
		}
		patchPostgres(map[string]any{"image": "quay.io/example/postgresql:17", "storage": map[string]any{"size": "1Gi"}, "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}})
		env.WaitForCondition(ctx, registry, "DatabaseImageInSync", metav1.ConditionFalse, "MajorVersionDiffers")
		env.WaitForCondition(ctx, registry, "StorageInSync", metav1.ConditionFalse, "ClaimDiffers")
		Expect(framework.FindCondition(registry.Status.Conditions, "StorageInSync").Message).To(ContainSubstring("spec.postgres.storage.size is 1Gi"))
		env.WaitFor(ctx, deployment, func(g Gomega) {
			c := deployment.Spec.Template.Spec.Containers[0]
			g.Expect(c.Image + " " + c.Resources.Requests.Cpu().String()).To(Equal("quay.io/example/postgresql:16 1"))
		})
		patchPostgres(map[string]any{"image": "example.com/mine", "storage": map[string]any{"size": "50Gi"}})
		env.WaitForCondition(ctx, registry, "DatabaseImageInSync", metav1.ConditionFalse, "MajorVersionUnknown")
		env.WaitFor(ctx, claim, func(g Gomega) { g.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("50Gi")) })
		patchPostgres(map[string]any{"majorVersion": 16})
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "DatabaseImageInSync")).To(Equal(metav1.Condition{}))
			g.Expect(framework.FindCondition(registry.Status.Conditions, "StorageInSync")).To(Equal(metav1.Condition{}))
		})
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("example.com/mine"))
		})
	}, NodeTimeout(specTimeout))

	It("is not created if the spec names a connection Secret", func(ctx SpecContext) {
		registry := newRegistry(namespace, namespace, withoutRoute, func(registry *v1beta1.ModelRegistry) {
			registry.Spec.Postgres = &v1beta1.PostgresConfig{ConnectionSecretName: "models-app", SSLMode: "require"}
		})
		create(ctx, proxyCertificate(registry), registry)
		env.WaitForCondition(ctx, registry, "ReferencesReady", metav1.ConditionFalse, "ReferencesMissing")
		Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Message).To(ContainSubstring("Secret models-app does not exist"))
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "models-app"}, StringData: map[string]string{"uri": "postgresql://u:p@h:5432/d"}})
		waitAvailable(ctx, registry)
		deployment := child(registry, &appsv1.Deployment{}, "")
		env.Get(ctx, deployment)
		Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("Value", "$(POSTGRES_URI)?sslmode=require")))
		env.ExpectAbsent(ctx, child(registry, &appsv1.Deployment{}, "-postgres"), child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage"))
	}, NodeTimeout(specTimeout))
})
