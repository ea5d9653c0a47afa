package modelmesh_admission_test

import (
	"bytes"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster/kserve"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("Predictors", func() {
	It("get a status when they are created, and keep their spec unchanged", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "predictors")
		predictor := &v1alpha1.Predictor{Spec: v1alpha1.PredictorSpec{
			ModelType: v1alpha1.ModelType{Name: "sklearn", Version: new("")},
			Storage:   &v1alpha1.Storage{Path: new(""), Parameters: map[string]string{}},
		}}
		predictor.Namespace, predictor.Name = namespace, "digits"
		spec := predictor.Spec.DeepCopy()
		Expect(env.Admin.Create(ctx, predictor)).To(Succeed())
		Expect(predictor.Spec).To(Equal(*spec))
		Expect(predictor.Status).To(Equal(v1alpha1.PredictorStatus{TransitionStatus: v1alpha1.UpToDate, ActiveModelState: v1alpha1.Pending}))
		predictor.Status = v1alpha1.PredictorStatus{
			TransitionStatus: v1alpha1.InProgress, ActiveModelState: v1alpha1.Loaded, TargetModelState: v1alpha1.Loading, Available: true, TotalCopies: 2,
			LastFailureInfo: &v1alpha1.FailureInfo{Reason: v1alpha1.ModelLoadFailed, ModelID: "digits__ksp-0123456789"},
		}
		want := predictor.Status.DeepCopy()
		Expect(env.Admin.Status().Update(ctx, predictor)).To(Succeed())
		env.Get(ctx, predictor)
		Expect(predictor.Status).To(Equal(*want))
		Expect(predictor.Spec).To(Equal(*spec))
	}, NodeTimeout(specTimeout))

	DescribeTable("are validated by the schema of their CRD", func(ctx SpecContext, text, message string) {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte("{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: p, namespace: default}"+text+"}"), &o.Object)).To(Succeed())
		err := env.Admin.Create(ctx, o, client.DryRunAll)
		if message == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no spec", "", ""),
		Entry("an empty spec", ", spec: {}", "spec.modelType: Required value"),
		Entry("a model type without a name", ", spec: {modelType: {version: '1'}}", "spec.modelType.name: Required value"),
		Entry("a known gpu value", ", spec: {modelType: {name: a}, gpu: preferred}", ""),
		Entry("an unknown gpu value", ", spec: {modelType: {name: a}, gpu: many}", "spec.gpu: Unsupported value"),
		Entry("a runtime without a name", ", spec: {modelType: {name: a}, runtime: {}}", "spec.runtime.name: Required value"),
		Entry("an empty runtime name", ", spec: {modelType: {name: a}, runtime: {name: ''}}", ""),
		Entry("an S3 bucket without a secretKey", ", spec: {modelType: {name: a}, storage: {s3: {bucket: b}}}", "spec.storage.s3.secretKey: Required value"),
		Entry("a claim without a name", ", spec: {modelType: {name: a}, storage: {persistentVolumeClaim: {}}}", "claimName: Required value"),
		Entry("contradictory forms of storage, which the status reports", ", spec: {modelType: {name: a}, path: p, storage: {path: p, s3: {secretKey: k}, persistentVolumeClaim: {claimName: c}}}", ""),
		Entry("an unknown protocol", ", spec: {modelType: {name: a}, protocolVersion: v99}", ""),
	)
})

var _ = Describe("The manifests of ModelMesh", func() {
	DescribeTable("are accepted without a warning", func(ctx SpecContext, read manifestReader, count int) {
		namespace := env.Namespace(ctx, "shipped")
		objects, err := read(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(count))
		strict, warnings := env.WithWarnings()
		strict = client.WithFieldValidation(strict, "Strict")
		for _, o := range objects {
			if o.GetKind() != clusterWide {
				o.SetNamespace(namespace)
			}
			Expect(strict.Create(ctx, o, client.DryRunAll)).To(Succeed(), "%v", o.Object)
			Expect(warnings.Texts).To(BeEmpty(), "%s %s", o.GetKind(), o.GetName())
		}
	},
		Entry("samples of the legacy controller", fromFile("testdata/legacy_samples.yaml"), 10),
		Entry("a Predictor", fromSample("predictor"), 1),
		Entry("a Predictor for one runtime", fromSample("predictor_pinned"), 1),
		Entry("a Predictor on a claim [M42]", fromSample("predictor_claim"), 1),
		Entry("a Predictor of each format", fromSample("predictors"), 8),
		Entry("an InferenceService", fromSample("inferenceservice"), 1),
		Entry("an InferenceService with a framework field", fromSample("inferenceservice_framework"), 1),
		Entry("an InferenceService of each format", fromSample("inferenceservices"), 8),
		Entry("a runtime with the ModelMesh protocol", fromSample("runtime_custom"), 1),
		Entry("a runtime without a puller", fromSample("runtime_pullerless"), 1),
		Entry("ClusterServingRuntimes", fromKustomize("config/runtimes"), 4),
		Entry("current ClusterServingRuntimes", fromKustomize("config/current-runtimes"), 3),
		Entry("ServingRuntimes", fromKustomize("config/namespace-runtimes"), 4),
		Entry("the runtimes of the Open Data Hub", fromKustomize("config/odh-runtimes"), 4),
	)
})

var _ = Describe("CRDs of KServe", func() {
	It("are not written again if the API server stores them already", func(ctx SpecContext) {
		crds, err := kserve.Definitions(ctx, false)
		Expect(err).NotTo(HaveOccurred())
		api, err := apiextensions.NewForConfig(env.Config)
		Expect(err).NotTo(HaveOccurred())
		var out bytes.Buffer
		start := env.AuditPosition()
		Expect(kserve.Install(ctx, api.CustomResourceDefinitions(), crds, &out)).To(Succeed())
		Expect(strings.Count(out.String(), ": unchanged\n")).To(Equal(3), "%s", out.String())
		Expect(env.Since(start).ForResource("customresourcedefinitions").Writes()).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})

type manifestReader func(SpecContext) ([]*unstructured.Unstructured, error)

func fromFile(path string) manifestReader {
	return func(SpecContext) ([]*unstructured.Unstructured, error) { return framework.ReadObjects(path) }
}

func fromSample(name string) manifestReader {
	return fromFile("../../../config/samples/modelmesh_" + name + ".yaml")
}

func fromKustomize(dir string) manifestReader {
	return func(ctx SpecContext) ([]*unstructured.Unstructured, error) { return operator.Kustomize(dir) }
}
