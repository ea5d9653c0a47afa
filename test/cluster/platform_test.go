package cluster_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

var _ = Describe("platform", func() {
	servedKinds := func(instance *cluster.Instance) []string {
		_, lists, err := clientOf(instance).Discovery().ServerGroupsAndResources()
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, list := range lists {
			for _, resource := range list.APIResources {
				names = append(names, list.GroupVersion+" "+resource.Kind)
			}
		}
		return names
	}
	common := []string{
		"gateway.networking.k8s.io/v1 Gateway", "gateway.networking.k8s.io/v1 HTTPRoute",
		"gateway.networking.k8s.io/v1beta1 ReferenceGrant",
		"monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PrometheusRule",
		"ray.io/v1 RayCluster", "ray.io/v1 RayJob", "ray.io/v1 RayService",
	}
	onlyOpenShift := []string{
		"route.openshift.io/v1 Route", "user.openshift.io/v1 Group", "console.openshift.io/v1 ConsoleLink",
		"config.openshift.io/v1 Ingress", "config.openshift.io/v1 Proxy", "config.openshift.io/v1 APIServer", "config.openshift.io/v1 ClusterVersion",
	}

	It("plain serves Gateway API, monitoring and Ray, but not the OpenShift APIs", func() {
		names := servedKinds(plain)
		Expect(names).To(ContainElements(common))
		for _, name := range onlyOpenShift {
			Expect(names).NotTo(ContainElement(name))
		}
	})

	It("openshift also serves the OpenShift APIs and the cluster configuration", func(ctx SpecContext) {
		Expect(servedKinds(openshift)).To(ContainElements(append(common, onlyOpenShift...)))
		config, err := openshift.Config()
		Expect(err).NotTo(HaveOccurred())
		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		ingresses := schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}
		ingress, err := client.Resource(ingresses).Get(ctx, "cluster", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		domain, _, err := unstructured.NestedString(ingress.Object, "spec", "domain")
		Expect(err).NotTo(HaveOccurred())
		Expect(domain).To(Equal(cluster.IngressDomain))
		groups := schema.GroupVersionResource{Group: "user.openshift.io", Version: "v1", Resource: "groups"}
		group := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": map[string]any{"name": "team"}, "users": []any{"ann"},
		}}
		_, err = client.Resource(groups).Create(ctx, group, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		// A second installation succeeds.
		Expect(cluster.InstallPlatform(ctx, config, cluster.OpenShift)).To(Succeed())
	}, NodeTimeout(2*time.Minute))

	It("stops serving a removed CRD, and serves installed CRDs and sets", func(ctx SpecContext) {
		config, err := plain.Config()
		Expect(err).NotTo(HaveOccurred())
		const crd = "podmonitors.monitoring.coreos.com"
		served := "monitoring.coreos.com/v1 PodMonitor"
		Expect(cluster.RemoveCRD(ctx, config, crd)).To(Succeed())
		Expect(cluster.RemoveCRD(ctx, config, crd)).To(Succeed(), "deleting a CRD that does not exist")
		Eventually(func() []string { return servedKinds(plain) }).ShouldNot(ContainElement(served))
		Expect(cluster.InstallCRD(ctx, config, crd)).To(Succeed())
		Eventually(func() []string { return servedKinds(plain) }).Should(ContainElement(served))
		Expect(cluster.InstallCRD(ctx, config, "foos.example.com")).To(MatchError(ContainSubstring("unknown CRD")))
		Expect(cluster.InstallSet(ctx, config, cluster.KServe)).To(Succeed())
		Eventually(func() []string { return servedKinds(plain) }).Should(ContainElements(
			"serving.kserve.io/v1alpha1 ServingRuntime", "serving.kserve.io/v1alpha1 ClusterServingRuntime",
			"serving.kserve.io/v1beta1 InferenceService",
		))
	}, NodeTimeout(2*time.Minute))
})
