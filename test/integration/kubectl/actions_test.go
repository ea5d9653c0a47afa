package kubectl_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// secretValue is the value of each field that must not be collected.
const secretValue = "hunter2"

var _ = Describe("An MLflow with the pause annotation", func() {
	It("has the condition Paused and is shown as paused until the annotation is removed", func(ctx SpecContext) {
		mlflow := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}
		annotate := func(value any) {
			env.SetAnnotation(ctx, mlflow, names.PausedAnnotation, value)
		}
		annotate("true")
		env.WaitForCondition(ctx, mlflow, reconciler.ConditionPaused, metav1.ConditionTrue, "Annotation")
		Expect(odh(ctx, viewer, "status").stdout).To(ContainSubstring("(paused)"))
		annotate(nil)
		env.WaitFor(ctx, mlflow, func(g Gomega) {
			for _, c := range mlflow.Status.Conditions {
				g.Expect(c.Type).NotTo(Equal(reconciler.ConditionPaused))
			}
		})
	}, SpecTimeout(specTimeout))
})

var _ = Describe("Commands that are not permitted", func() {
	It("exit with code 3 and report the missing permission", func(ctx SpecContext) {
		for _, c := range []struct {
			as   user
			args string
			want string
		}{
			{member, "tree mlflow/mlflow", `cannot get resource "mlflows"`},
			{member, "tree -n opendatahub deployment/mlflow", `cannot get resource "deployments" in API group "apps" in the namespace "opendatahub"`},
			{member, "status -n opendatahub", "not allowed to list appwrappers.workload.codeflare.dev"},
		} {
			got := odh(ctx, c.as, strings.Fields(c.args)...)
			Expect(got.code).To(Equal(3), "%s: %+v", c.args, got)
			Expect(got.stdout+got.stderr).To(ContainSubstring(c.want), c.args)
		}
	}, SpecTimeout(specTimeout))
})

var _ = Describe("render", func() {
	DescribeTable("rejects the same objects as admission", func(ctx SpecContext, document string) {
		raw, err := yaml.YAMLToJSON([]byte(document))
		Expect(err).NotTo(HaveOccurred())
		u := &unstructured.Unstructured{}
		Expect(u.UnmarshalJSON(raw)).To(Succeed())
		_, refusal, found := strings.Cut(env.Admin.Create(ctx, u).Error(), "denied the request: ")
		Expect(found).To(BeTrue(), "the request was not denied by a webhook")
		file := filepath.Join(GinkgoT().TempDir(), "resource.yaml")
		Expect(os.WriteFile(file, []byte(document), 0o600)).To(Succeed())
		got := odh(ctx, viewer, "render", "-n", team, "-f", file)
		Expect(got.code).To(Equal(2), "%+v", got)
		Expect(got.stderr).To(And(ContainSubstring("would be refused: "), ContainSubstring(refusal)))
	},
		Entry("a RayCluster", `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: open, namespace: team}
spec:
  headGroupSpec:
    enableIngress: true
    rayStartParams: {}
    template: {spec: {containers: [{name: head, image: quay.io/example/ray:v1}]}}
`, SpecTimeout(specTimeout)),
		Entry("a ModelRegistry", `
apiVersion: modelregistry.opendatahub.io/v1beta1
kind: ModelRegistry
metadata: {name: default, namespace: team}
spec: {rest: {}, grpc: {}, postgres: {generateDeployment: true}}
`, SpecTimeout(specTimeout)),
		Entry("an AppWrapper", `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: grants, namespace: team}
spec: {components: [{template: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}}]}
`, SpecTimeout(specTimeout)),
	)
})

var _ = Describe("gather", func() {
	It("collects the data for a diagnosis, and redacts secret values", func(ctx SpecContext) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-secret", Namespace: managerNamespace}, StringData: map[string]string{"password": secretValue}}
		Expect(env.Admin.Create(ctx, secret)).To(Succeed())
		leaky := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(`
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: leaky, namespace: team, annotations: {note: "it said ` + secretValue + ` once"}}
spec:
  suspend: true
  components:
  - template: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {any: ` + secretValue + `}}
  - template:
      apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec: {restartPolicy: Never, containers: [{name: c, image: x, env: [{name: DB_PASSWORD, value: ` + secretValue + `}]}]}
`))
		Expect(err).NotTo(HaveOccurred())
		Expect(leaky.UnmarshalJSON(raw)).To(Succeed())
		Expect(env.Admin.Create(ctx, leaky)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(env.Admin.Delete(ctx, leaky)).To(Succeed())
			Expect(env.Admin.Delete(ctx, secret)).To(Succeed())
		})

		file := filepath.Join(GinkgoT().TempDir(), "all.tar.gz")
		got := odh(ctx, administrator(), "gather", "--file", file)
		Expect(got.stdout).To(HavePrefix(file+": "), "%+v", got)
		files := readArchive(file)
		for name, text := range files {
			Expect(text).NotTo(ContainSubstring(secretValue), name)
		}
		for name, want := range map[string][]string{
			"cluster/mlflows.mlflow.opendatahub.io.yaml":                                {"name: mlflow", "type: Available"},
			"cluster/customresourcedefinitions.apiextensions.k8s.io.yaml":               {"name: mlflows.mlflow.opendatahub.io", "storedVersions"},
			"cluster/validatingwebhookconfigurations.admissionregistration.k8s.io.yaml": {"model-registry-operator-validating-webhook-configuration"},
			"cluster/nodes.yaml": {"kind: Node"},
			"namespaces/" + managerNamespace + "/deployments.apps.yaml":       {"name: mlflow\n", env.Installed.Deployment.Name},
			"namespaces/" + managerNamespace + "/secrets.yaml":                {"name: a-secret", "password: '[redacted]'", "name: mlflow-tls"},
			"namespaces/" + team + "/appwrappers.workload.codeflare.dev.yaml": {"name: broken", "name: leaky", "name: DB_PASSWORD"},
			"namespaces/" + team + "/pods.yaml":                               {"name: broken"},
			"namespaces/" + team + "/events.yaml":                             {"kind: Event"},
			"status.yaml":                                                     {"kind: Status", "name: broken"},
			"doctor.yaml":                                                     {"kind: Diagnosis"},
		} {
			for _, text := range want {
				Expect(files[name]).To(ContainSubstring(text), name)
			}
		}
	}, SpecTimeout(specTimeout))

	It("reports the objects that it is not allowed to read, and exits with code 3", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "team.tar.gz")
		got := odh(ctx, member, "gather", "-n", team, "--file", file)
		Expect(got.code).To(Equal(3), "%+v", got)
		Expect(got.stderr).To(And(ContainSubstring("Note: not allowed to list "), ContainSubstring("secrets in namespace team")))
		files := readArchive(file)
		Expect(files["gaps.txt"]).To(And(ContainSubstring("secrets in namespace team"), ContainSubstring("mlflows.mlflow.opendatahub.io")))
		Expect(files["namespaces/"+team+"/pods.yaml"]).To(ContainSubstring("name: broken"))
	}, SpecTimeout(specTimeout))
})

// readArchive returns the files of an archive.
func readArchive(path string) map[string]string {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	zip, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	out := map[string]string{}
	for files := tar.NewReader(zip); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(files)
		Expect(err).NotTo(HaveOccurred())
		out[strings.TrimPrefix(header.Name, "odh-gather/")] = string(text)
	}
}
