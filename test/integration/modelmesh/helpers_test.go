package modelmesh_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func etcdSecret(namespace, endpoints string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-etcd"},
		StringData: map[string]string{"etcd_connection": `{"endpoints":"` + endpoints + `","root_prefix":"models"}`},
	}
}

type change func(*v1alpha1.ServingRuntime)

// newRuntimeSpec returns the spec of a runtime for a model format. Its node selector matches no node.
func newRuntimeSpec(format string) v1alpha1.ServingRuntimeSpec {
	return v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"), ProtocolVersions: []string{"grpc-v2"},
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: format, Version: new("1"), AutoSelect: new(true)}},
		Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
		NodeSelector:          map[string]string{"example.com/none": "true"},
	}
}

func createRuntime(ctx context.Context, namespace, name, format string, changes ...change) *v1alpha1.ServingRuntime {
	GinkgoHelper()
	r := &v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: newRuntimeSpec(format)}
	for _, c := range changes {
		c(r)
	}
	Expect(env.Admin.Create(ctx, r)).To(Succeed())
	return r
}

// runtimeNamed returns a runtime with only a namespace and a name.
func runtimeNamed(namespace, name string) *v1alpha1.ServingRuntime {
	return &v1alpha1.ServingRuntime{ObjectMeta: objectMeta(namespace, name)}
}

// createClusterRuntime creates a ClusterServingRuntime and deletes it after the spec.
func createClusterRuntime(ctx context.Context, name, format string) *v1alpha1.ClusterServingRuntime {
	GinkgoHelper()
	r := &v1alpha1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: newRuntimeSpec(format)}
	Expect(env.Admin.Create(ctx, r)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, r))).To(Succeed())
		env.WaitDeleted(ctx, r)
	}, NodeTimeout(specTimeout))
	return r
}

// withAnnotations sets the annotations of a runtime to the given pairs of keys and values.
func withAnnotations(pairs ...string) change {
	return func(r *v1alpha1.ServingRuntime) {
		r.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			r.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func createPredictor(ctx context.Context, namespace, name, format string) *v1alpha1.Predictor {
	GinkgoHelper()
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.ModelType.Name = format
	Expect(env.Admin.Create(ctx, p)).To(Succeed())
	return p
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func deploymentOf(namespace, runtime string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: objectMeta(namespace, "modelmesh-serving-"+runtime)}
}

func autoscalerOf(namespace, runtime string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: objectMeta(namespace, "modelmesh-serving-"+runtime)}
}

func serviceOf(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: objectMeta(namespace, "modelmesh-serving")}
}

func constraints(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, "tc-config")}
}

func etcdCopy(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: objectMeta(namespace, "model-serving-etcd")}
}

func monitor(namespace string) *unstructured.Unstructured {
	return framework.Unstructured(capability.ServiceMonitor, namespace, "modelmesh-metrics-monitor")
}

// waitForReplicas waits until the replicas in the spec of a Deployment are the given ones.
func waitForReplicas(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	GinkgoHelper()
	env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Spec.Replicas).To(HaveValue(Equal(replicas))) })
}
