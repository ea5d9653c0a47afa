package foundation

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// baseResources are the resources that a manager without components reads: CRDs to detect APIs, webhook configurations for the
// CA bundle of its certificate, and the TLS profile of the cluster at the start. The certificate is stored in a Secret.
var baseResources = []string{"apiservers", "customresourcedefinitions", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}

const webhookCertificate = "odh-platform-operator-webhook-cert"

// writeConfig writes a configuration file and returns the flag with its path.
func writeConfig(text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	header := "apiVersion: config.platform.opendatahub.io/v1alpha1\nkind: PlatformOperatorConfiguration\n"
	Expect(os.WriteFile(path, []byte(header+text), 0o600)).To(Succeed())
	return "--config=" + path
}

// otherRequests returns the requests for resources other than baseResources.
func otherRequests(start framework.AuditPosition, user string) framework.Entries {
	GinkgoHelper()
	return env.Since(start).ByUser(user).WithoutDiscovery().Where(func(e framework.Entry) bool {
		return !slices.Contains(baseResources, e.Resource) && e.Name != webhookCertificate
	})
}

func deploymentExists(ctx context.Context) bool {
	GinkgoHelper()
	err := env.Admin.Get(ctx, client.ObjectKeyFromObject(server()), &appsv1.Deployment{})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return !apierrors.IsNotFound(err)
}

var _ = Describe("A disabled component", func() {
	for _, method := range []struct {
		title   string
		options framework.ManagerOptions
	}{
		{"by its flag", framework.ManagerOptions{Args: []string{"--enable-mlflow=false"}}},
		{"by the list of components", framework.ManagerOptions{Args: []string{"--components=*,-mlflow"}}},
		{"by the environment, as in a Subscription", framework.ManagerOptions{Env: []string{"ENABLE_MLFLOW=false"}}},
	} {
		It("sends no request, keeps its objects, and works when it is enabled again: "+method.title, func(ctx SpecContext) {
			enabledManager := startManager(ctx, framework.ManagerOptions{})
			m := createMLflow(ctx)
			waitAvailable(ctx, enabledManager, m)
			enabledManager.Stop(ctx)

			begin := env.AuditPosition()
			disabledManager := startManager(ctx, method.options)
			Expect(env.Admin.Delete(ctx, policy())).To(Succeed())
			env.Get(ctx, m)
			version := m.ResourceVersion
			env.SetAnnotation(ctx, m, "example.com/touched", "yes")
			env.WaitIdle(disabledManager.User, idlePeriod/2, specTimeout)
			env.ExpectIdle(disabledManager.User, idlePeriod)
			Expect(otherRequests(begin, disabledManager.User)).To(BeEmpty())
			env.Get(ctx, m)
			Expect(m.ResourceVersion).NotTo(Equal(version))
			Expect(m.Finalizers).To(BeEmpty(), "the MLflow must be deletable while no manager runs")
			Expect(deploymentExists(ctx)).To(BeTrue(), "the server must keep running")
			disabledManager.Stop(ctx)

			enabledManager = startManager(ctx, framework.ManagerOptions{})
			env.WaitFor(ctx, policy(), nil)
			waitAvailable(ctx, enabledManager, m)
		}, NodeTimeout(specTimeout))
	}
})

var _ = Describe("The configuration", func() {
	const disabledComponent, image = "components: ['*', '-mlflow']\n", "mlflow: {image: 'registry.example.com/from-the-file:1'}\n"

	It("gives precedence to the flag over the environment over the file", func(ctx SpecContext) {
		file := writeConfig(disabledComponent)
		for _, c := range []struct {
			args, env []string
			runs      bool
		}{
			{[]string{file}, nil, false},
			{[]string{file}, []string{"ENABLE_MLFLOW=true"}, true},
			{[]string{file, "--enable-mlflow=false"}, []string{"ENABLE_MLFLOW=true"}, false},
			{[]string{file, "--enable-mlflow"}, []string{"ENABLE_MLFLOW=false"}, true},
		} {
			begin := env.AuditPosition()
			m := startManager(ctx, framework.ManagerOptions{Args: c.args, Env: c.env})
			if c.runs {
				Eventually(func() framework.Entries { return otherRequests(begin, m.User).ForResource("mlflows").Watches() }).Should(HaveLen(1), "%v %v", c.args, c.env)
			} else {
				env.WaitIdle(m.User, idlePeriod/2, specTimeout)
				Expect(otherRequests(begin, m.User)).To(BeEmpty(), "%v %v", c.args, c.env)
			}
			m.Stop(ctx)
		}
	}, NodeTimeout(specTimeout))

	It("sets the image from the environment, or else from the file", func(ctx SpecContext) {
		imageOf := func() string {
			d := server()
			env.Get(ctx, d)
			return d.Spec.Template.Spec.Containers[0].Image
		}
		file := writeConfig(image)
		manager := startManager(ctx, framework.ManagerOptions{Args: []string{file}, Env: []string{"MLFLOW_IMAGE="}})
		m := createMLflow(ctx)
		waitAvailable(ctx, manager, m)
		Expect(imageOf()).To(Equal("registry.example.com/from-the-file:1"))
		manager.Stop(ctx)

		startManager(ctx, framework.ManagerOptions{Args: []string{file}, Env: []string{"MLFLOW_IMAGE=registry.example.com/from-the-environment:2"}})
		Eventually(imageOf).Should(Equal("registry.example.com/from-the-environment:2"))
	}, NodeTimeout(specTimeout))
})
