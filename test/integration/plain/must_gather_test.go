package plain_test

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// hidden stands in everything that must not be collected.
const hidden = "hunter2"

// gather runs config/must-gather/gather with the rights of a kubeconfig, and returns its folder.
func gather(ctx context.Context, kubeconfig string, settings ...string) string {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	folder := filepath.Join(GinkgoT().TempDir(), "gathered")
	command := exec.CommandContext(ctx, "bash", filepath.Join(root, "config", "must-gather", "gather"), folder)
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "KUBECTL=" + kubectl, "KUBECONFIG=" + kubeconfig, "HOME=" + GinkgoT().TempDir(), "TMPDIR=" + GinkgoT().TempDir(),
	}, settings...)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	AddReportEntry("gather", string(output))
	return folder
}

// contents are the files below a folder.
func contents(folder string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	Expect(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		out[name] = string(text)
		return err
	})).To(Succeed())
	return out
}

// withoutRights returns a kubeconfig of an account that may read nothing.
func withoutRights(ctx context.Context) string {
	GinkgoHelper()
	stranger := account("stranger")
	create(ctx, stranger)
	kubeconfig, err := operator.Kubeconfig(ctx, env.Instance, client.ObjectKeyFromObject(stranger), "stranger", namespace)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

var _ = Describe("must-gather", func() {
	It("collects what tells why something fails, and nothing that is secret", func(ctx SpecContext) {
		create(ctx, installed.Deployment.DeepCopy())
		create(ctx, &corev1.Secret{ObjectMeta: object("a-secret"), StringData: map[string]string{"password": hidden, "user": hidden + "-user"}})
		ready(ctx, server(func(s *mlflowv1.MLflowSpec) {
			s.BackendStoreURI = "postgresql://tracker:" + hidden + "@db:5432/x?sslpassword=" + hidden
			s.Env = append(s.Env, corev1.EnvVar{Name: "AWS_SECRET_ACCESS_KEY", Value: hidden}, corev1.EnvVar{Name: "MLFLOW_LOGGING_LEVEL", Value: "DEBUG"})
		}))
		found := contents(gather(ctx, env.KubeconfigPath))
		all := strings.Join(slices.Collect(maps.Values(found)), "\n")
		Expect(all).NotTo(ContainSubstring(hidden))
		tls := certificate()
		env.Get(ctx, tls)
		key := strings.Split(string(tls.Data["tls.key"]), "\n")[1]
		Expect(len(key)).To(BeNumerically(">", 40))
		Expect(all).NotTo(ContainSubstring(key))

		for file, want := range map[string][]string{
			"cluster/version.yaml":                         {"serverVersion"},
			"cluster/definitions.txt":                      {"mlflows.mlflow.opendatahub.io", "stored: v1", "Established=True"},
			"cluster/webhooks.yaml":                        {"model-registry-operator-validating-webhook-configuration"},
			"cluster/clusterroles.yaml":                    {"odh-platform-operator-mlflow"},
			"cluster/clusterrolebindings.yaml":             {"odh-platform-operator-controller-manager"},
			"manager/opendatahub/workload.yaml":            {"odh-platform-operator-controller-manager", "kind: PodDisruptionBudget", "kind: NetworkPolicy"},
			"manager/opendatahub/secrets.txt":              {"opendatahub/a-secret Opaque keys: password user", "opendatahub/mlflow-tls kubernetes.io/tls keys: ca.crt tls.crt tls.key"},
			"manager/opendatahub/rights.yaml":              {"odh-platform-operator-leader-election"},
			"manager/opendatahub/events.txt":               {"REASON"},
			"resources/mlflows.mlflow.opendatahub.io.yaml": {"postgresql://tracker:***@db:5432/x?sslpassword=***", "value: DEBUG", "type: Available"},
			"children/deployments.txt":                     {"mlflow"},
			"children/deployments.yaml":                    {"name: mlflow"},
			"children/secrets.txt":                         {"opendatahub/mlflow-tls"},
			"children/namespaces/opendatahub/pods.txt":     {"mlflow-"},
			"gaps.txt": {"resources/workloads.kueue.x-k8s.io: the API is not served"},
		} {
			for _, text := range want {
				Expect(found[file]).To(ContainSubstring(text), file)
			}
		}
	}, NodeTimeout(2*specTimeout))

	It("says what it may not read, and ends in time", func(ctx SpecContext) {
		found := contents(gather(ctx, withoutRights(ctx), "NAMESPACE="+namespace))
		Expect(found["gaps.txt"]).To(And(
			ContainSubstring("manager/opendatahub/workload.yaml: "), ContainSubstring("forbidden"), ContainSubstring("children/secrets.txt: ")))
		Expect(found).To(HaveKey("cluster/version.yaml"))

		found = contents(gather(ctx, env.KubeconfigPath, "MAX_SECONDS=-1", "NAMESPACE="+namespace))
		Expect(found).To(HaveLen(1), "nothing but what is missing")
		Expect(found["gaps.txt"]).To(ContainSubstring("cluster/version.yaml: left out, -1 s are over"))

		found = contents(gather(ctx, env.KubeconfigPath, "MAX_FILE=1000", "MAX_TOTAL=5000", "NAMESPACE="+namespace))
		for name, text := range found {
			if name != "gaps.txt" {
				Expect(len(text)).To(BeNumerically("<=", 1000), name)
			}
		}
		Expect(found["gaps.txt"]).To(And(ContainSubstring("cut after 1000 bytes"), ContainSubstring("left out, 5000 bytes are full")))
	}, NodeTimeout(2*specTimeout))
})
