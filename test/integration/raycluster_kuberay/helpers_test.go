package raycluster_kuberay_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	settingsName    = "codeflare-operator-config"
	kueueAPIVersion = "kueue.x-k8s.io/v1beta2"
	queueNameLabel  = "kueue.x-k8s.io/queue-name"
)

// spec is the spec of a RayCluster with a head and two workers.
const spec = `{rayVersion: 2.47.1, headGroupSpec: {enableIngress: false, rayStartParams: {dashboard-host: 0.0.0.0}, template: {spec: {containers: [
	{name: ray-head, image: 'example.com/ray:1', resources: {requests: {cpu: '100m'}}, ports: [{containerPort: 6379, name: gcs},
	{containerPort: 8265, name: dashboard}, {containerPort: 10001, name: client}]}]}}}, workerGroupSpecs: [{groupName: small, replicas: 2, minReplicas: 0, maxReplicas: 9,
	rayStartParams: {}, template: {spec: {containers: [{name: ray-worker, image: 'example.com/ray:1', resources: {requests: {cpu: '100m'}}}]}}}]}`

// newRayCluster returns a RayCluster with the spec above.
func newRayCluster(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return framework.Manifest("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: %s, namespace: %s}, spec: %s}", name, namespace, spec)
}

// reference returns an object with only kind and name.
func reference(o client.Object) *unstructured.Unstructured {
	return framework.Unstructured(o.GetObjectKind().GroupVersionKind(), o.GetNamespace(), o.GetName())
}

// createAndCleanUp creates an object, and deletes it after the spec, before its namespace.
func createAndCleanUp(ctx context.Context, o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, o) }, NodeTimeout(specTimeout))
	return o
}

func deleteAndWait(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, reference(o)))).To(Succeed())
	Eventually(func() bool {
		err := env.Admin.Get(ctx, client.ObjectKeyFromObject(o), reference(o))
		return err != nil && client.IgnoreNotFound(err) == nil
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(BeTrue(), "%s was not deleted", o.GetName())
}

// eventually repeats a check until it succeeds, with the timeout of the suite.
func eventually(ctx context.Context, check func(g Gomega)) {
	GinkgoHelper()
	Eventually(check).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
}

// waitReady waits until KubeRay reports a cluster as ready, and returns it.
func waitReady(ctx context.Context, cluster *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	live := reference(cluster)
	eventually(ctx, func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
		state, _, _ := unstructured.NestedString(live.Object, "status", "state")
		g.Expect(state).To(Equal("ready"), "%v", live.Object["status"])
	})
	return live
}

// listPods returns the pods of a cluster.
func listPods(ctx context.Context, g Gomega, cluster *unstructured.Unstructured) []corev1.Pod {
	var pods corev1.PodList
	g.Expect(env.Admin.List(ctx, &pods, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{raycluster.LabelCluster: cluster.GetName()})).To(Succeed())
	return pods.Items
}

// namesOf returns the names of the child objects of a live cluster.
func namesOf(live *unstructured.Unstructured) raycluster.Names {
	return raycluster.View(live.Object).Names()
}

// getCertificate returns the certificate in a Secret.
func getCertificate(ctx context.Context, g Gomega, namespace, secret string) *x509.Certificate {
	var object corev1.Secret
	g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, &object)).To(Succeed())
	g.Expect(object.Data).To(And(HaveKey("ca.crt"), HaveKey("tls.key")))
	block, _ := pem.Decode(object.Data[corev1.TLSCertKey])
	g.Expect(block).NotTo(BeNil())
	parsed, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// waitForCertificates waits until a cluster has count pods, each with an IP address that the certificate of its role contains.
func waitForCertificates(ctx context.Context, live *unstructured.Unstructured, count int) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		pods := listPods(ctx, g, live)
		g.Expect(pods).To(HaveLen(count))
		for _, pod := range pods {
			secret := namesOf(live).WorkerTLS
			if pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead {
				secret = namesOf(live).HeadTLS
			}
			g.Expect(pod.Status.PodIP).NotTo(BeEmpty())
			g.Expect(getCertificate(ctx, g, live.GetNamespace(), secret).VerifyHostname(pod.Status.PodIP)).To(Succeed(), pod.Name)
		}
	})
}

