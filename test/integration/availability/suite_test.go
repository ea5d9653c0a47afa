// Package availability tests that webhooks answer and a leader reconciles while replicas of the manager come and go. Processes are the pods,
// and a Service of [framework.Serve] routes to them as kube-proxy does.
package availability

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	operatorNamespace = "opendatahub"

	suiteExpiry = 20 * time.Minute // the first run builds the control plane
	specTimeout = 5 * time.Minute
	// learning is how long the nodes of a slow cluster still send connections to a pod that ended.
	learning = 4 * time.Second
)

var env *framework.Env

func TestAvailability(t *testing.T) { framework.Run(t, "Availability") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "availability", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
}, NodeTimeout(suiteExpiry))

// pod is a replica of the manager, with the port of its webhooks.
type pod struct {
	*framework.Manager
	name string
	port int
}

// newPod starts a replica with the flags of the Deployment, and adds it to the endpoints of the Service once it is ready.
func newPod(ctx context.Context, service *framework.Service, name string) *pod {
	GinkgoHelper()
	ports, err := env.Instance.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	options := framework.ManagerOptions{
		Name: name, ServiceAccount: env.Installed.ServiceAccount, WebhookPort: ports[0], Args: []string{"--leader-elect", "--metrics-secure=false"},
		Env: []string{"POD_NAME=" + name},
	}
	for _, variable := range env.Installed.Deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.ValueFrom == nil {
			options.Env = append(options.Env, variable.Name+"="+variable.Value)
		}
	}
	p := &pod{Manager: env.StartManager(ctx, options), name: name, port: ports[0]}
	service.Add(p.port)
	return p
}

// remove deletes a pod in order: nodes learn late that it is no longer an endpoint, and it gets SIGTERM after the preStop hook. It returns when the
// signal was sent.
func (p *pod) remove(ctx context.Context, service *framework.Service) time.Time {
	GinkgoHelper()
	notified := make(chan struct{})
	time.AfterFunc(learning, func() {
		service.Remove(p.port)
		close(notified)
	})
	hook := env.Installed.Deployment.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep
	<-time.After(time.Duration(hook.Seconds) * time.Second)
	signalled := time.Now()
	p.Stop(ctx)
	<-notified
	return signalled
}

// leader returns the holder of the Lease, and when it acquired it; "" if it has none.
func leader(ctx context.Context) (string, time.Time) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator"}}
	Expect(client.IgnoreNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(lease), lease))).To(Succeed())
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", time.Time{}
	}
	return *lease.Spec.HolderIdentity, lease.Spec.AcquireTime.Time
}

// reportChange waits for a leader other than a pod, and reports how long after a moment it acquired the Lease.
func reportChange(ctx context.Context, from *pod, start time.Time) {
	GinkgoHelper()
	var acquired time.Time
	Eventually(func() string {
		var holder string
		holder, acquired = leader(ctx)
		return holder
	}).WithContext(ctx).WithTimeout(specTimeout).ShouldNot(BeElementOf("", from.name))
	AddReportEntry("the next leader", acquired.Sub(start).Round(time.Millisecond).String(), ReportEntryVisibilityAlways)
}

// leading returns the pod that leads, followed by the others.
func leading(ctx context.Context, pods ...*pod) (*pod, []*pod) {
	GinkgoHelper()
	var holder string
	Eventually(func() string { holder, _ = leader(ctx); return holder }).WithContext(ctx).ShouldNot(BeEmpty())
	var found *pod
	var others []*pod
	for _, p := range pods {
		if p.name == holder {
			found = p
		} else {
			others = append(others, p)
		}
	}
	Expect(found).NotTo(BeNil(), "%s leads", holder)
	return found, others
}
