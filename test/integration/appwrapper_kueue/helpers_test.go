package appwrapper_kueue_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const kueueAPIVersion = "kueue.x-k8s.io/v1beta2"

// eventuallyCreate creates an object, and retries until the admission webhooks respond. An attempt whose response was lost may have created
// the object.
func eventuallyCreate(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Eventually(func() error { return client.IgnoreAlreadyExists(env.Admin.Create(ctx, o)) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
}

// createQueueDefaults creates the objects that all queues share.
func createQueueDefaults(ctx context.Context) {
	GinkgoHelper()
	eventuallyCreate(ctx, framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: default-flavor}}", kueueAPIVersion))
	for name, value := range map[string]int{"low": 10, "high": 1000} {
		eventuallyCreate(ctx, framework.Manifest("{apiVersion: %s, kind: WorkloadPriorityClass, metadata: {name: %s}, value: %d}", kueueAPIVersion, name, value))
	}
	Eventually(func() error { // until the webhooks of Kueue and of the manager respond
		return env.Admin.Create(ctx, wrap(metav1.NamespaceDefault, "probe", pod("p", "1")), client.DryRunAll)
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
}

// createQueue creates a namespace with the LocalQueue `queue` and the default one, and a ClusterQueue with the name of the namespace and
// the given quota of CPUs. The ClusterQueue is deleted at the end of the spec.
func createQueue(ctx context.Context, cpus string) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, "kueue")
	cq := clusterQueue(namespace)
	cq.Object["spec"] = framework.Manifest(`{namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority}, resourceGroups: [
		{coveredResources: [cpu], flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "%s"}]}]}]}`, cpus).Object
	eventuallyCreate(ctx, cq)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, cq))).To(Succeed())
	}, NodeTimeout(specTimeout))
	for _, name := range []string{"queue", defaultQueue} {
		eventuallyCreate(ctx, framework.Manifest("{apiVersion: %s, kind: LocalQueue, metadata: {name: %s, namespace: %s}, spec: {clusterQueue: %s}}", kueueAPIVersion, name, namespace, namespace))
	}
	return namespace
}

// excludeFromDefaulting excludes a namespace from the mutating webhook for the rest of the spec, so its AppWrappers get no default queue.
func excludeFromDefaulting(ctx context.Context, namespace string) {
	GinkgoHelper()
	setSelector := func(ctx context.Context, selector string) {
		GinkgoHelper()
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "appwrapper-mutating-webhook-configuration"}}
		Expect(env.Admin.Patch(ctx, configuration, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": `+selector+`}]`)))).To(Succeed())
	}
	setSelector(ctx, `{"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["`+namespace+`"]}]}`)
	DeferCleanup(setSelector, "{}", NodeTimeout(specTimeout))
	Eventually(func(g Gomega) { // the API server applies the changed selector with a delay
		probe := wrap(namespace, "probe", pod("p", "1"))
		probe.Labels = nil
		g.Expect(env.Admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Labels).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
}

func clusterQueue(name string) *unstructured.Unstructured {
	return framework.Manifest("{apiVersion: %s, kind: ClusterQueue, metadata: {name: %s}}", kueueAPIVersion, name)
}

// pod and the functions up to pyTorchJob return templates of components.
func pod(name, cpu string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {restartPolicy: Never, containers: [{name: main, image: 'example.com/a:1', resources: {requests: {cpu: '%s'}}}]}}", name, cpu)
}

func job(name string, pods int, cpu, image string) string {
	return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {parallelism: %d, completions: %d, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: "+
		"[{name: main, image: '%s', resources: {requests: {cpu: '%s'}}}]}}}}", name, pods, pods, image, cpu)
}

func deployment(name string, pods int, cpu string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, "+
		"spec: {containers: [{name: main, image: 'example.com/a:1', resources: {requests: {cpu: '%s'}}}]}}}}", name, pods, name, name, cpu)
}

func service(name string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {clusterIP: None, selector: {app: x}, ports: [{port: 80}]}}", name)
}

func rayCluster(name string) string {
	return fmt.Sprintf("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: %s}, spec: {rayVersion: 2.46.0, "+
		"headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: 'example.com/ray:1', resources: {requests: {cpu: '1'}}}]}}}, "+
		"workerGroupSpecs: [{groupName: workers, replicas: 2, minReplicas: 2, maxReplicas: 2, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: 'example.com/ray:1', resources: {requests: {cpu: '1'}}}]}}}]}}", name)
}

