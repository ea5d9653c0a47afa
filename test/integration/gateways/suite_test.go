// Package gateways_test tests how the components handle the status that Gateways set on their HTTPRoutes and BackendTLSPolicies.
package gateways_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	operatorNamespace = "opendatahub"

	specTimeout = 5 * time.Minute
	waitTimeout = 2 * time.Minute
	idlePeriod  = 3 * time.Second
)

var (
	env     *framework.Env
	manager *framework.Manager
)

func TestGateways(t *testing.T) { framework.Run(t, "Status of Gateways") }

// No Gateway controller runs. The specs set the status of routes and policies.
var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "gateways", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort, Args: []string{"--metrics-bind-address=127.0.0.1:0"},
		Env: []string{
			"EXPOSURE=gateway", "GATEWAY_NAME=" + framework.AbsentGateway, "GATEWAY_NAMESPACE=gateways", "GATEWAY_DOMAIN=ai.example.org", "HTTPROUTE_NAMESPACE=" + operatorNamespace,
			"MLFLOW_GATEWAY_NAMESPACE=gateways", "MLFLOW_URL=https://ai.example.org", "MLFLOW_IMAGE=quay.io/example/mlflow:v3",
		},
	})
	Expect(env.Admin.Create(ctx, framework.EtcdSecret(operatorNamespace))).To(Succeed())
	for _, k := range publishedKinds() {
		env.WaitAdmitted(ctx, k.object("default"))
	}
}, NodeTimeout(framework.StartTimeout))

// publishedKind is a kind of resource whose server is published by an HTTPRoute.
type publishedKind struct {
	file string
	// namespace of the resource; "" for a new one.
	namespace string
	// routeNamespace is the namespace of its HTTPRoute; "" for the namespace of the resource.
	routeNamespace string
	// route and policy are the names of its HTTPRoute and BackendTLSPolicy.
	route, policy string
	// reason of the Event about a route that is not accepted; "" if a condition reports it.
	reason string
	// address reports whether the status contains the address at the Gateway; nil for kinds without such an address.
	address func(*unstructured.Unstructured) bool
}

func (p publishedKind) object(namespace string) *unstructured.Unstructured {
	object := framework.Sample(p.file)
	object.SetNamespace(namespace)
	if object.GetKind() == "MLflow" {
		object.SetNamespace("")
	}
	if object.GetKind() == "InferenceService" {
		Expect(unstructured.SetNestedField(object.Object, "ml-type1", "spec", "predictor", "model", "modelFormat", "name")).To(Succeed())
	}
	return object
}

func publishedKinds() []publishedKind {
	return []publishedKind{
		{file: "mlflow_minimal.yaml", namespace: operatorNamespace, route: "mlflow", policy: "mlflow-ca", address: func(u *unstructured.Unstructured) bool {
			url, _, _ := unstructured.NestedString(u.Object, "status", "url")
			return url == "https://ai.example.org/mlflow"
		}},
		{file: "modelregistry_proxy.yaml", routeNamespace: operatorNamespace, route: "model-registry-modelregistry-sample", policy: "modelregistry-sample-ca", address: func(u *unstructured.Unstructured) bool {
			hosts, _, _ := unstructured.NestedStringSlice(u.Object, "status", "hosts")
			return slices.Contains(hosts, "ai.example.org/model-registry/modelregistry-sample")
		}},
		{file: "aihub_catalog.yaml", routeNamespace: operatorNamespace, route: "model-catalog", policy: "model-catalog-ca"},
		{file: "raycluster.yaml", route: "ray-dashboard-demo", policy: "ray-dashboard-demo-ca", reason: "DashboardNotPublished"},
		{file: "modelmesh_inferenceservice.yaml", route: "digits-isvc", reason: "RouteNotPublished"},
	}
}

// warnings returns the Warning Events about an object with a reason, as "action message".
func warnings(ctx context.Context, object client.Object, reason string) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(object.GetNamespace()))).To(Succeed())
	var texts []string
	for _, e := range list.Items {
		if e.InvolvedObject.UID == object.GetUID() && e.Reason == reason && e.Type == corev1.EventTypeWarning {
			texts = append(texts, e.Action+" "+e.Message)
		}
	}
	return texts
}

// routeAccepted returns the condition RouteAccepted as "status reason message", "" if the condition is absent.
func routeAccepted(u *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		var c metav1.Condition
		fields, _ := item.(map[string]any)
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c)).To(Succeed())
		if c.Type == "RouteAccepted" {
			return strings.Join([]string{string(c.Status), c.Reason, c.Message}, " ")
		}
	}
	return ""
}
