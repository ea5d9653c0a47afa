package abuse_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	predictorEditor = "editor-of-modelmesh-predictor"
	serviceEditor   = "editor-of-modelmesh-inferenceservice"
)

func predictor(name, spec string) string {
	return "apiVersion: serving.kserve.io/v1alpha1\nkind: Predictor\nmetadata: {name: " + name + "}\nspec:\n" + mergeSpec("{modelType: {name: sklearn}}", spec)
}

// inferenceService returns an InferenceService in ModelMesh mode.
func inferenceService(name, predictor string) string {
	return "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: " + name +
		", annotations: {serving.kserve.io/deploymentMode: ModelMesh}}\nspec:\n" + mergeSpec("{}", "{predictor: "+predictor+"}")
}

// failure returns the reason and message of lastFailureInfo in the status.
func failure(ctx context.Context, o *unstructured.Unstructured) string {
	GinkgoHelper()
	live := o.DeepCopy()
	env.Get(ctx, live)
	path := []string{"status", "lastFailureInfo"}
	if o.GetKind() == "InferenceService" {
		path = []string{"status", "modelStatus", "lastFailureInfo"}
	}
	info, _, err := unstructured.NestedMap(live.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprint(info["reason"], ": ", info["message"])
}

// expectFailures creates all attempts, then waits until the status of each reports its failure, because no webhook validates models.
func expectFailures(ctx context.Context, user string, attempts map[string]string, build func(name, spec string) string) {
	GinkgoHelper()
	stored := map[string]*unstructured.Unstructured{}
	for spec := range attempts {
		o := object(team, build(fmt.Sprintf("attempt-%d", len(stored)), spec))
		Expect(as(user).Create(ctx, o)).To(Succeed(), spec)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(as(user).Delete(ctx, o))).To(Succeed()) }, NodeTimeout(specTimeout))
		stored[spec] = o
	}
	for spec, message := range attempts {
		Eventually(failure).WithContext(ctx).WithArguments(stored[spec]).WithTimeout(waitTimeout).WithPolling(poll).
			Should(And(HavePrefix("InvalidPredictorSpec: "), ContainSubstring(message)), spec)
	}
}

const outsideStorage = "points outside the storage: remove every '..'"

