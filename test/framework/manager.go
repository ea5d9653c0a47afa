package framework

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// restartTimeout bounds the restart of a manager after the spec that stopped it.
const restartTimeout = 2 * time.Minute

// ManagerOptions are the options of a manager under test.
type ManagerOptions = operator.Options

// Manager is a manager under test. Its methods fail the spec on errors.
type Manager struct {
	*operator.Manager

	env     *Env
	stopped bool // by Stop or Kill
	// restarts is the number of restarts that AwaitRestart has seen.
	restarts int
}

// sharedManagers are the managers that were started outside an It, such as in a BeforeSuite or BeforeAll; [Run] calls reportLog for each of
// them after each spec.
var sharedManagers []*Manager

// StartManager starts the real manager with the permissions of a ServiceAccount, by default the installed one, waits until it is ready, and stops
// it at the end of the calling suite, Ginkgo container or spec. The report of a failed spec contains the end of the manager's log. If a
// manager of sharedManagers exits unexpectedly, the spec fails.
func (e *Env) StartManager(ctx context.Context, options ManagerOptions) *Manager {
	ginkgo.GinkgoHelper()
	if options.Progress == nil {
		options.Progress = ginkgo.GinkgoWriter
	}
	if options.ServiceAccount.Name == "" && e.Installed != nil {
		options.ServiceAccount = e.Installed.ServiceAccount
	}
	if options.WebhookPort == 0 {
		e.DisableMLflowWebhook(ctx)
	}
	// The suite can override these variables. GOGC saves a fifth of the processor time of the manager. Administrators set the namespaces on
	// clusters other than OpenShift.
	options.Env = append([]string{"GOGC=400", "MLFLOW_GATEWAY_NAMESPACE=openshift-ingress", "GATEWAY_NAMESPACE=openshift-ingress", "HTTPROUTE_NAMESPACE=redhat-ods-applications"}, options.Env...)
	e.recordManagerStartStop()
	started, err := operator.Start(ctx, e.Instance, options)
	e.managers.add(operator.User(options.ServiceAccount), options.ServiceAccount.Namespace, options.Args)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	manager := &Manager{Manager: started, env: e}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if manager.Process.Running() {
			manager.Stop(ctx)
		}
	}, ginkgo.NodeTimeout(stopTimeout))
	if ginkgo.CurrentSpecReport().LeafNodeType == types.NodeTypeIt {
		ginkgo.DeferCleanup(func() { ReportLog(manager.Process) })
	} else {
		sharedManagers = append(sharedManagers, manager)
	}
	return manager
}

// reportLog attaches the end of the manager's log to the report of a failed spec. If the manager has exited unexpectedly, reportLog fails
// the spec and restarts the manager for the next specs.
func (m *Manager) reportLog() {
	ginkgo.GinkgoHelper()
	ReportLog(m.Process)
	if !m.stopped && !m.Process.Running() {
		ginkgo.DeferCleanup(m.Restart, ginkgo.NodeTimeout(restartTimeout))
		code, _ := m.Process.ExitCode()
		ginkgo.Fail(fmt.Sprintf("%s exited unexpectedly with exit code %d", m.Process.Name, code))
	}
}

// ReportLog attaches the end of a process's log to the report of a failed spec.
func ReportLog(process *cluster.Process) {
	if ginkgo.CurrentSpecReport().Failed() {
		ginkgo.AddReportEntry("log of "+process.Name, process.LogTail(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
}

// Stop sends SIGTERM like a kubelet, and expects exit code 0.
func (m *Manager) Stop(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.stopped = true
	m.env.recordManagerStartStop()
	gomega.Expect(m.Manager.Stop(ctx)).To(gomega.Succeed())
}

// StopTemporarily stops the manager for a part of the spec. If the spec does not restart the manager, a cleanup does, before earlier
// objects of the spec are deleted.
func (m *Manager) StopTemporarily(ctx context.Context) {
	ginkgo.GinkgoHelper()
	ginkgo.DeferCleanup(func(ctx context.Context) {
		if !m.Process.Running() {
			m.Restart(ctx)
		}
	}, ginkgo.NodeTimeout(restartTimeout))
	m.Stop(ctx)
}

// Kill sends SIGKILL.
func (m *Manager) Kill(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.stopped = true
	m.env.recordManagerStartStop()
	gomega.Expect(m.Manager.Kill(ctx)).To(gomega.Succeed())
}

// Restart stops the manager, unless it has exited, and starts it with the same arguments.
func (m *Manager) Restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	m.env.recordManagerStartStop()
	gomega.Expect(m.Manager.Restart(ctx)).To(gomega.Succeed())
	m.stopped = false
}

// AwaitRestart waits until the manager has restarted within its process, as it does when a required API is removed.
func (m *Manager) AwaitRestart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	count := func() int {
		log, err := os.ReadFile(m.Process.Log)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		return bytes.Count(log, []byte("Starting again"))
	}
	gomega.Eventually(count).WithContext(ctx).WithTimeout(stopTimeout).Should(gomega.BeNumerically(">", m.restarts), "the manager did not restart")
	m.restarts = count()
	m.env.recordManagerStartStop()
	m.WaitReady(ctx)
}

// WaitReady waits until the manager is ready.
func (m *Manager) WaitReady(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(m.Manager.WaitReady(ctx)).To(gomega.Succeed())
}
