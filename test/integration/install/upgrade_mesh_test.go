package install_test

import (
	"context"
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// createMesh creates a namespace with a runtime and the objects that the replaced controller created for it.
func (o *legacyCluster) createMesh(ctx context.Context, namespace string, recorded []*unstructured.Unstructured) {
	GinkgoHelper()
	ns := object("v1", "Namespace", "", namespace, nil)
	ns.SetLabels(map[string]string{"modelmesh-enabled": "true"})
	create(ctx, ns)
	owners := map[string]types.UID{namespace: ns.GetUID()}
	for _, child := range recorded {
		references := child.GetOwnerReferences()
		for i := range references {
			references[i].UID = owners[references[i].Name]
		}
		child.SetOwnerReferences(references)
		switch child.GetKind() {
		case "ServiceMonitor", "ConfigMap":
			continue // recorded in a readable form, not as stored
		case "Secret":
			child.Object["stringData"] = map[string]any{
				"etcd_connection": `{"endpoints":"http://etcd.modelmesh-serving.svc:2379","root_prefix":"modelmesh-serving/mm_ns/` + namespace + `"}`,
			}
			delete(child.Object, "data")
		case "Service":
			Expect(unstructured.SetNestedField(child.Object, "None", "spec", "clusterIP")).To(Succeed())
			unstructured.RemoveNestedField(child.Object, "spec", "clusterIPs")
		case "Deployment":
			lastApplied, err := json.Marshal(child.Object)
			Expect(err).NotTo(HaveOccurred())
			child.SetAnnotations(map[string]string{"manifestival": "new", corev1.LastAppliedConfigAnnotation: string(lastApplied)})
		}
		delete(child.Object, "status")
		create(ctx, child)
		owners[child.GetName()] = child.GetUID()
		o.originals[child.GetKind()+" "+child.GetName()] = child.DeepCopy()
	}
}

var _ = Describe("The page about the upgrade", func() {
	It("from ModelMesh Serving has commands that work", func(ctx SpecContext) {
		const runtime = "Deployment modelmesh-serving-mlserver-1.x"
		o := prepareLegacyCluster(ctx, "openshift")
		o.createMesh(ctx, "models", framework.Recording(controllers+"modelmesh/resources/testdata/recordings/custom-runtime-unix-sockets.yaml",
			"audio", "models", "own-server", "mlserver-1.x", // with the images of params.env of both operators
			"kserve/rest-proxy:latest", "quay.io/opendatahub/rest-proxy:odh-v2.32", "kserve/modelmesh-runtime-adapter:latest",
			"quay.io/opendatahub/modelmesh-runtime-adapter:odh-v2.32", "kserve/modelmesh:latest", "quay.io/opendatahub/modelmesh:odh-v2.32",
			"imagePullPolicy: Always", "imagePullPolicy: IfNotPresent"))
		create(ctx, object("serving.kserve.io/v1alpha1", "Predictor", "models", "speech", map[string]any{
			"spec": map[string]any{"modelType": map[string]any{"name": "own-format"}, "path": "speech", "storage": map[string]any{"s3": map[string]any{"secretKey": "any"}}},
		}))
		o.createOperator(ctx, "modelmesh.yaml")
		o.afterDeploy = func(ctx context.Context) { // before the page restarts the pods
			o.waitAdopted(ctx, "modelmesh", runtime, "spec", "template")
			o.waitAdopted(ctx, "modelmesh", "Service modelmesh-serving", "spec", "clusterIP")
			o.waitAdopted(ctx, "modelmesh", "Secret model-serving-etcd", "data")
		}

		r := o.runPage(ctx, "modelmesh.md")

		Expect(os.ReadFile(r.Saved["models-before.yaml"])).To(And(ContainSubstring("name: mlserver-1.x"), ContainSubstring("name: speech")))
		Expect(os.ReadFile(r.Saved["settings-before.yaml"])).To(And(ContainSubstring("podsPerRuntime"), ContainSubstring("etcd_connection")))
		o.waitAdopted(ctx, "modelmesh", runtime, "spec", "selector")
		Eventually(func() string { return yamlOf(o.getPreserved(ctx, runtime), "spec", "template") }).WithContext(ctx).
			Should(ContainSubstring("allowPrivilegeEscalation: false"), "the page must roll out the new pod template")
		o.getPreserved(ctx, "ServingRuntime mlserver-1.x")
		o.waitOperatorDeleted(ctx, "modelmesh.yaml", "Namespace modelmesh-serving", "Secret model-serving-etcd", "ConfigMap model-serving-config",
			"ValidatingWebhookConfiguration modelmesh-servingruntime.serving.kserve.io")
	}, SpecTimeout(specTimeout))
})
