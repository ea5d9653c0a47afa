package modelmesh_openshift_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func settingsConfigMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(operatorNamespace, "model-serving-config"), Data: map[string]string{"config.yaml": text}}
}

// createRuntime creates a runtime as the dashboard does. Its node selector matches no node. The pairs are keys and values of annotations.
func createRuntime(ctx context.Context, namespace string, pairs ...string) *v1alpha1.ServingRuntime {
	GinkgoHelper()
	runtime := &v1alpha1.ServingRuntime{ObjectMeta: objectMeta(namespace, "ovms"), Spec: v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"), ProtocolVersions: []string{"grpc-v1"},
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "onnx", Version: new("1"), AutoSelect: new(true)}},
		BuiltInAdapter:        &v1alpha1.BuiltInAdapter{ServerType: "ovms", RuntimeManagementPort: 8888},
		Containers:            []corev1.Container{{Name: "ovms", Image: "registry.example.com/ovms:1"}},
		NodeSelector:          map[string]string{"example.com/none": "true"},
	}}
	runtime.Annotations = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		runtime.Annotations[pairs[i]] = pairs[i+1]
	}
	Expect(env.Admin.Create(ctx, runtime)).To(Succeed())
	return runtime
}

// runtimeNamed returns a runtime with only a namespace and a name.
func runtimeNamed(namespace, name string) *v1alpha1.ServingRuntime {
	return &v1alpha1.ServingRuntime{ObjectMeta: objectMeta(namespace, name)}
}

// patchAnnotations sets annotations of an object; a nil value removes an annotation.
func patchAnnotations(ctx context.Context, o client.Object, annotations map[string]any) {
	GinkgoHelper()
	env.Patch(ctx, o, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// createInferenceService creates an InferenceService in ModelMesh mode.
func createInferenceService(ctx context.Context, namespace, name string, finalizers ...string) *v1beta1.InferenceService {
	GinkgoHelper()
	service := &v1beta1.InferenceService{ObjectMeta: objectMeta(namespace, name), Spec: v1beta1.InferenceServiceSpec{Predictor: v1beta1.PredictorSpec{
		Model: &v1beta1.ModelSpec{
			ModelFormat:        v1beta1.ModelFormat{Name: "onnx", Version: new("1")},
			PredictorExtension: v1beta1.PredictorExtension{Storage: &v1beta1.ModelStorage{Key: new("aws"), Path: new("onnx/" + name)}},
		},
	}}}
	service.Annotations, service.Finalizers = map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh}, finalizers
	Expect(env.Admin.Create(ctx, service)).To(Succeed())
	return service
}

// createConnection creates a data connection as the dashboard does.
func createConnection(ctx context.Context, namespace, name, endpoint string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: objectMeta(namespace, name), StringData: map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_S3_ENDPOINT": endpoint, "AWS_S3_BUCKET": "models", "AWS_DEFAULT_REGION": "here",
	}}
	secret.Labels = map[string]string{openshift.LabelManaged: "true", openshift.LabelDashboard: "true"}
	secret.Annotations = map[string]string{openshift.AnnotationConnection: "s3"}
	Expect(env.Admin.Create(ctx, secret)).To(Succeed())
	return secret
}

func deploymentOf(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: objectMeta(namespace, "modelmesh-serving-ovms")}
}

func serviceOf(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: objectMeta(namespace, "modelmesh-serving")}
}

func routeOf(namespace, name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.Route, namespace, name)
}

func serviceAccountOf(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: objectMeta(namespace, authproxy.DefaultServiceAccount)}
}

func authDelegatorBinding(namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta("", namespace+"-modelmesh-serving-sa-auth-delegator")}
}

func cookieSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: objectMeta(namespace, authproxy.CookieSecret)}
}

func storageSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: objectMeta(namespace, "storage-config")}
}

func prometheusBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: objectMeta(namespace, "prometheus-ns-access")}
}

func networkPolicy(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: objectMeta(namespace, "modelmesh-runtimes")}
}

// namespaceObjects returns the objects of the sidecar, the RoleBinding of Prometheus and the NetworkPolicy of a namespace with models.
func namespaceObjects(namespace string) []client.Object {
	return []client.Object{serviceAccountOf(namespace), authDelegatorBinding(namespace), cookieSecret(namespace), prometheusBinding(namespace), networkPolicy(namespace)}
}

// waitManaged waits until objects have the component label of the operator.
func waitManaged(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		env.WaitFor(ctx, o, func(g Gomega) {
			g.Expect(o.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelmesh"), "%T %s", o, o.GetName())
		})
	}
}

// routeSpecField returns a field of a Route's spec.
func routeSpecField(r *unstructured.Unstructured, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(r.Object, append([]string{"spec"}, path...)...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// storageEntries returns the entries of a storage Secret, by name.
func storageEntries(g Gomega, s *corev1.Secret) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, text := range s.Data {
		members := map[string]string{}
		g.Expect(json.Unmarshal(text, &members)).To(Succeed())
		out[name] = members
	}
	return out
}

// requestsFor returns the writes and live reads of the manager in a namespace, and of its ClusterRoleBinding, since a position in the audit
// log.
func requestsFor(start framework.AuditPosition, namespace string) framework.Entries {
	return framework.UnexpectedWhenIdle(env.Since(start), manager.User).Where(func(e framework.Entry) bool {
		return e.Namespace == namespace || e.Name == authDelegatorBinding(namespace).Name
	})
}

// waitNoRequestsFor waits until the manager sends no more requests for a namespace.
func waitNoRequestsFor(ctx context.Context, namespace string) {
	GinkgoHelper()
	env.WaitNoRequests(ctx, func(start framework.AuditPosition) framework.Entries { return requestsFor(start, namespace) }, idlePeriod, waitTimeout)
}

// expectNoRequestsFor checks that the manager sends no requests for a namespace.
func expectNoRequestsFor(namespace string) {
	GinkgoHelper()
	env.ExpectNoRequests(func(start framework.AuditPosition) framework.Entries { return requestsFor(start, namespace) }, idlePeriod)
}

// expectNotForbidden checks that no request of the manager in a namespace or at cluster scope was forbidden since a position in the audit
// log.
func expectNotForbidden(start framework.AuditPosition, namespace string) {
	GinkgoHelper()
	Expect(env.Since(start).ByUser(manager.User).Forbidden().Where(func(e framework.Entry) bool {
		return e.Code == 401 || e.Namespace == "" || e.Namespace == namespace
	})).To(BeEmpty())
}