var _ = Describe("An editor of Predictors without other permissions", func() {
	It("cannot read outside the storage, nor use objects that a Predictor is not allowed to reference", func(ctx SpecContext) {
		expectFailures(ctx, predictorEditor, map[string]string{
			"{storage: {key: s3, path: ../../../var/run/secrets/kubernetes.io/serviceaccount/token}}": "spec.storage.path",
			"{storage: {key: s3, path: a/../../other-model/weights}}":                                 outsideStorage,
			"{path: ../other-model, storage: {key: s3}}":                                              outsideStorage,
			"{storage: {key: s3, path: .., parameters: {bucket: b}}}":                                 outsideStorage,
			"{storage: {key: s3, path: m, schemaPath: ../../etc/passwd}}":                             "spec.storage.schemaPath",
			"{path: m, schemaPath: ../s, storage: {key: s3}}":                                         "spec.schemaPath",
			"{storage: {key: ../etcd/etcd_connection, path: m}}":                                      "spec.storage.key",
			"{path: m, storage: {s3: {secretKey: ../../etcd/etcd_connection}}}":                       "spec.storage.s3.secretKey",
			"{storage: {path: m, parameters: {type: pvc, name: ../..}}}":                              "spec.storage.parameters[name]",
			"{storage: {key: s3, path: m, parameters: {name: a/../../b}}}":                            "spec.storage.parameters[name]",
			"{storage: {path: m, persistentVolumeClaim: {claimName: others}}}":                        "spec.storage.PersistentVolumeClaim is not supported",
			"{storage: {path: m, s3: {secretKey: s3}}}":                                               "spec.storage.s3 cannot be specified",
			"{path: m, storage: {path: o}}":                                                           "Only one of spec.path and spec.storage.path",
		}, predictor)
	}, NodeTimeout(specTimeout))

	It("cannot set the status of a Predictor when creating or updating it", func(ctx SpecContext) {
		p := object(team, predictor("forged-status", "{storage: {path: ..}}"))
		Expect(unstructured.SetNestedMap(p.Object, map[string]any{
			"available": true, "activeModelState": "Loaded", "transitionStatus": "UpToDate", "grpcEndpoint": "grpc://evil.example.com:1",
		}, "status")).To(Succeed())
		Expect(as(predictorEditor).Create(ctx, p)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(as(predictorEditor).Delete(ctx, p)).To(Succeed()) }, NodeTimeout(specTimeout))
		status, _, err := unstructured.NestedMap(p.Object, "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(And(HaveKeyWithValue("available", false), Not(HaveKey("grpcEndpoint"))))
		forgedStatus := merge(`{"status":{"available":true,"grpcEndpoint":"grpc://evil.example.com:1"}}`)
		Expect(as(predictorEditor).Patch(ctx, p, forgedStatus)).To(Succeed())
		Expect(fmt.Sprint(p.Object["status"])).NotTo(ContainSubstring("evil"))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of InferenceServices without other permissions", func() {
	It("cannot read outside the storage, nor use an unsupported storageUri scheme", func(ctx SpecContext) {
		in := func(storage string) string { return "{model: {modelFormat: {name: sklearn}, " + storage + "}}" }
		expectFailures(ctx, serviceEditor, map[string]string{
			in("storageUri: 's3://bucket/../../other'"):                                                          outsideStorage,
			in("storageUri: 'pvc://../etc/passwd'"):                                                              "spec.storage.parameters[name]",
			in("storageUri: 'pvc://others/../../token'"):                                                         outsideStorage,
			in("storageUri: 'https://example.com/a/%2e%2e/%2e%2e/b'"):                                            outsideStorage,
			in("storageUri: 'file:///var/run/secrets/kubernetes.io/serviceaccount/token'"):                       "unsupported storageUri scheme",
			in("storageUri: 'hostpath:///etc/shadow'"):                                                           "unsupported storageUri scheme",
			in("storageUri: 'oci://evil.example.com/image'"):                                                     "unsupported storageUri scheme",
			in("storageUri: /var/run/secrets"):                                                                   "unsupported storageUri scheme",
			in("storage: {key: ../etcd/etcd_connection, path: m}"):                                               "spec.storage.key",
			in("storage: {key: s3, path: ../../token}"):                                                          "spec.storage.path",
			in("storage: {key: s3, path: m, schemaPath: ../../token}"):                                           "spec.storage.schemaPath",
			in("storage: {key: s3, path: m, parameters: {name: ../..}}"):                                         "spec.storage.parameters[name]",
			in("storageUri: 's3://a/b', storage: {path: c}"):                                                     "has both storageUri",
			"{sklearn: {storageUri: 'pvc://../m'}}":                                                              "spec.storage.parameters[name]",
			"{model: {modelFormat: {name: sklearn}, storageUri: 's3://a/b'}, sklearn: {storageUri: 's3://a/b'}}": "cannot have both the model spec and a framework",
		}, inferenceService)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("An editor of MLflow", func() {
	for title, attempt := range map[string]struct{ name, spec, message string }{
		"the Secret of another user":       {"mlflow", "{artifactRootSecret: other-credentials}", "artifactRootSecret must be 'mlflow-artifact-connection'"},
		"a path outside the artifact root": {"mlflow", "{artifactRootSecret: mlflow-artifact-connection, artifactRootPath: a/../../other}", "artifactRootPath must not contain '..'"},
		"an absolute path":                 {"mlflow", "{artifactRootSecret: mlflow-artifact-connection, artifactRootPath: /other}", "artifactRootPath must be relative"},
		"a name other than mlflow":         {"other", "{artifactRootSecret: mlflow-artifact-connection}", "MLflowConfig resource name must be 'mlflow'"},
		"a path of 513 characters":         {"mlflow", "{artifactRootSecret: mlflow-artifact-connection, artifactRootPath: " + longText(513) + "}", "Too long"},
	} {
		It("is denied "+title+" in an MLflowConfig", expectRejected(mlflowEditor, metav1.NamespaceDefault,
			"{apiVersion: mlflow.kubeflow.org/v1, kind: MLflowConfig, metadata: {name: "+attempt.name+"}, spec: "+attempt.spec+"}", attempt.message),
			NodeTimeout(specTimeout))
	}
})

var _ = Describe("An object with thousands of invalid references", func() {
	It("causes fewer than 200 requests of the manager", func(ctx SpecContext) {
		var unknown, references []string
		for i := range 2000 {
			unknown = append(unknown, fmt.Sprintf("{apiVersion: g%d.example.com/v1, kind: K%d, metadata: {name: x}}", i, i))
			references = append(references, fmt.Sprintf("{secretRef: {name: s-%d}}", i))
		}
		from := "envFrom: [" + strings.Join(references, ", ") + "]"
		for user, o := range map[string]*unstructured.Unstructured{
			wrapperEditor: object(team, wrapper(unknown...)),
			runtimeEditor: object(team, runtime("attempt", "{containers: [{name: server, image: i, "+from+"}]}")),
			mlflowEditor:  object("", mlflow("{"+from+"}")),
		} {
			start := env.AuditPosition()
			err := as(user).Create(ctx, o, client.DryRunAll)
			Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(BeTrue(), "%.500v", err)
			Expect(len(err.Error())).To(BeNumerically("<", 32<<10))
			Expect(len(env.Since(start).ByUser(manager.User).WithoutLeases())).To(BeNumerically("<", 200), user)
		}
	}, NodeTimeout(specTimeout))
})

// ModelMesh passes the spec of a model to its runtime. No field of a pod depends on that spec.
var _ = Describe("Editors of models", func() {
	It("cannot change pods, ServiceAccounts, Secrets and Services", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "served")
		env.SetLabel(ctx, framework.NamespaceNamed(namespace), "modelmesh-enabled", "true")
		bind(ctx, namespace, predictorEditor, "modelmesh-predictor-editor-role")
		bind(ctx, namespace, serviceEditor, "modelmesh-inferenceservice-editor-role")
		Expect(env.Admin.Create(ctx, object(namespace, claim("others")))).To(Succeed())
		Expect(env.Admin.Create(ctx, object(namespace, runtime("shared", "{replicas: 1, supportedModelFormats: [{name: sklearn, autoSelect: true}]}")))).To(Succeed())
		Expect(as(predictorEditor).Create(ctx, object(namespace, predictor("valid", "{storage: {key: s3, path: m}}")))).To(Succeed())
		server := client.ObjectKey{Namespace: namespace, Name: "modelmesh-serving-shared"}
		Eventually(func(g Gomega) {
			d := &appsv1.Deployment{}
			g.Expect(env.Admin.Get(ctx, server, d)).To(Succeed())
			g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)

		start := env.AuditPosition()
		for i, spec := range []string{
			"{storage: {path: m, parameters: {type: pvc, name: others}}}",
			"{storage: {path: m, parameters: {type: http, url: 'http://169.254.169.254/latest/meta-data'}}}",
			"{storage: {key: s3, path: m, parameters: {endpoint_url: 'https://kubernetes.default.svc'}}}",
			"{storage: {key: model-serving-etcd, path: etcd_connection}}",
			"{serviceAccountName: " + managerAccount + ", storage: {key: s3, path: m}}",
			"{gpu: required, storage: {key: s3, path: m}}",
			"{runtime: {name: " + team + "/shared}, storage: {key: s3, path: m}}",
			"{modelType: {name: 'sklearn|rt:other', version: '1|rt:other'}, storage: {key: s3, path: m}}",
			"{protocolVersion: 'v2|rt:other', storage: {key: s3, path: m}}",
			"{storage: {key: s3, path: " + longText(100<<10) + "}}",
			"{containers: [{name: c, image: quay.io/evil/image}], volumes: [{name: v, hostPath: {path: /}}], storage: {key: s3, path: m}}",
		} {
			p := object(namespace, predictor(fmt.Sprintf("attempt-%d", i), spec))
			p.SetLabels(map[string]string{"platform.opendatahub.io/operator": "odh-platform-operator", "modelmesh-service": "modelmesh-serving"})
			p.SetAnnotations(map[string]string{"enable-route": "true", "modelmesh.opendatahub.io/original-template": "x"})
			p.SetFinalizers([]string{"example.com/never"})
			Expect(as(predictorEditor).Create(ctx, p)).To(Succeed(), spec)
			DeferCleanup(func(ctx SpecContext) {
				Expect(env.Admin.Patch(ctx, p, merge(`{"metadata":{"finalizers":null}}`))).To(Succeed())
			}, NodeTimeout(specTimeout))
		}
		for i, spec := range []string{
			"{model: {modelFormat: {name: sklearn}, storageUri: 'pvc://others/m'}}",
			"{model: {modelFormat: {name: sklearn}, storageUri: 'http://169.254.169.254/latest'}}",
			"{model: {modelFormat: {name: sklearn}, storageUri: 's3://a/b', image: quay.io/evil/image, command: [sh], env: [{name: LD_PRELOAD, value: x}]}}",
			"{serviceAccountName: " + managerAccount + ", hostNetwork: true, model: {modelFormat: {name: sklearn}, storageUri: 's3://a/b'}}",
			"{containers: [{name: kserve-container, image: quay.io/evil/image}], model: {modelFormat: {name: sklearn}, storageUri: 's3://a/b'}}",
			"{imagePullSecrets: [{name: other-credentials}], model: {modelFormat: {name: sklearn}, runtime: shared, storageUri: 's3://a/b'}}",
			"{volumes: [{name: v, secret: {secretName: model-serving-etcd}}], minReplicas: 100, model: {modelFormat: {name: sklearn}, storageUri: 's3://a/b'}}",
		} {
			Expect(as(serviceEditor).Create(ctx, object(namespace, inferenceService(fmt.Sprintf("service-%d", i), spec)))).To(Succeed(), spec)
		}
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		writes := env.Since(start).ObjectWrites(manager.User)
		Expect(writes.Where(func(e framework.Entry) bool {
			return e.Namespace == namespace && (e.Subresource != "status" || e.Resource != "predictors" && e.Resource != "inferenceservices")
		})).To(BeEmpty(), "a model must change nothing but its status")
	}, NodeTimeout(specTimeout))

	It("cannot write the status, nor store objects that are too large", func(ctx SpecContext) {
		for user, o := range map[string]*unstructured.Unstructured{
			predictorEditor: object(team, predictor("small", "{}")), serviceEditor: object(team, inferenceService("small", "{sklearn: {storageUri: 's3://a/b'}}")),
		} {
			Expect(as(user).Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(as(user).Delete(ctx, o)).To(Succeed()) }, NodeTimeout(specTimeout))
			Expect(apierrors.IsForbidden(as(user).Status().Patch(ctx, o.DeepCopy(), merge(`{"status":{"observedGeneration":7}}`)))).To(BeTrue())
			Expect(as(user).Patch(ctx, o.DeepCopy(), merge(`{"metadata":{"annotations":{"a":"`+longText(300<<10)+`"}}}`))).NotTo(Succeed())
		}
	}, NodeTimeout(specTimeout))
})
