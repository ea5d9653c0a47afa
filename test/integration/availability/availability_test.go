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

// predictors is the CRD that the component modelmesh requires. The client of the specs writes no Predictors.
const predictors = "predictors.serving.kserve.io"

// withoutPredictors deletes the CRD until the end of the spec.
func withoutPredictors(ctx context.Context) {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: predictors}}
	env.Get(ctx, crd)
	fresh := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
	DeferCleanup(func(ctx SpecContext) {
		Expect(cluster.InstallCRDs(ctx, env.Config, fresh)).To(Succeed())
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
		old, others := leading(ctx, first, second, third)
		reportChange(ctx, old, old.remove(ctx, service))
		newPod(ctx, service, "manager-4")
		others[0].remove(ctx, service)
		writes.waitForWrites(ctx)
		Expect(writes.failures(time.Time{})).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("during the drain of the node of the leader", func(ctx SpecContext) {
		old, _ := leading(ctx, first, second)
		reportChange(ctx, old, old.remove(ctx, service))
		writes.waitForWrites(ctx)
		newPod(ctx, service, "manager-3")
		writes.waitForWrites(ctx)
		Expect(writes.failures(time.Time{})).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("for lack of a listener when a required API is removed, and the leader starts again while it stays an endpoint", func(ctx SpecContext) {
		old, _ := leading(ctx, first, second)
		removed := time.Now()
		withoutPredictors(ctx)
		old.AwaitRestart(ctx)
		reportChange(ctx, old, removed)
		restarted := time.Now()
		writes.waitForWrites(ctx)
		Expect(withoutEOF(writes.failures(time.Time{}))).To(BeEmpty())
		Expect(writes.failures(restarted)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("after the leader was killed and the endpoints are updated; until then, only connections to its pod fail", func(ctx SpecContext) {
		old, _ := leading(ctx, first, second)
		killed := time.Now()
		old.Kill(ctx)
		<-time.After(learning)
		service.Remove(old.port)
		<-time.After(time.Second) // for writes that are waiting
		learnt := time.Now()
		Expect(writes.failures(killed)).To(And(Not(BeEmpty()), HaveEach(Satisfy(isConnectionError))))
		reportChange(ctx, old, killed)
		writes.waitForWrites(ctx)
		Expect(writes.failures(learnt)).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
