package mlflow

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// midday is the initial time of the fake clocks.
var midday = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var settings = Settings{Inputs: resources.Inputs{
	Namespace:        "opendatahub",
	Image:            "quay.io/example/mlflow:v3",
	GatewayName:      "data-science-gateway",
	GatewayNamespace: "openshift-ingress",
	ExternalURL:      "https://gateway.apps.example.com",
	SectionTitle:     "OpenShift Open Data Hub",
	Version:          "3.14.0",
}}

// platformInputs are the Inputs of each platform: bare serves no optional API, plain serves HTTPRoute and ServiceMonitor.
var platformInputs = map[string]resources.Inputs{
	"bare":  settings.InputsFor(capability.NewSet()),
	"plain": settings.InputsFor(capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor)),
	"openshift": settings.InputsFor(capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor, capability.ConsoleLink,
		capability.Route, capability.OpenShiftIngress)),
}

// renderObjects returns all objects that are rendered for an MLflow.
func renderObjects(t testing.TB, m *mlflowv1.MLflow, in resources.Inputs) []*unstructured.Unstructured {
	t.Helper()
	desired, err := resources.Build(m, in)
	if err != nil {
		t.Fatalf("building: %v", err)
	}
	objects, err := apply.Render(desired, ComponentName, m)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	return objects
}

// renderedObject returns one of the objects that are rendered on OpenShift, as a Go type.
func renderedObject[T any](t testing.TB, m *mlflowv1.MLflow, kind, name string) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(mlflowtest.Object(renderObjects(t, m, platformInputs["openshift"]), kind, name).Object, into); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	return into
}
