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

// dispatchTo configures a ClusterQueue of the shared control plane to dispatch to the worker, whose queues have the same names.
func dispatchTo(ctx context.Context, worker *framework.Env, namespace string) {
	GinkgoHelper()
	createInWorker := func(o client.Object) {
		GinkgoHelper()
		Eventually(func() error { return client.IgnoreAlreadyExists(worker.Admin.Create(ctx, o)) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
	}
	createInWorker(framework.NamespaceNamed(namespace))
	createInWorker(framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: default-flavor}}", kueueAPIVersion))
	createInWorker(framework.Manifest(`{apiVersion: %s, kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, resourceGroups: [
		{coveredResources: [cpu], flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "2"}]}]}]}}`, kueueAPIVersion, namespace))
	createInWorker(framework.Manifest("{apiVersion: %s, kind: LocalQueue, metadata: {name: queue, namespace: %s}, spec: {clusterQueue: %s}}", kueueAPIVersion, namespace, namespace))

	config, err := clientcmd.LoadFromFile(worker.KubeconfigPath)
	Expect(err).NotTo(HaveOccurred())
	Expect(clientcmdapi.FlattenConfig(config)).To(Succeed())
	text, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: "worker"}, Data: map[string][]byte{"kubeconfig": text}},
		framework.Manifest("{apiVersion: %s, kind: MultiKueueCluster, metadata: {name: worker}, spec: {clusterSource: {kubeConfig: {locationType: Secret, location: worker}}}}", kueueAPIVersion),
		framework.Manifest("{apiVersion: %s, kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [worker]}}", kueueAPIVersion),
		framework.Manifest("{apiVersion: %s, kind: AdmissionCheck, metadata: {name: workers}, spec: {controllerName: %s, parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}}}",
			kueueAPIVersion, multiKueue),
	} {
		eventuallyCreate(ctx, o)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o))).To(Succeed()) }, NodeTimeout(specTimeout))
	}
	env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"admissionChecksStrategy": map[string]any{"admissionChecks": []any{map[string]any{"name": "workers"}}}}})
}

var _ = Describe("MultiKueue", func() {
	It("runs an AppWrapper in another cluster, and copies its status back, even after a suspension", func(ctx SpecContext) {
		worker := startWorker(ctx)
		namespace := createQueue(ctx, "2")
		dispatchTo(ctx, worker, namespace)
		createDispatched := func(name string, templates ...string) *v1beta2.AppWrapper {
			aw := wrap(namespace, name, templates...)
			aw.Spec.ManagedBy = new(multiKueue)
			return createWrapper(ctx, aw)
		}
		aw := createDispatched("dispatched", pod("a", "1"), deployment("b", 1, "1"))
		waitReady(ctx, aw)
		pods, remote := &corev1.PodList{}, &v1beta2.AppWrapper{}
		Expect(worker.Admin.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{v1beta2.LabelAppWrapper: aw.Name})).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty(), "pods run only in the worker")
		Expect(worker.Admin.Get(ctx, client.ObjectKeyFromObject(aw), remote)).To(Succeed())
		Expect(remote.Spec.ManagedBy).To(BeNil())
		Expect(aw.Status.ComponentStatus).To(Equal(remote.Status.ComponentStatus))
		Expect(*aw.Spec.ManagedBy).To(Equal(multiKueue))
		waitDeletedInWorker := func(name string) {
			GinkgoHelper()
			Eventually(func() bool {
				return apierrors.IsNotFound(worker.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1beta2.AppWrapper{}))
			}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(BeTrue(), "%s still exists in the worker", name)
		}

		By("creating another AppWrapper, which waits for the quota")
		next := createDispatched("next", pod("next", "2"))
		Consistently(func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(next), next)).To(Succeed())
			g.Expect(next.Spec.Suspend).To(BeTrue())
			g.Expect(next.Status.Phase).To(BeEmpty(), "the operator must not reconcile it")
			g.Expect(apierrors.IsNotFound(worker.Admin.Get(ctx, client.ObjectKeyFromObject(next), &v1beta2.AppWrapper{}))).To(BeTrue())
		}).WithContext(ctx).WithTimeout(stableDuration).WithPolling(poll).Should(Succeed())
		deleteWrapper(ctx, next) // otherwise it would get the quota first

		By("draining and resuming the queue")
		setStopPolicy := func(policy string) {
			env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": policy}})
		}
		setStopPolicy("HoldAndDrain")
		waitDeletedInWorker("dispatched")
		env.WaitFor(ctx, aw, func(g Gomega) { g.Expect(aw.Spec.Suspend).To(BeTrue()) })
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty())
		writes := env.Since(0).ByUser(manager.User).Writes().Where(func(e framework.Entry) bool { return e.Namespace == namespace })
		Expect(writes).To(BeEmpty(), "the operator must write neither the local AppWrappers nor their status")
		setStopPolicy("None")
		Eventually(func(g Gomega) {
			recreated := &v1beta2.AppWrapper{}
			g.Expect(worker.Admin.Get(ctx, client.ObjectKeyFromObject(aw), recreated)).To(Succeed())
			g.Expect(recreated.UID).NotTo(Equal(remote.UID))
			g.Expect(recreated.Status.Phase).To(Equal(v1beta2.PhaseRunning))
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
			recreated.Status.ObservedGeneration = 0 // a field that the types of Kueue do not have
			g.Expect(aw.Status).To(Equal(recreated.Status))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())

		deleteWrapper(ctx, aw)
		waitDeletedInWorker("dispatched") // the remote AppWrapper is deleted with the local one
	}, NodeTimeout(framework.StartTimeout))
})
