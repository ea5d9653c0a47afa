package all_components_test

import (
	"context"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// example is a custom resource with its expected kstatus.
type example struct {
	file      string // in config/samples
	namespace string // generated if empty
	labels    map[string]string
	change    string          // merged into the sample
	objects   []client.Object // other objects of its namespace
	want      kstatus.Status
	// reason of the condition Ready.
	reason string
}

func secret(name string, keys ...string) client.Object {
	data := map[string]string{}
	for _, key := range keys {
		data[key] = "value"
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}
}

// create creates the example and its other objects, and deletes them at the end of the spec.
func (e example) create(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	object := framework.Sample(e.file)
	for _, document := range strings.Split(e.change, "\n---\n") {
		var change map[string]any
		Expect(yaml.Unmarshal([]byte(document), &change)).To(Succeed())
		merge(object.Object, change)
	}
	namespace := e.namespace
	if namespace == "" {
		namespace = component{labels: e.labels}.namespace(ctx, "ready")
	}
	for _, o := range e.objects {
		o.SetNamespace(namespace)
		createAndCleanUp(ctx, o)
	}
	mapping, err := env.Admin.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	Expect(err).NotTo(HaveOccurred())
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(namespace)
		if object.GetKind() == "ModelRegistry" {
			object.SetName(namespace) // its name is unique in the cluster
		}
	}
	createAndCleanUp(ctx, object)
	return object
}

func createAndCleanUp(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground)))).To(Succeed())
		env.WaitDeleted(ctx, o)
	}, NodeTimeout(specTimeout))
}

func merge(target, change map[string]any) {
	for key, value := range change {
		nested, isMap := value.(map[string]any)
		existing, wasMap := target[key].(map[string]any)
		switch {
		case value == nil:
			delete(target, key)
		case isMap && wasMap:
			merge(existing, nested)
		default:
			target[key] = value
		}
	}
}

// expectKStatus waits until the object has the expected kstatus, and checks that it is unchanged in the steady state.
func (e example) expectKStatus(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	want := string(e.want) + " " + e.reason
	Eventually(env.KStatus).WithContext(ctx).WithArguments(object).WithTimeout(waitTimeout).Should(Equal(want))
	env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	Expect(env.KStatus(ctx, object)).To(Equal(want), "in the steady state")
}

const badImage = "testcluster.invalid/image-pull:1"

