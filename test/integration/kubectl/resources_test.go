package kubectl_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// badImage is an image that the fake kubelet does not pull.
const badImage = "testcluster.invalid/image-pull:1"

// createResources creates resources in stable states: an available MLflow, and an AppWrapper with a pod in ImagePullBackOff.
func createResources(ctx context.Context) {
	GinkgoHelper()
	mlflow := &mlflowv1.MLflow{}
	Expect(json.Unmarshal([]byte(`{
		"metadata": {"name": "mlflow"},
		"spec": {"backendStoreUri": "sqlite:////mlflow/mlflow.db", "artifactsDestination": "file:///mlflow/artifacts", "serveArtifacts": true,
			"storage": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
	}`), mlflow)).To(Succeed())
	Expect(env.Admin.Create(ctx, mlflow)).To(Succeed())

	template, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "broken"},
		"spec": corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: badImage}}},
	})
	Expect(err).NotTo(HaveOccurred())
	wrapper := &awv1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{
		Name: "broken", Namespace: team, Annotations: map[string]string{awv1beta2.AnnotationWarmupGrace: "2h", awv1beta2.AnnotationFailureGrace: "2h"},
	}}
	wrapper.Spec.Components = []awv1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: template}}}
	// The API server observes the CA of the webhooks with a delay.
	Eventually(ctx, func() error { return env.Admin.Create(ctx, wrapper) }).WithTimeout(childrenTimeout).Should(Succeed())

	env.WaitForCondition(ctx, mlflow, "Available", metav1.ConditionTrue, "")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "broken", Namespace: team}}
	env.WaitFor(ctx, pod, func(g Gomega) {
		g.Expect(pod.Status.ContainerStatuses).NotTo(BeEmpty())
		g.Expect(pod.Status.ContainerStatuses[0].State.Waiting).NotTo(BeNil())
		g.Expect(pod.Status.ContainerStatuses[0].State.Waiting.Reason).To(Equal("ImagePullBackOff"))
	})
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	deployment.SetNamespace(env.Installed.Deployment.Namespace)
	deployment.SetName(env.Installed.Deployment.Name)
	env.WaitForCondition(ctx, deployment, "Available", metav1.ConditionTrue, "")
}
