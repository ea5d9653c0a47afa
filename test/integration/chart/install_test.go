package chart_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/parity"
)

// The cluster-scoped roles have a fixed name, so the specs run serially and delete all objects.
var _ = Describe("The chart, in a namespace that enforces the restricted Pod Security level,", func() {
	It("starts without values, with its database on a bound volume [D41]", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx)
		install(ctx, namespace, nil)

		waitForAvailable(ctx, namespace)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-pvc"}}
		env.WaitFor(ctx, claim, func(g Gomega) { g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound)) })
	}, SpecTimeout(specTimeout))

	It("starts with all values set but storage and tolerations, and its Jobs succeed", func(ctx SpecContext) {
		data, err := os.ReadFile("../../parity/testdata/all_values.yaml")
		Expect(err).NotTo(HaveOccurred())
		var values map[string]any
		Expect(yaml.UnmarshalStrict(data, &values)).To(Succeed())
		values["storage"] = map[string]any{} // the test cluster has only the default StorageClass
		values["tolerations"] = []any{}
		namespace := createRestrictedNamespace(ctx)
		install(ctx, namespace, values)

		waitForAvailable(ctx, namespace)
		for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
			job := createJobFrom(ctx, namespace, name)
			env.WaitFor(ctx, job, func(g Gomega) { g.Expect(job.Status.Succeeded).To(BeEquivalentTo(1)) })
		}
	}, SpecTimeout(specTimeout))

	It("keeps the size of an existing claim", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx)
		install(ctx, namespace, map[string]any{"storage": map[string]any{"size": "20Gi"}})
		waitForAvailable(ctx, namespace) // the volume of the claim is bound
		install(ctx, namespace, nil)

		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-pvc"}}
		env.Get(ctx, claim)
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("20Gi"))
	}, SpecTimeout(specTimeout))

	It("creates a certificate for the names of the server, and keeps it on upgrade", func(ctx SpecContext) {
		namespace := createRestrictedNamespace(ctx)
		values := map[string]any{"tls": map[string]any{"generate": true}}
		install(ctx, namespace, values)

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow-tls"}}
		env.Get(ctx, secret)
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		Expect(err).NotTo(HaveOccurred())
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM(secret.Data["ca.crt"])).To(BeTrue())
		for _, name := range []string{"mlflow", "mlflow." + namespace + ".svc", "mlflow." + namespace + ".svc.cluster.local", "localhost"} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
			Expect(err).NotTo(HaveOccurred(), name)
		}

		install(ctx, namespace, values)
		upgraded := secret.DeepCopy()
		env.Get(ctx, upgraded)
		Expect(upgraded.Data).To(Equal(secret.Data))
	}, SpecTimeout(specTimeout))
})

// createRestrictedNamespace creates a namespace that enforces the restricted Pod Security level.
func createRestrictedNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, "chart")
	env.SetLabel(ctx, framework.NamespaceNamed(namespace), "pod-security.kubernetes.io/enforce", "restricted")
	return namespace
}

// install applies the rendered chart like Helm, after a dry run of each object, and deletes the objects at the end of the spec.
func install(ctx context.Context, namespace string, values map[string]any) {
	GinkgoHelper()
	release := parity.Release{Namespace: namespace, Cluster: env.Config, APIVersions: []string{"monitoring.coreos.com/v1"}}
	objects, err := parity.Render(ctx, chart, release, values)
	Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		Expect(applyStrict(ctx, o, client.DryRunAll)).To(Succeed(), parity.Key(o))
	}
	DeferCleanup(func(ctx SpecContext) {
		for _, o := range objects {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground)))).To(Succeed())
		}
		for _, o := range objects {
			env.WaitDeleted(ctx, o) // a PersistentVolumeClaim remains while a pod uses it
		}
	}, NodeTimeout(specTimeout))
	for _, o := range objects {
		Expect(applyStrict(ctx, o)).To(Succeed(), parity.Key(o))
	}
}

// applyStrict applies an object. Server-side apply rejects unknown fields.
func applyStrict(ctx context.Context, o *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner("helm"))
	return env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), options...)
}

func waitForAvailable(ctx context.Context, namespace string) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
	env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1)) })
}

// createJobFrom creates a Job as `kubectl create job --from=cronjob/<name>` does.
func createJobFrom(ctx context.Context, namespace, name string) *batchv1.Job {
	GinkgoHelper()
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	env.Get(ctx, cronJob)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-now", Labels: cronJob.Spec.JobTemplate.Labels},
		Spec:       *cronJob.Spec.JobTemplate.Spec.DeepCopy(),
	}
	Expect(env.Admin.Create(ctx, job)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(env.Admin.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		env.WaitDeleted(ctx, job)
	}, NodeTimeout(specTimeout))
	return job
}
