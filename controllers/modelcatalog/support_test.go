package modelcatalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// newCatalog returns a Catalog with an empty spec and the given changes.
func newCatalog(changes ...func(*aihubv1alpha1.CatalogSpec)) *aihubv1alpha1.Catalog {
	c := &aihubv1alpha1.Catalog{}
	c.SetGroupVersionKind(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
	c.Namespace, c.Name, c.UID = "lab-registries", aihubv1alpha1.CatalogName, "catalog-uid"
	for _, change := range changes {
		change(&c.Spec)
	}
	return c
}

func kubernetesInputs() resources.Inputs {
	return resources.Inputs{Images: config.RegistryImages{
		REST: "quay.io/example/model-registry:v1", KubeRBACProxy: "quay.io/example/kube-rbac-proxy:v1", Postgres: "quay.io/example/postgresql:16",
		CatalogData: "quay.io/example/catalog-data:v1", BenchmarkData: "quay.io/example/benchmark-data:v1",
	}}
}

func openShiftInputs(changes ...func(*resources.Inputs)) resources.Inputs {
	in := kubernetesInputs()
	in.Served, in.Domain = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant), "apps.example.com"
	in.Gateway = config.RegistryGateway{Name: "data-science-gateway", Namespace: "openshift-ingress", RouteNamespace: "redhat-ods-applications"}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func behindGateway(in *resources.Inputs) { in.Gateway.Domain = "gateway.example.com" }

// buildObjects returns the objects that resources.Build returns for a Catalog.
func buildObjects(t testing.TB, c *aihubv1alpha1.Catalog, in resources.Inputs) []*unstructured.Unstructured {
	t.Helper()
	objects, err := apply.Render(resources.Build(c, in), ComponentName, c)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// findObject returns the built object of a kind and name, or nil.
func findObject(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// decodeObject returns a built object as its Go type. Unknown fields are errors.
func decodeObject[T any](t testing.TB, c *aihubv1alpha1.Catalog, in resources.Inputs, kind, name string) *T {
	t.Helper()
	o := findObject(buildObjects(t, c, in), kind, name)
	if o == nil {
		t.Fatalf("no %s %s was built", kind, name)
		return nil
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	return into
}

func withoutAuthProxy(s *aihubv1alpha1.CatalogSpec) {
	s.AuthProxy = &aihubv1alpha1.CatalogAuthProxy{Mode: server.Disabled}
}

func withResources(catalog, postgres *corev1.ResourceRequirements) func(*aihubv1alpha1.CatalogSpec) {
	return func(s *aihubv1alpha1.CatalogSpec) {
		s.Resources = &aihubv1alpha1.CatalogResources{Catalog: catalog, Postgres: postgres}
	}
}

func withExternalDatabase(e aihubv1alpha1.ExternalDatabase) func(*aihubv1alpha1.CatalogSpec) {
	return func(s *aihubv1alpha1.CatalogSpec) { s.Database = &aihubv1alpha1.CatalogDatabase{External: &e} }
}

func withDatabase(d aihubv1alpha1.CatalogDatabase) func(*aihubv1alpha1.CatalogSpec) {
	return func(s *aihubv1alpha1.CatalogSpec) { s.Database = &d }
}
