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
	configMap = "codeflare-operator-config"
	queues    = "kueue.x-k8s.io/v1beta1"
	queueName = "kueue.x-k8s.io/queue-name"
)

// spec is that of a RayCluster with a head and two workers, as a user writes it.
const spec = `{rayVersion: 2.47.1, headGroupSpec: {enableIngress: false, rayStartParams: {dashboard-host: 0.0.0.0}, template: {spec: {containers: [
	{name: ray-head, image: 'example.com/ray:1', resources: {requests: {cpu: '100m'}}, ports: [{containerPort: 6379, name: gcs},
	{containerPort: 8265, name: dashboard}, {containerPort: 10001, name: client}]}]}}}, workerGroupSpecs: [{groupName: small, replicas: 2, minReplicas: 0, maxReplicas: 9,
	rayStartParams: {}, template: {spec: {containers: [{name: ray-worker, image: 'example.com/ray:1', resources: {requests: {cpu: '100m'}}}]}}}]}`

// rayCluster returns a RayCluster without creating it.
func rayCluster(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return framework.Manifest("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: %s, namespace: %s}, spec: %s}", name, namespace, spec)
}

// reference returns an object with only kind and name.
func reference(o client.Object) *unstructured.Unstructured {
	return framework.Unstructured(o.GetObjectKind().GroupVersionKind(), o.GetNamespace(), o.GetName())
}

// createAndCleanUp creates an object, and deletes it before the namespace.
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
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(BeTrue(), "%s is still there", o.GetName())
}

// eventually polls with the timeout of the suite.
func eventually(ctx context.Context, check func(g Gomega)) {
	GinkgoHelper()
	Eventually(check).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
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

// podsOf lists the pods of a cluster.
func podsOf(ctx context.Context, g Gomega, cluster *unstructured.Unstructured) []corev1.Pod {
	var pods corev1.PodList
	g.Expect(env.Admin.List(ctx, &pods, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{raycluster.LabelCluster: cluster.GetName()})).To(Succeed())
	return pods.Items
}

// names returns the names of the children of a live cluster.
func names(live *unstructured.Unstructured) raycluster.Names {
	return raycluster.View(live.Object).Names()
}

// certificate parses the certificate in a Secret.
func certificate(ctx context.Context, g Gomega, namespace, secret string) *x509.Certificate {
	var s corev1.Secret
	g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, &s)).To(Succeed())
	g.Expect(s.Data).To(And(HaveKey("ca.crt"), HaveKey("tls.key")))
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	g.Expect(block).NotTo(BeNil())
	c, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// waitForCertificates waits until every pod of a cluster has an IP address that the certificate of its role contains.
func waitForCertificates(ctx context.Context, live *unstructured.Unstructured, count int) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		pods := podsOf(ctx, g, live)
		g.Expect(pods).To(HaveLen(count))
		for _, pod := range pods {
			secret := names(live).WorkerTLS
			if pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead {
				secret = names(live).HeadTLS
			}
			g.Expect(pod.Status.PodIP).NotTo(BeEmpty())
			g.Expect(certificate(ctx, g, live.GetNamespace(), secret).VerifyHostname(pod.Status.PodIP)).To(Succeed(), pod.Name)
		}
	})
}

// leftovers returns the objects with the label of a cluster, which must be deleted with it.
func leftovers(ctx context.Context, g Gomega, namespace, name string) []string {
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
		g.Expect(leftovers(ctx, g, cluster.GetNamespace(), cluster.GetName())).To(BeEmpty())
		g.Expect(podsOf(ctx, g, cluster)).To(BeEmpty())
	})
}

// withSettings changes the settings of the CodeFlare operator until the end of the spec, and waits until admission applies them.
func withSettings(ctx context.Context, text, sidecar, inits string) {
	GinkgoHelper()
	set := func(ctx context.Context, text, sidecar, inits string) {
		GinkgoHelper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: configMap}}
		env.Patch(ctx, config, map[string]any{"data": map[string]any{"config.yaml": text}})
		admitsWith(ctx, sidecar, inits)
	}
	set(ctx, text, sidecar, inits)
	DeferCleanup(func(ctx SpecContext) { set(ctx, settings, "", raycluster.InitCertificate) }, NodeTimeout(specTimeout))
}

// admitsWith waits until the head of a new cluster gets the sidecar and the init containers; empty for none.
func admitsWith(ctx context.Context, sidecar, inits string) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		probe := rayCluster(metav1.NamespaceDefault, "probe")
		g.Expect(env.Admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(raycluster.View(probe.Object).Injected().Sidecar).To(BeEquivalentTo(sidecar))
		g.Expect(containers(probe, "initContainers")).To(Equal(inits))
	})
}

// containers returns the names of the containers of the head.
func containers(cluster *unstructured.Unstructured, field string) string {
	list, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "headGroupSpec", "template", "spec", field)
	var out []string
	for _, c := range list {
		if fields, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprint(fields["name"]))
		}
	}
	return strings.Join(out, ",")
}

// createQueueDefaults creates the objects that all queues share, and waits until all webhooks respond.
func createQueueDefaults(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, func(g Gomega) {
		flavor := framework.Manifest("{apiVersion: %s, kind: ResourceFlavor, metadata: {name: default-flavor}}", queues)
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, flavor))).To(Succeed())
	})
	admitsWith(ctx, "", raycluster.InitCertificate)
}

// queue creates a namespace with the local queue `queue` and quota.
func queue(ctx context.Context) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, "queued")
	quota := framework.Manifest("{apiVersion: %s, kind: ClusterQueue, metadata: {name: %s}}", queues, namespace)
	quota.Object["spec"] = framework.Manifest(`{namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu, memory],
		flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "9"}, {name: memory, nominalQuota: 9Gi}]}]}]}`).Object
	eventually(ctx, func(g Gomega) {
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, quota.DeepCopy()))).To(Succeed())
	})
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, quota))).To(Succeed())
	}, NodeTimeout(specTimeout))
	local := framework.Manifest("{apiVersion: %s, kind: LocalQueue, metadata: {name: queue, namespace: %s}, spec: {clusterQueue: %s}}", queues, namespace, namespace)
	eventually(ctx, func(g Gomega) {
		g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, local.DeepCopy()))).To(Succeed())
	})
	return namespace
}

// list returns all objects of a kind in a namespace.
func list(ctx context.Context, g Gomega, kind schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	g.Expect(env.Admin.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
	return all.Items
}
