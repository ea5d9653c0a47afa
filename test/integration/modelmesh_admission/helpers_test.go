package modelmesh_admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	namespaced  = "ServingRuntime"
	clusterWide = "ClusterServingRuntime"

	// hpaAnnotations are valid annotations for a HorizontalPodAutoscaler.
	hpaAnnotations = "serving.kserve.io/autoscalerClass: hpa, serving.kserve.io/metrics: cpu, serving.kserve.io/targetUtilizationPercentage: '75', " +
		"serving.kserve.io/min-scale: '2', serving.kserve.io/max-scale: '3'"
	// multiModelSpec is the spec of a valid multi-model runtime.
	multiModelSpec = "multiModel: true, grpcEndpoint: 'port:9000', containers: [{name: server, image: i}]"
	// singleModelSpec is the spec of a KServe runtime that ModelMesh cannot run.
	singleModelSpec = "containers: [{name: kserve-container, image: i, readinessProbe: {tcpSocket: {port: 8080}}, ports: [{containerPort: 8080}]}]"
)

func managerOptions(name, components string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Name: name, WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=" + components, "--leader-elect=true"},
	}
}

// runtimeCount makes the names of runtimes unique, because ClusterServingRuntimes are cluster-scoped.
var runtimeCount int

// newRuntime returns a runtime with a unique name. Annotations and spec are members of YAML flow mappings. A ClusterServingRuntime gets no
// namespace.
func newRuntime(kind, namespace, annotations, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	runtimeCount++
	o := &unstructured.Unstructured{}
	text := "{apiVersion: serving.kserve.io/v1alpha1, kind: %s, metadata: {name: runtime-%d, annotations: {%s}}, spec: {%s}}"
	Expect(yaml.Unmarshal(fmt.Appendf(nil, text, kind, runtimeCount, annotations, spec), &o.Object)).To(Succeed())
	if kind == namespaced {
		o.SetNamespace(namespace)
	}
	return o
}

func updateRuntime(ctx context.Context, user client.Client, o *unstructured.Unstructured, mutate func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, user, o, func() { mutate(o) })
}

// setAnnotation returns a mutation that sets an annotation, or removes it if the value is empty.
func setAnnotation(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[key] = value; value == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	}
}

// waitForWebhooks waits until the webhook responds, with or without an error.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitForWebhooks(ctx, newRuntime(clusterWide, "", "", multiModelSpec))
}

// whileDisabled calls a function while the component is disabled.
func whileDisabled(ctx context.Context, call func()) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { waitForWebhooks(ctx) }, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
	other := env.StartManager(ctx, managerOptions("manager-without-modelmesh", "raycluster"))
	waitForWebhooks(ctx)
	call()
	other.Stop(ctx)
	manager.Restart(ctx)
	waitForWebhooks(ctx)
}
