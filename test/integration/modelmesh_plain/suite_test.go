package modelmesh_plain_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	operatorNamespace = "opendatahub"

	specTimeout = 4 * time.Minute
	waitTimeout = 90 * time.Second
	idlePeriod  = time.Second
)

// The control plane serves no optional API at first. The permissions of the manager on the child objects of runtimes are limited to its
// namespace.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestModelMeshPlain(t *testing.T) {
	framework.Run(t, "ModelMesh in one namespace, installed before KServe")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-plain", cluster.Bare, framework.WithTypes(v1alpha1.AddToScheme), framework.WithOperator("test/integration/modelmesh_plain/testdata/one-namespace"))
	env.DisableWebhooks(ctx)
	labels := map[string]string{"app": "controller"}
	Expect(env.Admin.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "controller"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/manager:1"}}}},
	}})).To(Succeed())
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
		Env:  []string{"NAMESPACE_SCOPE=true", "CONTROLLER_DEPLOYMENT=controller"},
	})
}, NodeTimeout(framework.StartTimeout))

var _ = Describe("The namespace of the manager", func() {
	It("is served with only the permissions in that namespace when KServe is installed later", func(ctx SpecContext) {
		start := env.AuditPosition()
		objectMeta := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}
		}
		service := &corev1.Service{ObjectMeta: objectMeta("modelmesh-serving")}
		env.WaitExists(ctx, service)
		Expect(metav1.GetControllerOf(service)).To(HaveField("Name", "controller"))
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)

		By("installing KServe")
		Expect(cluster.InstallSet(ctx, env.Config, cluster.KServe)).To(Succeed())
		otherNamespace := env.Namespace(ctx, "other")
		env.SetLabel(ctx, framework.NamespaceNamed(otherNamespace), "modelmesh-enabled", "true")
		spec := v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:8085"), NodeSelector: map[string]string{"example.com/none": "true"},
			SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "onnx", AutoSelect: new(true)}},
			Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
		}
		for _, object := range []client.Object{
			&v1alpha1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "cluster-wide"}, Spec: spec},
			&v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: "r"}, Spec: spec},
			&v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "r", Annotations: map[string]string{
				"serving.kserve.io/autoscalerClass": "hpa"}}, Spec: spec},
		} {
			Eventually(func() error { return env.Admin.Create(ctx, object) }).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
		}
		model := &v1alpha1.Predictor{ObjectMeta: objectMeta("m")}
		model.Spec.ModelType.Name = "onnx"
		Expect(env.Admin.Create(ctx, model)).To(Succeed())
		deployment, autoscaler := &appsv1.Deployment{ObjectMeta: objectMeta("modelmesh-serving-r")}, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: objectMeta("modelmesh-serving-r")}
		env.WaitExists(ctx, deployment, autoscaler, &corev1.ConfigMap{ObjectMeta: objectMeta("tc-config")})
		env.WaitFor(ctx, model, func(g Gomega) {
			g.Expect(model.Status.LastFailureInfo).To(HaveField("Message", ContainSubstring("the pod cannot be scheduled")))
		})
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
		all := &appsv1.DeploymentList{}
		Expect(env.Admin.List(ctx, all, client.HasLabels{"modelmesh-service"})).To(Succeed())
		Expect(all.Items).To(HaveLen(1), "runtimes of the cluster and of other namespaces are not served")
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
