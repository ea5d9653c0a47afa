package olm_test

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controller "github.com/odh-platform/odh-platform-operator/controllers/olm"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func serviceMonitor() *unstructured.Unstructured {
	return framework.Unstructured(capability.ServiceMonitor, namespace, "odh-platform-operator-metrics")
}

func prometheusRule() *unstructured.Unstructured {
	return framework.Unstructured(capability.PrometheusRule, namespace, "odh-platform-operator")
}

func consoleSample(name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.ConsoleYAMLSample, "", "odh-platform-operator-"+name)
}

// listSamples returns the names of the examples that the manager created. It returns an error until their API is served.
func listSamples(ctx context.Context) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(capability.ConsoleYAMLSample.GroupVersion().WithKind("ConsoleYAMLSampleList"))
	if err := env.Admin.List(ctx, list, client.MatchingLabels(names.Labels(controller.ComponentName))); err != nil {
		return nil, err
	}
	var sampleNames []string
	for i := range list.Items {
		sampleNames = append(sampleNames, list.Items[i].Name)
	}
	return sampleNames, nil
}

var _ = Describe("The objects that a bundle cannot contain", Ordered, func() {
	It("are not created on a cluster without the APIs of monitoring and the console", expectNoObjects, NodeTimeout(specTimeout))
	It("include examples when the API of the console is served, and are repaired", expectSamples, NodeTimeout(specTimeout))
	It("include monitors when their APIs are served, but a foreign PrometheusRule is not changed", expectMonitors, NodeTimeout(specTimeout))

	It("include examples of enabled components only", func(ctx SpecContext) {
		manager.Stop(ctx)
		manager = startManager(ctx, "one-off", "ENABLE_MODELREGISTRY=false")
		Eventually(ctx, listSamples).
			Should(And(HaveLen(sampleCount-5), Not(ContainElement(ContainSubstring("modelregistry")))))

		manager.Stop(ctx)
		manager = startManager(ctx, "all-off", "ENABLE_APPWRAPPER=false", "ENABLE_MLFLOW=false", "ENABLE_MODELCATALOG=false", "ENABLE_MODELMESH=false",
			"ENABLE_MODELREGISTRY=false", "ENABLE_RAYCLUSTER=false")
		Eventually(ctx, listSamples).Should(BeEmpty())
		env.Get(ctx, serviceMonitor())
	}, NodeTimeout(specTimeout))

	// The manager stopped at the end of the previous spec.
	It("include monitors that are deleted with their owner", func(ctx SpecContext) {
		Expect(env.Admin.Delete(ctx, env.Installed.Deployment.DeepCopy())).To(Succeed())
		env.WaitDeleted(ctx, serviceMonitor(), prometheusRule())
	}, NodeTimeout(specTimeout))
})

func expectNoObjects(context.Context) {
	env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
	requests := env.Since(0).ByUser(manager.User)
	Expect(requests.Forbidden()).To(BeEmpty())
	for _, resource := range []string{"consoleyamlsamples", "servicemonitors", "prometheusrules"} {
		Expect(requests.ForResource(resource)).To(BeEmpty())
	}
}

func expectSamples(ctx SpecContext) {
	Expect(cluster.InstallCRD(ctx, env.Config, "consoleyamlsamples.console.openshift.io")).To(Succeed())
	Eventually(ctx, listSamples).Should(HaveLen(sampleCount))
	remote := consoleSample("mlflow-remote")
	env.Get(ctx, remote)
	Expect(remote.GetOwnerReferences()).To(ConsistOf(HaveField("Kind", "CustomResourceDefinition")))
	text, err := os.ReadFile("../../../config/samples/mlflow_remote.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(remote.Object["spec"]).To(And(
		HaveKeyWithValue("title", "MLflow: remote"), HaveKeyWithValue("yaml", string(text)), HaveKeyWithValue("description", HavePrefix("Several replicas")),
		HaveKeyWithValue("targetResource", map[string]any{"apiVersion": "mlflow.opendatahub.io/v1", "kind": "MLflow"})))

	env.Patch(ctx, remote, map[string]any{"spec": map[string]any{"title": "another"}})
	env.WaitFor(ctx, remote, func(g Gomega) { g.Expect(remote.Object["spec"]).To(HaveKeyWithValue("title", "MLflow: remote")) })
	deleted := consoleSample("modelregistry-mysql")
	env.Get(ctx, deleted)
	uid := deleted.GetUID()
	Expect(env.Admin.Delete(ctx, deleted)).To(Succeed())
	Eventually(func(g Gomega) {
		recreated := consoleSample("modelregistry-mysql")
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(recreated), recreated)).To(Succeed())
		g.Expect(recreated.GetUID()).NotTo(Equal(uid))
	}).WithContext(ctx).Should(Succeed())
	env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
	env.ExpectIdle(manager.User, idlePeriod)
}

func expectMonitors(ctx SpecContext) {
	manager.Stop(ctx)
	Expect(cluster.InstallSet(ctx, env.Config, cluster.Monitoring)).To(Succeed())
	foreign := prometheusRule()
	foreign.Object["spec"] = map[string]any{"groups": []any{}}
	// The API is served shortly after its CRD is created.
	Eventually(func() error { return env.Admin.Create(ctx, foreign) }).WithContext(ctx).Should(Succeed())
	start := env.AuditPosition()
	manager.Restart(ctx)

	monitor := serviceMonitor()
	env.WaitFor(ctx, monitor, func(Gomega) {})
	Expect(monitor.GetOwnerReferences()).To(ConsistOf(HaveField("Kind", "Deployment")))
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	Expect(err).NotTo(HaveOccurred())
	const service = "odh-platform-operator-controller-manager-service"
	Expect(endpoints).To(ConsistOf(HaveKeyWithValue("tlsConfig", map[string]any{
		"ca":         map[string]any{"secret": map[string]any{"name": service + "-cert", "key": "tls.crt"}},
		"serverName": service + "." + namespace + ".svc",
	})))

	Eventually(func(g Gomega) {
		events := &corev1.EventList{}
		g.Expect(env.Admin.List(ctx, events, client.InNamespace(namespace))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", controller.ReasonNotApplied), HaveField("InvolvedObject.Name", env.Installed.Deployment.Name),
			HaveField("Message", ContainSubstring("PrometheusRule opendatahub/odh-platform-operator exists and was not created by this operator")))))
	}).WithContext(ctx).Should(Succeed())
	env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
	writes := env.Since(start).ByUser(manager.User).Writes()
	Expect(writes.ForResource("prometheusrules")).To(BeEmpty())
	Expect(writes.ForResource("consoleyamlsamples")).To(BeEmpty(), "a restart causes no write")

	Expect(env.Admin.Delete(ctx, foreign)).To(Succeed())
	manager.Restart(ctx)
	rule := prometheusRule()
	env.WaitFor(ctx, rule, func(Gomega) {})
	Expect(rule.GetOwnerReferences()).To(ConsistOf(HaveField("Kind", "Deployment")))
	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	Expect(err).NotTo(HaveOccurred())
	Expect(groups).To(HaveLen(2))
}
