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

	// hpa has valid annotations for a HorizontalPodAutoscaler.
	hpa = "serving.kserve.io/autoscalerClass: hpa, serving.kserve.io/metrics: cpu, serving.kserve.io/targetUtilizationPercentage: '75', " +
		"serving.kserve.io/min-scale: '2', serving.kserve.io/max-scale: '3'"
	// multi is the spec of a valid multi-model runtime.
	multi = "multiModel: true, grpcEndpoint: 'port:9000', containers: [{name: server, image: i}]"
	// single is the spec of a KServe runtime that ModelMesh cannot run.
	single = "containers: [{name: kserve-container, image: i, readinessProbe: {tcpSocket: {port: 8080}}, ports: [{containerPort: 8080}]}]"
)

func options(name, components string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Name: name, WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=" + components, "--leader-elect=true"},
	}
}

// names counts the runtimes to make their names unique, because ClusterServingRuntimes are cluster-scoped.
var names int

// runtimeOf returns a runtime with a new name. Annotations and spec are the members of a YAML flow mapping; ClusterServingRuntimes ignore
// the namespace.
func runtimeOf(kind, namespace, annotations, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	names++
	o := &unstructured.Unstructured{}
	text := "{apiVersion: serving.kserve.io/v1alpha1, kind: %s, metadata: {name: runtime-%d, annotations: {%s}}, spec: {%s}}"
	Expect(yaml.Unmarshal(fmt.Appendf(nil, text, kind, names, annotations, spec), &o.Object)).To(Succeed())
	if kind == namespaced {
		o.SetNamespace(namespace)
	}
	return o
}

// change updates a stored object.
func change(ctx context.Context, who client.Client, o *unstructured.Unstructured, do func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, who, o, func() { do(o) })
}

// annotate sets an annotation; "" removes it.
func annotate(key, value string) func(*unstructured.Unstructured) {
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
	env.WaitForWebhooks(ctx, runtimeOf(clusterWide, "", "", multi))
}

// whileDisabled calls do while the component is disabled.
func whileDisabled(ctx context.Context, do func()) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { waitForWebhooks(ctx) }, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
	other := env.StartManager(ctx, options("manager-without", "raycluster"))
	waitForWebhooks(ctx)
	do()
	other.Stop(ctx)
	manager.Restart(ctx)
	waitForWebhooks(ctx)
}
