// Package availability tests that webhooks respond and a leader is elected while replicas of the manager are replaced, restarted or killed.
// Each pod is a process, and a Service of [framework.Serve] routes to the processes like kube-proxy.
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

	suiteTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
	// endpointDelay is the time for which nodes of a slow cluster route connections to a terminated pod.
	endpointDelay = 4 * time.Second
)

var env *framework.Env

func TestAvailability(t *testing.T) { framework.Run(t, "Availability") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "availability", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
}, NodeTimeout(suiteTimeout))

// pod is a replica of the manager, with the port of its webhooks.
type pod struct {
	*framework.Manager
	name string
	port int
}

// newPod starts a replica with leader election and the literal environment variables of the Deployment, and adds it to the endpoints of the
// Service once it is ready.
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

// remove deletes a pod as Kubernetes does: the pod gets SIGTERM after the preStop hook, and nodes update the endpoints with a delay. It
// returns the time of the signal.
func (p *pod) remove(ctx context.Context, service *framework.Service) time.Time {
	GinkgoHelper()
	updated := make(chan struct{})
	time.AfterFunc(endpointDelay, func() {
		service.Remove(p.port)
		close(updated)
	})
	hook := env.Installed.Deployment.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep
	<-time.After(time.Duration(hook.Seconds) * time.Second)
	signalled := time.Now()
	p.Stop(ctx)
	<-updated
	return signalled
}

// leaseHolder returns the holder of the Lease and the time of its acquisition; "" if the Lease has no holder.
func leaseHolder(ctx context.Context) (string, time.Time) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator"}}
	Expect(client.IgnoreNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(lease), lease))).To(Succeed())
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", time.Time{}
	}
	return *lease.Spec.HolderIdentity, lease.Spec.AcquireTime.Time
}

// reportNextLeader waits for a leader other than the given pod, and reports the time from start to the acquisition of the Lease.
func reportNextLeader(ctx context.Context, previous *pod, start time.Time) {
	GinkgoHelper()
	var acquired time.Time
	Eventually(func() string {
		var holder string
		holder, acquired = leaseHolder(ctx)
		return holder
	}).WithContext(ctx).WithTimeout(specTimeout).ShouldNot(BeElementOf("", previous.name))
	AddReportEntry("the next leader", acquired.Sub(start).Round(time.Millisecond).String(), ReportEntryVisibilityAlways)
}

// waitForLeader returns the leader and the other pods.
func waitForLeader(ctx context.Context, pods ...*pod) (*pod, []*pod) {
	GinkgoHelper()
	var holder string
	Eventually(func() string { holder, _ = leaseHolder(ctx); return holder }).WithContext(ctx).ShouldNot(BeEmpty())
	var found *pod
	var others []*pod
	for _, p := range pods {
		if p.name == holder {
			found = p
		} else {
			others = append(others, p)
		}
	}
	Expect(found).NotTo(BeNil(), "the leader %s is not among the pods", holder)
	return found, others
}