func rayCronJob(name, schedule string) string {
	return fmt.Sprintf("{apiVersion: ray.io/v1, kind: RayCronJob, metadata: {name: %s}, spec: {schedule: '%s', jobTemplate: {entrypoint: x, shutdownAfterJobFinishes: true, rayClusterSpec: {rayVersion: 2.46.0, "+
		"headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: 'example.com/ray:1', resources: {requests: {cpu: '1'}}}]}}}, "+
		"workerGroupSpecs: [{groupName: workers, replicas: 2, minReplicas: 2, maxReplicas: 2, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: 'example.com/ray:1', resources: {requests: {cpu: '1'}}}]}}}]}}}}", name, schedule)
}

func pyTorchJob(name string) string {
	return fmt.Sprintf("{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s}, spec: {pytorchReplicaSpecs: {"+
		"Master: {template: {spec: {containers: [{name: pytorch, image: a, resources: {requests: {cpu: '1'}}}]}}}, "+
		"Worker: {replicas: 4, template: {spec: {containers: [{name: pytorch, image: a, resources: {requests: {cpu: '1'}}}]}}}}}}", name)
}

// wrap returns an AppWrapper in the LocalQueue of its namespace.
func wrap(namespace, name string, templates ...string) *v1beta2.AppWrapper {
	GinkgoHelper()
	aw := &v1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1beta2.LabelQueue: "queue"}, Annotations: map[string]string{},
	}}
	for _, template := range templates {
		raw, err := yaml.YAMLToJSON([]byte(template))
		Expect(err).NotTo(HaveOccurred(), template)
		aw.Spec.Components = append(aw.Spec.Components, v1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	}
	return aw
}

// createWrapper creates an AppWrapper and deletes it before its namespace.
func createWrapper(ctx context.Context, aw *v1beta2.AppWrapper) *v1beta2.AppWrapper {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, aw)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteWrapper(ctx, aw) }, NodeTimeout(specTimeout))
	return aw
}

func deleteWrapper(ctx context.Context, aw *v1beta2.AppWrapper) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, aw))).To(Succeed())
	env.WaitDeleted(ctx, aw)
}

func waitForPhase(ctx context.Context, aw *v1beta2.AppWrapper, phase v1beta2.AppWrapperPhase) {
	GinkgoHelper()
	env.WaitFor(ctx, aw, func(g Gomega) { g.Expect(aw.Status.Phase).To(Equal(phase), "%+v", aw.Status.Conditions) })
}

func waitReady(ctx context.Context, aw *v1beta2.AppWrapper) {
	GinkgoHelper()
	env.WaitFor(ctx, aw, func(g Gomega) {
		g.Expect(aw.Status.Phase).To(Equal(v1beta2.PhaseRunning), "%+v", aw.Status.Conditions)
		g.Expect(meta.IsStatusConditionTrue(aw.Status.Conditions, v1beta2.ConditionPodsReady)).To(BeTrue(), "%+v", aw.Status.Conditions)
	})
}

// expectSuspended expects that an AppWrapper gets neither quota nor pods.
func expectSuspended(ctx context.Context, aw *v1beta2.AppWrapper) {
	GinkgoHelper()
	waitForPhase(ctx, aw, v1beta2.PhaseSuspended)
	Consistently(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
		g.Expect(aw.Status.Phase).To(Equal(v1beta2.PhaseSuspended))
		g.Expect(aw.Spec.Suspend).To(BeTrue())
		g.Expect(podsOf(ctx, g, aw)).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(stableDuration).WithPolling(poll).Should(Succeed())
}

func podsOf(ctx context.Context, g Gomega, aw *v1beta2.AppWrapper) []corev1.Pod {
	var pods corev1.PodList
	g.Expect(env.Admin.List(ctx, &pods, client.InNamespace(aw.Namespace), client.MatchingLabels{v1beta2.LabelAppWrapper: aw.Name})).To(Succeed())
	return pods.Items
}

// workloads returns the Workloads of Kueue in a namespace.
func workloads(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(kueueAPIVersion)
	list.SetKind("WorkloadList")
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}
