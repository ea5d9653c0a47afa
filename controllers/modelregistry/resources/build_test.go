package resources

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// The two platforms, and OpenShift with a gateway.
var (
	plain     = Inputs{RequestCertificate: true}
	openshift = Inputs{RequestCertificate: true, Publishing: servers.Publishing{
		Served: capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant, capability.UserGroup),
	}}
	gateway = with(openshift, func(in *Inputs) {
		in.Gateway = config.RegistryGateway{
			Domain: "gateway.example.com", Name: "data-science-gateway", Namespace: "openshift-ingress", RouteNamespace: "opendatahub",
		}
	})
)

// unserve removes a kind from the APIs of the cluster.
func unserve(in *Inputs, kind schema.GroupVersionKind) {
	in.Served = capability.Set{Set: in.Served.Difference(sets.New(kind))}
}

func with(in Inputs, change func(*Inputs)) Inputs {
	change(&in)
	return in
}

// buildObjects returns the objects of a registry without its generated database.
func buildObjects(t testing.TB, m *v1beta1.ModelRegistry, in Inputs) []*unstructured.Unstructured {
	t.Helper()
	desired, err := Build(m, in)
	if err != nil {
		t.Fatalf("building: %v", err)
	}
	return renderObjects(t, m, desired)
}

// buildDatabaseObjects builds the objects of a generated database.
func buildDatabaseObjects(t testing.TB, m *v1beta1.ModelRegistry, in Inputs) []*unstructured.Unstructured {
	t.Helper()
	desired, err := BuildDatabase(m, in)
	if err != nil {
		t.Fatalf("building the database: %v", err)
	}
	desired = append(apply.Desired{CredentialsSecret(m, DefaultDatabaseUser, DefaultDatabase, "generated"), DatabaseClaim(m)}, desired...)
	return renderObjects(t, m, desired)
}

func renderObjects(t testing.TB, m *v1beta1.ModelRegistry, desired apply.Desired) []*unstructured.Unstructured {
	t.Helper()
	objects, err := apply.Render(desired, "modelregistry", m)
	if err != nil {
		t.Fatalf("rendering: %v", err)
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
func decodeObject[T any](t testing.TB, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	o := findObject(objects, kind, name)
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

func podOf(t testing.TB, objects []*unstructured.Unstructured, deployment string) corev1.PodSpec {
	t.Helper()
	return decodeObject[appsv1.Deployment](t, objects, "Deployment", deployment).Spec.Template.Spec
}

func objectKeys(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	return all
}