// Flux and helm --wait use kstatus to detect the end of a rollout.
var _ = Describe("Tools based on kstatus", func() {
	DescribeTable("derive Current, InProgress and Failed from the conditions", func(ctx SpecContext, e example) {
		e.expectKStatus(ctx, e.create(ctx))
	},
		Entry("a registry", example{file: "modelregistry_generated.yaml", want: kstatus.CurrentStatus, reason: "DeploymentAvailable"}, SpecTimeout(specTimeout)),
		Entry("a registry with a proxy", example{file: "modelregistry_proxy.yaml", want: kstatus.CurrentStatus, reason: "DeploymentAvailable"}, SpecTimeout(specTimeout)),
		Entry("a registry without its password", example{file: "modelregistry_postgres.yaml", want: kstatus.InProgressStatus, reason: "ReferencesMissing"}, SpecTimeout(specTimeout)),
		Entry("a registry whose image cannot be pulled", example{file: "modelregistry_generated.yaml", change: `spec: {rest: {image: "` + badImage + `"}}`,
			want: kstatus.InProgressStatus, reason: "DeploymentUnavailable"}, SpecTimeout(specTimeout)),
		Entry("a catalog", example{file: "aihub_catalog.yaml", want: kstatus.CurrentStatus, reason: "DeploymentAvailable"}, SpecTimeout(specTimeout)),
		Entry("a workload", example{file: "appwrapper_deployment.yaml", change: `metadata: {labels: null}`, want: kstatus.CurrentStatus, reason: "SufficientPodsReady"}, SpecTimeout(specTimeout)),
		Entry("a suspended workload", example{file: "appwrapper_job.yaml", change: `{metadata: {labels: null}, spec: {suspend: true}}`,
			want: kstatus.InProgressStatus, reason: "Suspended"}, SpecTimeout(specTimeout)),
		Entry("a workload whose pods fail", example{file: "appwrapper_pod.yaml", want: kstatus.FailedStatus, reason: "Failed", change: `
metadata:
  labels: null
  annotations:
    workload.codeflare.dev.appwrapper/failureGracePeriodDuration: 1s
    workload.codeflare.dev.appwrapper/retryLimit: "0"
spec:
  components:
  - template: {apiVersion: v1, kind: Pod, metadata: {name: sample-pod}, spec: {restartPolicy: Never, containers: [{name: main, image: "testcluster.invalid/failed:1"}]}}
`}, SpecTimeout(specTimeout)),
		Entry("a model in a namespace without ModelMesh", example{file: "modelmesh_predictor.yaml", want: kstatus.InProgressStatus, reason: "RuntimeUnhealthy"}, SpecTimeout(specTimeout)),
		Entry("a model with a contradictory spec", example{file: "modelmesh_predictor.yaml", change: `spec: {path: sklearn/other.joblib}`,
			labels: map[string]string{"modelmesh-enabled": "true"}, want: kstatus.FailedStatus, reason: "InvalidPredictorSpec"}, SpecTimeout(specTimeout)),
		Entry("an MLflowConfig without its Secret", example{file: "mlflowconfig.yaml", want: kstatus.InProgressStatus, reason: "ReferencesMissing"}, SpecTimeout(specTimeout)),
		Entry("an MLflowConfig", example{file: "mlflowconfig.yaml", objects: []client.Object{secret("mlflow-artifact-connection", "AWS_S3_BUCKET")},
			want: kstatus.CurrentStatus, reason: "ReferencesFound"}, SpecTimeout(specTimeout)),
		Entry("an MLflow", example{file: "mlflow_minimal.yaml", namespace: operatorNamespace, want: kstatus.CurrentStatus, reason: "DeploymentReady"}, SpecTimeout(specTimeout)),
		Entry("an MLflow without its Secrets", example{file: "mlflow_remote.yaml", namespace: operatorNamespace, want: kstatus.InProgressStatus, reason: "ReferencesMissing"}, SpecTimeout(specTimeout)),
		Entry("an MLflow without its CA bundle", example{file: "mlflow_minimal.yaml", namespace: operatorNamespace, change: `spec: {caBundleConfigMap: {name: none}}`,
			want: kstatus.InProgressStatus, reason: "CABundleConfigMapError"}, SpecTimeout(specTimeout)),
		Entry("an MLflow whose image cannot be pulled", example{file: "mlflow_minimal.yaml", namespace: operatorNamespace, change: `spec: {image: {image: "` + badImage + `"}}`,
			want: kstatus.InProgressStatus, reason: "MigrationRunning"}, SpecTimeout(specTimeout)),
	)

	It("do not report a server as Current while its rollout fails", func(ctx SpecContext) {
		healthy := example{file: "modelregistry_generated.yaml", want: kstatus.CurrentStatus, reason: "DeploymentAvailable"}
		registry := healthy.create(ctx)
		healthy.expectKStatus(ctx, registry)
		patch := func(image any) {
			env.Patch(ctx, registry.DeepCopy(), map[string]any{"spec": map[string]any{"rest": map[string]any{"image": image}}})
		}
		patch(badImage)
		example{want: kstatus.InProgressStatus, reason: "RolloutInProgress"}.expectKStatus(ctx, registry)
		patch(nil)
		healthy.expectKStatus(ctx, registry)
	}, SpecTimeout(specTimeout))

	It("find all kinds of this operator by the category odh", func() {
		discoveryClient, err := discovery.NewDiscoveryClientForConfig(env.Config)
		Expect(err).NotTo(HaveOccurred())
		_, lists, err := discoveryClient.ServerGroupsAndResources()
		Expect(err).NotTo(HaveOccurred())
		var kinds []string
		for _, list := range lists {
			for _, r := range list.APIResources {
				for _, category := range r.Categories {
					if category == "odh" {
						kinds = append(kinds, r.Kind)
					}
				}
			}
		}
		Expect(kinds).To(ConsistOf("MLflow", "MLflowConfig", "ModelRegistry", "ModelRegistry", "Catalog", "Predictor", "AppWrapper", "AIHub", "MLflowOperator"))
	})
})
