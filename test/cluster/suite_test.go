package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const suiteTimeout = 10 * time.Minute

func TestControlPlane(t *testing.T) { framework.Run(t, "Control plane") }

// The suite has two instances, which run at the same time.
var plain, openshift *cluster.Instance

var _ = BeforeSuite(func(ctx SpecContext) {
	options := []cluster.Options{
		{Name: "suite-plain", Platform: cluster.Plain, Ephemeral: true},
		{Name: "suite-openshift", Platform: cluster.OpenShift, Nodes: 1, Ephemeral: true},
	}
	instances, errs := make([]*cluster.Instance, len(options)), make([]error, len(options))
	var group sync.WaitGroup
	for index, option := range options {
		option.Progress = GinkgoWriter
		group.Go(func() { instances[index], errs[index] = cluster.Start(ctx, option) })
	}
	group.Wait()
	for index, instance := range instances {
		if errs[index] == nil {
			DeferCleanup(func(ctx context.Context) error { return instance.Stop(ctx) }, NodeTimeout(time.Minute))
		}
	}
	for _, err := range errs {
		Expect(err).NotTo(HaveOccurred())
	}
	plain, openshift = instances[0], instances[1]
}, NodeTimeout(suiteTimeout))

func clientOf(instance *cluster.Instance) kubernetes.Interface {
	GinkgoHelper()
	config, err := instance.Config()
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}
