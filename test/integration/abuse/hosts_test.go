package abuse_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	hostDomain   = "apps.example.org"
	noRoute      = "RouteNotPublished"
	notPublished = "DashboardNotPublished"
)

// createMeshNamespace creates a namespace with the given name and a published ServingRuntime.
func createMeshNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	ns := framework.NamespaceNamed(name)
	ns.Labels = map[string]string{"modelmesh-enabled": "true"}
	env.Create(ctx, ns)
	r := object(name, runtime("r", "{supportedModelFormats: [{name: onnx, autoSelect: true}]}"))
	r.SetAnnotations(map[string]string{mm.AnnotationRoute: "true"})
	Expect(env.Admin.Create(ctx, r)).To(Succeed())
}

func ingress(namespace, name string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: meta(namespace, name)}
}

// create creates an object and deletes it after the spec.
func create(ctx context.Context, namespace, text string) *unstructured.Unstructured {
	GinkgoHelper()
	o := object(namespace, text)
	env.Create(ctx, o)
	return o
}

// [B-5] Ingress controllers serve the Ingresses of a host from all namespaces.
var _ = Describe("Objects of two tenants with the same host", Serial, func() {
	It("are not published together: the later object reports the Ingress of the earlier one", func(ctx SpecContext) {
		const predictorSpec = "{model: {modelFormat: {name: onnx}, storage: {key: s3, path: m}}}"
		manager.StopTemporarily(ctx)
		ingressManager := env.StartManager(ctx, framework.ManagerOptions{
			Name: "hosts", WebhookPort: env.Installed.WebhookPort, Env: append(images[:len(images):len(images)], "EXPOSURE=ingress", "INGRESS_DOMAIN="+hostDomain),
		})
		for _, namespace := range []string{"a-rest", "c-x-rest", "x-rest", "rest", "catalog", "b-c", "c"} {
			createMeshNamespace(ctx, namespace)
		}
		earlierHosts := map[*networkingv1.Ingress]string{
			ingress(team, "team-a-https"):            "team-a-rest",
			ingress("x-rest", "ray-dashboard-c"):     "ray-dashboard-c-x-rest",
			ingress(team, "model-catalog-https"):     "model-catalog",
			ingress("b-c", "a"):                      "a-b-c",
			ingress("catalog", "registry"):           "registry-catalog",
			ingress("a-rest", "data"):                "data-a-rest",
			ingress("c-x-rest", "not-ray-dashboard"): "not-ray-dashboard-c-x-rest",
		}
		earlier := create(ctx, team, registry("team-a", "{}"))
		create(ctx, "x-rest", rayCluster("c", "{}"))
		create(ctx, team, catalog("catalog", "{}"))
		for namespace, name := range map[string]string{"b-c": "a", "catalog": "registry", "a-rest": "data", "c-x-rest": "not-ray-dashboard"} {
			create(ctx, namespace, inferenceService(name, predictorSpec))
		}
		for published, host := range earlierHosts {
			env.WaitExists(ctx, published)
			Expect(published.Spec.Rules[0].Host).To(Equal(host + "." + hostDomain))
		}

		By("creating models and a Ray cluster of other tenants")
		for _, later := range []struct{ namespace, text, ingress, reason, message string }{
			{"a-rest", inferenceService("team", predictorSpec), "team", noRoute, "the older Ingress " + team + "/team-a-https of ModelRegistry team-a has the host team-a-rest." + hostDomain},
			{"c-x-rest", inferenceService("ray-dashboard", predictorSpec), "ray-dashboard", noRoute, "the older Ingress x-rest/ray-dashboard-c of RayCluster c has the host ray-dashboard-c-x-rest." + hostDomain},
			{"catalog", inferenceService("model", predictorSpec), "model", noRoute, "the older Ingress " + team + "/model-catalog-https of Catalog catalog has the host model-catalog." + hostDomain},
			{"c", inferenceService("a-b", predictorSpec), "a-b", noRoute, "the older Ingress b-c/a of InferenceService a has the host a-b-c." + hostDomain},
			{"rest", rayCluster("c-x", "{}"), "ray-dashboard-c-x", notPublished, "the older Ingress x-rest/ray-dashboard-c of RayCluster c has the host ray-dashboard-c-x-rest." + hostDomain},
		} {
			o := create(ctx, later.namespace, later.text)
			env.WaitForEvent(ctx, o, later.reason, later.message)
			env.ExpectAbsent(ctx, ingress(later.namespace, later.ingress))
		}

		By("creating a registry with the host of a model")
		m := create(ctx, team, registry("data-a", "{}"))
		env.WaitForCondition(ctx, m, routestatus.Condition, metav1.ConditionFalse, routestatus.ReasonHostTaken)
		reported, _, err := unstructured.NestedSlice(m.Object, "status", "conditions")
		Expect(err).NotTo(HaveOccurred())
		Expect(reported).To(ContainElement(HaveKeyWithValue("message", "there is no Ingress, because the older Ingress a-rest/data of InferenceService data has the host data-a-rest."+
			hostDomain+": recreate one of the two resources under another name or in another namespace")))
		env.ExpectAbsent(ctx, ingress(team, "data-a-https"))
		hosts, _, err := unstructured.NestedStringSlice(m.Object, "status", "hosts")
		Expect(err).NotTo(HaveOccurred())
		Expect(hosts).NotTo(Or(BeEmpty(), ContainElement(ContainSubstring(hostDomain))))

		for _, served := range []*unstructured.Unstructured{earlier, m} {
			env.WaitForCondition(ctx, served, "Available", metav1.ConditionTrue, "")
		}
		env.WaitIdle(ingressManager.User, idlePeriod, specTimeout)
		env.ExpectIdle(ingressManager.User, idlePeriod)
		for published := range earlierHosts {
			Expect(env.Exists(ctx, published)).To(BeTrue(), published.Name)
		}
		ingressManager.Stop(ctx)
		manager.Restart(ctx)
	}, NodeTimeout(3*specTimeout))
})
