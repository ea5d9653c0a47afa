package availability

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// predictorCRD is the CRD that the component modelmesh requires. The client of the specs writes no Predictors.
const predictorCRD = "predictors.serving.kserve.io"

// deletePredictorCRD deletes the CRD until the end of the spec.
func deletePredictorCRD(ctx context.Context) {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: predictorCRD}}
	env.Get(ctx, crd)
	restored := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
	DeferCleanup(func(ctx SpecContext) {
		Expect(cluster.InstallCRDs(ctx, env.Config, restored)).To(Succeed())
	}, NodeTimeout(specTimeout))
	Expect(env.Admin.Delete(ctx, crd)).To(Succeed())
}

// withoutEOF drops failures of a write on an idle connection that the server closed at the same time.
func withoutEOF(failures []string) []string {
	return slices.DeleteFunc(failures, func(text string) bool { return strings.HasSuffix(text, ": EOF") })
}

var _ = Describe("Two replicas refuse no write", func() {
	var (
		service       *framework.Service
		first, second *pod
		writes        *writer
	)

	BeforeEach(func(ctx SpecContext) {
		service = framework.Serve(env.Installed.WebhookPort)
		first, second = newPod(ctx, service, "manager-1"), newPod(ctx, service, "manager-2")
		writes = startWriter(ctx)
		writes.waitForWrites(ctx)
	}, NodeTimeout(specTimeout))

	AfterEach(func() {
		if writes != nil {
			writes.stop()
			writes.report()
			writes = nil
		}
	})

	It("during an upgrade that replaces both", func(ctx SpecContext) {
		third := newPod(ctx, service, "manager-3")
		leader, followers := waitForLeader(ctx, first, second, third)
		reportNextLeader(ctx, leader, leader.remove(ctx, service))
		newPod(ctx, service, "manager-4")
		followers[0].remove(ctx, service)
		writes.waitForWrites(ctx)
		Expect(writes.failures(time.Time{})).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("during the drain of the node of the leader", func(ctx SpecContext) {
		leader, _ := waitForLeader(ctx, first, second)
		reportNextLeader(ctx, leader, leader.remove(ctx, service))
		writes.waitForWrites(ctx)
		newPod(ctx, service, "manager-3")
		writes.waitForWrites(ctx)
		Expect(writes.failures(time.Time{})).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("when a required API is removed, and the leader restarts in its process while it stays an endpoint", func(ctx SpecContext) {
		leader, _ := waitForLeader(ctx, first, second)
		removal := time.Now()
		deletePredictorCRD(ctx)
		leader.AwaitRestart(ctx)
		reportNextLeader(ctx, leader, removal)
		restarted := time.Now()
		writes.waitForWrites(ctx)
		Expect(withoutEOF(writes.failures(time.Time{}))).To(BeEmpty())
		Expect(writes.failures(restarted)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("after the leader is killed and the endpoints are updated; until then, only connections to its pod fail", func(ctx SpecContext) {
		leader, _ := waitForLeader(ctx, first, second)
		killed := time.Now()
		leader.Kill(ctx)
		<-time.After(endpointDelay)
		service.Remove(leader.port)
		<-time.After(time.Second) // for pending writes
		updated := time.Now()
		Expect(writes.failures(killed)).To(And(Not(BeEmpty()), HaveEach(Satisfy(isConnectionError))))
		reportNextLeader(ctx, leader, killed)
		writes.waitForWrites(ctx)
		Expect(writes.failures(updated)).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
