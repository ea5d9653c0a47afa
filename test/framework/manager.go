package framework

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// awayTimeout bounds the restart of a manager after the spec that stopped it.
const awayTimeout = 2 * time.Minute

// ManagerOptions are the options of a manager under test.
type ManagerOptions = operator.Options

// Manager is a manager under test. Its methods fail the spec on errors.
type Manager struct {
	*operator.Manager

	env   *Env
	ended bool // by Stop or Kill
	// restarts is the number of restarts that AwaitRestart has seen.
	restarts int
}

// StartManager starts the real manager with the rights of a ServiceAccount, waits until it is ready, and stops it at the end of the calling
// suite or spec. The report of a failed spec contains the end of its log.
func (e *Env) StartManager(ctx context.Context, options ManagerOptions) *Manager {
	ginkgo.GinkgoHelper()
	if options.Progress == nil {
		options.Progress = ginkgo.GinkgoWriter
	}
	if options.WebhookPort == 0 {
		e.SpareMLflow(ctx)
	}
	// Set as administrators of a cluster other than OpenShift would; the suite can override them.
	options.Env = append([]string{"MLFLOW_GATEWAY_NAMESPACE=openshift-ingress", "GATEWAY_NAMESPACE=openshift-ingress", "HTTPROUTE_NAMESPACE=redhat-ods-applications"}, options.Env...)
	e.disturbed()
	started, err := operator.Start(ctx, e.Instance, options)
	e.watched.add(operator.User(options.ServiceAccount), options.ServiceAccount.Namespace, options.Args)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	manager := &Manager{Manager: started, env: e}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if manager.Process.Running() {
			manager.Stop(ctx)
		}
	}, ginkgo.NodeTimeout(stopTimeout))
	return manager
}

// ReportLog attaches the end of the manager's log to the report of a failed spec. If the manager has exited, ReportLog fails the spec and
// restarts the manager for the next specs. Call it in an AfterEach of the suite.
func (m *Manager) ReportLog() {
	ginkgo.GinkgoHelper()
	if report := ginkgo.CurrentSpecReport(); report.Failed() {
		ginkgo.AddReportEntry(fmt.Sprintf("log of %s", m.Process.Name), m.Process.LogTail(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	if !m.ended && !m.Process.Running() {
		ginkgo.DeferCleanup(m.Restart, ginkgo.NodeTimeout(awayTimeout))
		code, _ := m.Process.ExitCode()
		ginkgo.Fail(fmt.Sprintf("%s has ended by itself with exit code %d", m.Process.Name, code))
	}
}

// Stop sends SIGTERM like a kubelet, and expects exit code 0.
func (m *Manager) Stop(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.ended = true
	m.env.disturbed()
	gomega.Expect(m.Manager.Stop(ctx)).To(gomega.Succeed())
}

// Away stops the manager for a part of the spec. If the spec ends before it restarts the manager, a cleanup does, before objects of the
// spec are deleted.
func (m *Manager) Away(ctx context.Context) {
	ginkgo.GinkgoHelper()
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if !m.Process.Running() {
			m.Restart(ctx)
		}
	}, ginkgo.NodeTimeout(awayTimeout))
	m.Stop(ctx)
}

// Kill sends SIGKILL.
func (m *Manager) Kill(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.ended = true
	m.env.disturbed()
	gomega.Expect(m.Manager.Kill(ctx)).To(gomega.Succeed())
}

// Restart stops the manager, unless it has exited, and starts it with the same arguments.
func (m *Manager) Restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.env.disturbed()
	gomega.Expect(m.Manager.Restart(ctx)).To(gomega.Succeed())
	m.ended = false
}

// AwaitRestart waits until the program has started again in its process, as it does when a required API is removed.
func (m *Manager) AwaitRestart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	count := func() int {
		log, err := os.ReadFile(m.Process.Log)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return bytes.Count(log, []byte("Starting again"))
	}
	gomega.Eventually(count).WithContext(ctx).WithTimeout(stopTimeout).Should(gomega.BeNumerically(">", m.restarts), "the manager does not start again")
	m.restarts = count()
	m.env.disturbed()
	m.WaitReady(ctx)
}

// WaitReady waits until the manager is ready.
func (m *Manager) WaitReady(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(m.Manager.WaitReady(ctx)).To(gomega.Succeed())
}

// SpareMLflow disables the webhook of MLflow by a match condition, for suites whose manager does not serve the webhook or which change an
// MLflow while no manager runs. The suite abuse tests the webhook.
func (e *Env) SpareMLflow(ctx context.Context) {
	ginkgo.GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "mlflow-validating-webhook-configuration"}}
	err := e.Admin.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
	gomega.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	if err != nil || len(configuration.Webhooks) == 0 {
		return // not installed, or emptied by the suite
	}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/webhooks/0/matchConditions", "value": [{"name": "never", "expression": "false"}]}]`))
	gomega.Expect(e.Admin.Patch(ctx, configuration, patch)).To(gomega.Succeed())
}
