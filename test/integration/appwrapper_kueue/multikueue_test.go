package appwrapper_kueue_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const multiKueue = "kueue.x-k8s.io/multikueue"

// startWorker starts a second control plane with its own manager and Kueue.
func startWorker(ctx context.Context) *framework.Env {
	GinkgoHelper()
	worker := framework.Start(ctx, "appwrapper-worker", cluster.Plain, framework.WithTypes(v1beta2.AddToScheme), framework.WithOperator("config/default"))
	worker.InstallCRDs(ctx, framework.SampleCRD("kubeflow.org", "v1", "PyTorchJob"))
	worker.StartManager(ctx, framework.ManagerOptions{
		Name: "worker", Args: []string{"--components=appwrapper"}, WebhookPort: worker.Installed.WebhookPort,
	})
	process, err := peers.StartKueue(ctx, worker.Instance, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		AddReportEntry("log of Kueue in the worker", process.LogTail(), ReportEntryVisibilityFailureOrVerbose)
	})
	return worker
}

// dispatchesTo makes a ClusterQueue of the shared control plane dispatch to the worker, whose queues have the same names.
func dispatchesTo(ctx context.Context, worker *framework.Env, namespace string) {
	GinkgoHelper()
	in := func(o client.Object) {
		GinkgoHelper()
		Eventually(func() error { return client.IgnoreAlreadyExists(worker.Admin.Create(ctx, o)) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
	}
	in(framework.NamespaceNamed(namespace))
	in(framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: default-flavor}}", queues))
	in(framework.Manifest(`{apiVersion: %s, kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, resourceGroups: [
		{coveredResources: [cpu], flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "2"}]}]}]}}`, queues, namespace))
	in(framework.Manifest("{apiVersion: %s, kind: LocalQueue, metadata: {name: queue, namespace: %s}, spec: {clusterQueue: %s}}", queues, namespace, namespace))

	config, err := clientcmd.LoadFromFile(worker.KubeconfigPath)
	Expect(err).NotTo(HaveOccurred())
	Expect(clientcmdapi.FlattenConfig(config)).To(Succeed())
	text, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "worker"}, Data: map[string][]byte{"kubeconfig": text}},
		framework.Manifest("{apiVersion: %s, kind: MultiKueueCluster, metadata: {name: worker}, spec: {kubeConfig: {locationType: Secret, location: worker}}}", queues),
		framework.Manifest("{apiVersion: %s, kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [worker]}}", queues),
		framework.Manifest("{apiVersion: %s, kind: AdmissionCheck, metadata: {name: workers}, spec: {controllerName: %s, parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}}}",
			queues, multiKueue),
	} {
		eventuallyCreate(ctx, o)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o))).To(Succeed()) }, NodeTimeout(specTimeout))
	}
	env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"admissionChecks": []any{"workers"}}})
}

var _ = Describe("MultiKueue", func() {
	It("runs an AppWrapper in another cluster, and copies its status back, also after it was suspended", func(ctx SpecContext) {
		worker := startWorker(ctx)
		namespace := queue(ctx, "2")
		dispatchesTo(ctx, worker, namespace)
		away := func(name string, templates ...string) *v1beta2.AppWrapper {
			aw := wrap(namespace, name, templates...)
			aw.Spec.ManagedBy = new(multiKueue)
			return createWrapper(ctx, aw)
		}
		aw := away("away", pod("a", "1"), deployment("b", 1, "1"))
		waitReady(ctx, aw)
		pods, remote := &corev1.PodList{}, &v1beta2.AppWrapper{}
		Expect(worker.Admin.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{v1beta2.LabelAppWrapper: aw.Name})).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty(), "nothing runs here")
		Expect(worker.Admin.Get(ctx, client.ObjectKeyFromObject(aw), remote)).To(Succeed())
		Expect(remote.Spec.ManagedBy).To(BeNil())
		Expect(aw.Status.ComponentStatus).To(Equal(remote.Status.ComponentStatus))
		Expect(*aw.Spec.ManagedBy).To(Equal(multiKueue))
		absent := func(name string) {
			GinkgoHelper()
			Eventually(func() bool {
				return apierrors.IsNotFound(worker.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1beta2.AppWrapper{}))
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(BeTrue(), "%s is still in the worker", name)
		}

		By("creating another one, which waits for the quota")
		next := away("next", pod("next", "2"))
		Consistently(func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(next), next)).To(Succeed())
			g.Expect(next.Spec.Suspend).To(BeTrue())
			g.Expect(next.Status.Phase).To(BeEmpty(), "the operator does not reconcile it")
			g.Expect(apierrors.IsNotFound(worker.Admin.Get(ctx, client.ObjectKeyFromObject(next), &v1beta2.AppWrapper{}))).To(BeTrue())
		}).WithContext(ctx).WithTimeout(waits).WithPolling(poll).Should(Succeed())
		deleteWrapper(ctx, next) // it might get the quota first

		By("draining the queue, and starting it again")
		stop := func(policy string) {
			env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": policy}})
		}
		stop("HoldAndDrain")
		absent("away")
		env.WaitFor(ctx, aw, func(g Gomega) { g.Expect(aw.Spec.Suspend).To(BeTrue()) })
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty())
		mine := env.Since(0).ByUser(manager.User).Writes().Where(func(e framework.Entry) bool { return e.Namespace == namespace })
		Expect(mine).To(BeEmpty(), "the operator changes neither the originals nor their status")
		stop("None")
		Eventually(func(g Gomega) {
			again := &v1beta2.AppWrapper{}
			g.Expect(worker.Admin.Get(ctx, client.ObjectKeyFromObject(aw), again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(remote.UID))
			g.Expect(again.Status.Phase).To(Equal(v1beta2.PhaseRunning))
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
			again.Status.ObservedGeneration = 0 // a field that the types of Kueue do not have
			g.Expect(aw.Status).To(Equal(again.Status))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())

		deleteWrapper(ctx, aw)
		absent("away") // the copy is deleted with the original
	}, NodeTimeout(framework.StartTimeout))
})
