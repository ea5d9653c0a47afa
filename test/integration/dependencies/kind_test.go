package dependencies_test

import (
	"context"
	"os"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/kind"
)

const kindNamespace = "kind-test"

// kindOptions returns options for one of the four combinations of stores.
func kindOptions(backend, artifacts string) kind.Options {
	o := kind.Defaults()
	o.Namespace, o.BackendStore, o.ArtifactStorage = kindNamespace, backend, artifacts
	return o
}

// podSpecOf returns the pod spec of a workload, nil for other kinds.
func podSpecOf(object client.Object) *corev1.PodSpec {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	switch object.GetObjectKind().GroupVersionKind().Kind {
	case "Deployment":
		var deployment appsv1.Deployment
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(content, &deployment)).To(Succeed())
		return &deployment.Spec.Template.Spec
	case "Job":
		var job batchv1.Job
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(content, &job)).To(Succeed())
		return &job.Spec.Template.Spec
	default:
		return nil
	}
}

var _ = Describe("The manifests of make deploy-kind", Ordered, func() {
	var deployer *kind.Deployer
	secrets := func(ctx context.Context) map[string]map[string][]byte {
		GinkgoHelper()
		list := &corev1.SecretList{}
		Expect(env.Admin.List(ctx, list, client.InNamespace(kindNamespace))).To(Succeed())
		data := map[string]map[string][]byte{}
		for _, secret := range list.Items {
			data[secret.Name] = secret.Data
		}
		return data
	}
	allStores := kindOptions(kind.Postgres, kind.S3)
	allStores.PostgresTLS, allStores.SeaweedFSTLS = true, true

	BeforeAll(func(ctx SpecContext) {
		scheme := runtime.NewScheme()
		Expect(kind.AddToScheme(scheme)).To(Succeed())
		deployerClient, err := client.New(env.Config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		deployer = &kind.Deployer{Client: deployerClient, Clock: clock.RealClock{}, Out: GinkgoWriter}
	}, NodeTimeout(specTimeout))

	It("are accepted, and result in an available MLflow whose pods meet the restricted Pod Security level", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: kindNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})).To(Succeed())
		Expect(deployer.Deploy(ctx, allStores)).To(Succeed())
		env.StartManager(ctx, framework.ManagerOptions{
			ServiceAccount: types.NamespacedName{Namespace: kindNamespace, Name: "odh-platform-operator-controller-manager"},
			Args:           []string{"--components=mlflow"}, Env: []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"},
		})
		Expect(deployer.Wait(ctx, allStores, specTimeout)).To(Succeed())
		server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kindNamespace, Name: "mlflow"}}
		env.Get(ctx, server)
		Expect(server.Status.AvailableReplicas).To(BeEquivalentTo(1))
		for _, name := range []string{"postgres-deployment", "seaweedfs", "odh-platform-operator-controller-manager"} {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kindNamespace, Name: name}}
			env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Status.AvailableReplicas).To(Equal(*deployment.Spec.Replicas)) })
		}

		By("deploying again, which keeps generated passwords")
		original := secrets(ctx)
		Expect(deployer.Deploy(ctx, allStores)).To(Succeed())
		env.DisableMLflowWebhook(ctx) // the manager of this suite serves no webhooks
		Expect(secrets(ctx)).To(Equal(original))
	}, NodeTimeout(specTimeout))

	It("are applied by the commands in docs/kind.md", func(ctx SpecContext) {
		page, err := os.ReadFile("../../../docs/kind.md")
		Expect(err).NotTo(HaveOccurred())
		executed := 0
		for _, block := range docs.Blocks(string(page)) {
			if block.Language != "sh" || block.Value("needs") != "" {
				continue
			}
			for _, line := range block.Commands() {
				command := exec.CommandContext(ctx, "sh", "-ec", line)
				command.Dir, command.Env = "../../..", append(os.Environ(), "KUBECONFIG="+env.KubeconfigPath)
				output, err := command.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), "%s: %s", line, output)
				executed++
			}
		}
		Expect(executed).To(Equal(2), "number of commands in docs/kind.md")
		mlflow := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
		env.Get(ctx, mlflow)
		Expect(mlflow.Spec.BackendStoreURI).To(HavePrefix("sqlite:"), "the second command of the page selects SQLite and S3, but the MLflow has other stores")
		Expect(mlflow.Spec.BackendStoreURIFrom).To(BeNil())
		Expect(mlflow.Spec.ArtifactsDestination).To(HavePrefix("s3:"))
	}, NodeTimeout(specTimeout))

	DescribeTable("support each combination of stores",
		func(ctx SpecContext, backend, artifacts string, change func(*kind.Options)) {
			o := kindOptions(backend, artifacts)
			change(&o)
			objects, err := deployer.Objects(ctx, o)
			Expect(err).NotTo(HaveOccurred())
			applied := 0
			mlflowApplied := false
			for _, object := range objects {
				switch object.GetObjectKind().GroupVersionKind().Kind {
				case "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding":
					continue // applied before and unchanged
				}
				Expect(deployer.Apply(ctx, object, client.ApplyOption(client.DryRunAll))).To(Succeed())
				applied++
				if pod := podSpecOf(object); pod != nil {
					Expect(env.Admin.Create(ctx, &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Namespace: kindNamespace, GenerateName: "dry-"}, Spec: *pod}, client.DryRunAll)).To(Succeed(), object.GetName())
				}
				switch object.GetObjectKind().GroupVersionKind().Kind {
				case "MLflow":
					mlflowApplied = true
				case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
					Expect(mlflowApplied).To(BeTrue(), "the MLflow must precede its webhook, which does not respond yet")
				default:
					Expect(mlflowApplied).To(BeFalse(), "%s must precede the MLflow", object.GetName())
				}
			}
			Expect(applied).To(BeNumerically(">", 10), "number of applied objects")
			Expect(mlflowApplied).To(BeTrue())
		},
		Entry("SQLite and a volume", kind.SQLite, kind.File, func(*kind.Options) {}),
		Entry("SQLite and S3, with a registry in PostgreSQL", kind.SQLite, kind.S3, func(o *kind.Options) { o.RegistryStore, o.SeaweedFSTLS = kind.Postgres, true }),
		Entry("PostgreSQL and files, with a CA bundle of the user", kind.Postgres, kind.File, func(o *kind.Options) { o.CABundleConfigMap = "own" }),
		Entry("PostgreSQL and S3, which clients access directly", kind.Postgres, kind.S3, func(o *kind.Options) { o.ServeArtifacts = false }),
	)
})
