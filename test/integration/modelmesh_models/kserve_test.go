package modelmesh_models_test

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// deploymentNames returns the names of the Deployments in a namespace.
func deploymentNames(ctx SpecContext, g Gomega, namespace string) []string {
	var list appsv1.DeploymentList
	g.Expect(env.Admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	var names []string
	for _, deployment := range list.Items {
		names = append(names, deployment.Name)
	}
	slices.Sort(names)
	return names
}

var _ = Describe("InferenceServices next to the controller of KServe", Serial, Label("nightly"), func() {
	It("are served by the controller that their deployment mode selects", func(ctx SpecContext) {
		process, err := peers.StartKServe(ctx, env.Instance, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			framework.ReportLog(process)
			Expect(process.Stop(ctx)).To(Succeed())
		})
		kserve := operator.User(types.NamespacedName{Namespace: "kserve", Name: "kserve-controller-manager"})
		ns := createNamespace(ctx, "kserve")
		create(ctx, ns, newRuntime("many", "sklearn:1"))
		single := &v1alpha1.ServingRuntime{}
		single.Name = "one"
		unmarshal(&single.Spec, `{containers: [{name: kserve-container, image: 'registry.example.com/one:1'}], supportedModelFormats: [{name: custom, version: "1", autoSelect: true}]}`)
		create(ctx, ns, single)
		meshed := createInferenceService(ctx, ns, "meshed", `{model: {modelFormat: {name: sklearn}, storageUri: 's3://bucket/meshed'}}`)
		raw := framework.Manifest(`{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: raw, namespace: %s,
			annotations: {serving.kserve.io/deploymentMode: Standard}}, spec: {predictor: {model: {runtime: one, modelFormat: {name: custom}}}}}`, ns)
		create(ctx, ns, raw)

		By("serving both")
		waitReady(ctx, meshed)
		env.WaitFor(ctx, raw, func(g Gomega) {
			conditions, _, _ := unstructured.NestedSlice(raw.Object, "status", "conditions")
			g.Expect(conditions).To(ContainElement(And(HaveKeyWithValue("type", "PredictorReady"), HaveKeyWithValue("status", "True"))))
		})
		Eventually(func(g Gomega) {
			g.Expect(deploymentNames(ctx, g, ns)).To(Equal([]string{"modelmesh-serving-many", "raw-predictor"}))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.WaitNoRequests(ctx, env.RequestsIn(kserve, ns), idlePeriod, waitTimeout)

		By("checking which controller wrote which object")
		written := env.Since(0).Where(func(e framework.Entry) bool { return e.Namespace == ns && e.Resource == "inferenceservices" }).Writes()
		Expect(written.ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Name == "raw" })).To(BeEmpty())
		Expect(written.ByUser(kserve).Where(func(e framework.Entry) bool { return e.Name == "meshed" && e.Subresource != "status" })).To(BeEmpty())
		Expect(meshed.Finalizers).To(BeEmpty())
		Expect(raw.GetFinalizers()).To(ConsistOf("inferenceservice.finalizers"))

		By("restarting the manager, which keeps the status")
		env.Get(ctx, meshed)
		version := meshed.ResourceVersion
		manager.Restart(ctx)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, meshed)
		Expect(meshed.ResourceVersion).To(Equal(version))
		env.Delete(ctx, meshed, raw)
		env.WaitDeleted(ctx, meshed, raw)
	}, NodeTimeout(framework.StartTimeout)) // includes building KServe
})
