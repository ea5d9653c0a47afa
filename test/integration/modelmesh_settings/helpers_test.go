package modelmesh_settings_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// noScaleToZero is the setting that keeps the pods of runtimes without models.
const noScaleToZero = "scaleToZero: {enabled: false}\n"

// createServingNamespace creates a namespace that is enabled for ModelMesh and has a runtime.
func createServingNamespace(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "settings")
	env.SetLabel(ctx, framework.NamespaceNamed(name), "modelmesh-enabled", "true")
	Expect(env.Admin.Create(ctx, &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "demo"},
		Spec: v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:8085"),
			SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "sklearn", AutoSelect: new(true)}},
			Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
		},
	})).To(Succeed())
	return name
}

// configure writes the settings of a namespace. The settings in the namespace of the operator apply to all namespaces.
func configure(ctx context.Context, namespace, text string) *corev1.ConfigMap {
	GinkgoHelper()
	return env.SetConfigMap(ctx, namespace, meshsettings.ConfigMapName, meshsettings.ConfigMapKey, text)
}

func deploymentOf(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meshsettings.DefaultServiceName + "-demo"}}
}

func serviceOf(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meshsettings.DefaultServiceName}}
}

// waitForReplicas waits until the Deployment of the runtime in a namespace has the given replicas, and returns it.
func waitForReplicas(ctx context.Context, namespace string, replicas int32) *appsv1.Deployment {
	GinkgoHelper()
	deployment := deploymentOf(namespace)
	env.WaitFor(ctx, deployment, func(g Gomega) { g.Expect(deployment.Spec.Replicas).To(HaveValue(Equal(replicas))) })
	return deployment
}

// getEvents returns the type, the reason and the note of each Event about an object.
func getEvents(ctx context.Context, o client.Object) (all []string, err error) {
	list := &eventsv1.EventList{}
	if err := env.Admin.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		if e.Regarding.UID == o.GetUID() {
			all = append(all, e.Type+" "+e.Reason+" "+e.Note)
		}
	}
	return all, nil
}

// waitForWarning waits for a Warning about a ConfigMap whose note contains a text.
func waitForWarning(ctx context.Context, configMap *corev1.ConfigMap, reason, text string) {
	GinkgoHelper()
	env.Get(ctx, configMap)
	Eventually(getEvents).WithContext(ctx).WithArguments(ctx, configMap).WithTimeout(waitTimeout).
		Should(ContainElement(SatisfyAll(HavePrefix("Warning "+reason), ContainSubstring(text))))
}

// expectUnchanged checks that UID, generation and labels of an object are unchanged.
func expectUnchanged(ctx context.Context, o client.Object) {
	GinkgoHelper()
	// Other controllers write the status.
	snapshot := func() []any {
		return []any{o.GetUID(), o.GetGeneration(), o.GetLabels()}
	}
	before := snapshot()
	env.Get(ctx, o)
	Expect(snapshot()).To(Equal(before), "%T %s", o, o.GetName())
}