// listRemaining returns the objects with the label of a cluster, which must be deleted with the cluster.
func listRemaining(ctx context.Context, g Gomega, namespace, name string) []string {
	var out []string
	lists := []client.ObjectList{
		&corev1.SecretList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{},
		&networkingv1.IngressList{}, &networkingv1.NetworkPolicyList{}, &rbacv1.ClusterRoleBindingList{},
	}
	for _, list := range lists {
		g.Expect(env.Admin.List(ctx, list, client.MatchingLabels{raycluster.LabelClusterName: name})).To(Succeed())
		content, err := yaml.Marshal(list)
		g.Expect(err).NotTo(HaveOccurred())
		var named struct {
			Items []metav1.PartialObjectMetadata `json:"items"`
		}
		g.Expect(yaml.Unmarshal(content, &named)).To(Succeed())
		for _, item := range named.Items {
			if item.Namespace == namespace || item.Labels[raycluster.LabelClusterNamespace] == namespace {
				out = append(out, fmt.Sprintf("%T %s", list, item.Name))
			}
		}
	}
	return out
}

// deleteCompletely deletes a cluster, and waits until all its objects are deleted.
func deleteCompletely(ctx context.Context, cluster *unstructured.Unstructured) {
	GinkgoHelper()
	deleteAndWait(ctx, cluster)
	eventually(ctx, func(g Gomega) {
		g.Expect(listRemaining(ctx, g, cluster.GetNamespace(), cluster.GetName())).To(BeEmpty())
		g.Expect(listPods(ctx, g, cluster)).To(BeEmpty())
	})
}

// changeSettings replaces the settings of the CodeFlare operator, and waits until admission uses them. The original settings are restored
// after the spec.
func changeSettings(ctx context.Context, text, sidecar, initContainers string) {
	GinkgoHelper()
	set := func(ctx context.Context, text, sidecar, initContainers string) {
		GinkgoHelper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: settingsName}}
		env.Patch(ctx, config, map[string]any{"data": map[string]any{"config.yaml": text}})
		waitForInjection(ctx, sidecar, initContainers)
	}
	set(ctx, text, sidecar, initContainers)
	DeferCleanup(func(ctx SpecContext) { set(ctx, settings, "", raycluster.InitCertificate) }, NodeTimeout(specTimeout))
}

// waitForInjection waits until the head of a new cluster gets the given sidecar and init containers, or none if empty.
func waitForInjection(ctx context.Context, sidecar, initContainers string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		probe := newRayCluster(metav1.NamespaceDefault, "probe")
		g.Expect(env.Admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(raycluster.View(probe.Object).Injected().Sidecar).To(BeEquivalentTo(sidecar))
		g.Expect(containerNames(probe, "initContainers")).To(Equal(initContainers))
	})
}

// containerNames returns the names of the containers in a field of the pod spec of the head, joined by commas.
func containerNames(cluster *unstructured.Unstructured, field string) string {
	list, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "headGroupSpec", "template", "spec", field)
	var out []string
	for _, c := range list {
		if fields, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprint(fields["name"]))
		}
	}
	return strings.Join(out, ",")
}

// createQueueDefaults creates the ResourceFlavor that all queues share, and waits until the webhooks of Kueue and of RayClusters respond.
func createQueueDefaults(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		flavor := framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: default-flavor}}", kueueAPIVersion)
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, flavor))).To(Succeed())
	})
	waitForInjection(ctx, "", raycluster.InitCertificate)
}

// createQueue creates a namespace with a LocalQueue named queue, and a ClusterQueue with quota.
func createQueue(ctx context.Context) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, "queued")
	quota := framework.Manifest("{apiVersion: %s, kind: ClusterQueue, metadata: {name: %s}}", kueueAPIVersion, namespace)
	quota.Object["spec"] = framework.Manifest(`{namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu, memory],
		flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "9"}, {name: memory, nominalQuota: 9Gi}]}]}]}`).Object
	eventually(ctx, func(g Gomega) {
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, quota.DeepCopy()))).To(Succeed())
	})
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, quota))).To(Succeed())
	}, NodeTimeout(specTimeout))
	local := framework.Manifest("{apiVersion: %s, kind: LocalQueue, metadata: {name: queue, namespace: %s}, spec: {clusterQueue: %s}}", kueueAPIVersion, namespace, namespace)
	eventually(ctx, func(g Gomega) {
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, local.DeepCopy()))).To(Succeed())
	})
	return namespace
}

// listObjects returns the objects of a kind in a namespace.
func listObjects(ctx context.Context, g Gomega, kind schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	g.Expect(env.Admin.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
	return all.Items
}
