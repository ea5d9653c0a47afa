package kubectl_test

import (
	"encoding/json"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// resource is a resource in the JSON output of status.
type resource struct {
	Kind, Namespace, Name, State, Reason, Message string
}

var _ = Describe("status", func() {
	It("shows a viewer the components, and the readable resources of all namespaces", func(ctx SpecContext) {
		got := odh(ctx, viewer, "status", "-o", "json")
		Expect(got.code).To(Equal(1), "%s", got.stderr)
		var report struct {
			OK      bool
			Manager struct {
				Found                                    bool
				Namespace, State, Image, SettingsProblem string
			}
			Components []struct {
				Name, State         string
				WaitsFor            []string
				Resources, NotReady int
			}
			Resources []resource
			Notes     []string
		}
		Expect(json.Unmarshal([]byte(got.stdout), &report)).To(Succeed())
		Expect(report.OK).To(BeFalse())
		Expect(report.Manager.Found).To(BeTrue())
		Expect(report.Manager.Namespace).To(Equal(managerNamespace))
		Expect(report.Manager.State).To(Equal("Healthy"))
		Expect(report.Manager.Image).NotTo(BeEmpty())
		Expect(report.Manager.SettingsProblem).To(BeEmpty())
		states := map[string]string{}
		for _, c := range report.Components {
			states[c.Name] = c.State
		}
		Expect(states).To(HaveLen(7))
		Expect(states).To(And(HaveKeyWithValue("mlflow", "on"), HaveKeyWithValue("appwrapper", "on")))
		Expect(states).To(HaveKeyWithValue("platform", "off"))
		Expect(report.Resources).To(ContainElement(And(
			HaveField("Kind", "MLflow"), HaveField("Name", "mlflow"), HaveField("State", "Healthy"), HaveField("Reason", "DeploymentReady"))))
		Expect(report.Resources).To(ContainElement(And(HaveField("Kind", "AppWrapper"), HaveField("Namespace", team), HaveField("State", "Progressing"))))
		Expect(report.Notes).To(ContainElement(And(HavePrefix("not allowed to list "), ContainSubstring("predictors.serving.kserve.io"))), "the role view does not include Predictors")
		Expect(report.Resources[len(report.Resources)-1].State).To(Or(Equal("Healthy"), Equal("Idle")), "resources that are not healthy come first")
	}, SpecTimeout(specTimeout))

	It("prints no color codes to a pipe, and runs as a kubectl plugin", func(ctx SpecContext) {
		kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		got := runProgram(ctx, viewer, kubectl, "odh", "status")
		Expect(got.code).To(Equal(1), "%s", got.stderr)
		Expect(got.stdout).To(And(ContainSubstring("MANAGER  Healthy"), ContainSubstring("MLflow/mlflow"), ContainSubstring("AppWrapper/broken")))
		Expect(got.stdout).NotTo(ContainSubstring("\x1b"))
	}, SpecTimeout(specTimeout))

	It("shows a member the readable resources of one namespace, and the kinds that it cannot list", func(ctx SpecContext) {
		got := odh(ctx, member, "status")
		Expect(got.code).To(Equal(1), "%s", got.stderr)
		Expect(got.stdout).To(And(
			ContainSubstring("MANAGER  Unknown"), ContainSubstring("AppWrapper/broken"),
			ContainSubstring("not allowed to list all namespaces; only namespace team is shown"), ContainSubstring("not allowed to list "), ContainSubstring("mlflows.mlflow.opendatahub.io")))
		Expect(got.stdout).NotTo(ContainSubstring("MLflow/mlflow"))
	}, SpecTimeout(specTimeout))

	It("exits with code 2 if the kubeconfig does not exist", func(ctx SpecContext) {
		got := odh(ctx, user{kubeconfig: filepath.Join(env.Instance.Dir(), "missing")}, "status")
		Expect(got.code).To(Equal(2))
		Expect(got.stderr).To(HavePrefix("kubectl-odh: "))
		Expect(got.stdout).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
