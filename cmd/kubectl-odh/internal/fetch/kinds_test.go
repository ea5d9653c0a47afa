package fetch

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

func discover(t *testing.T, cluster *fakecluster.Cluster) (Set, error) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: cluster.URL})
	if err != nil {
		t.Fatal(err)
	}
	return Discover(t.Context(), client)
}

func discoverAll(t *testing.T) Set {
	t.Helper()
	foreign := fakecluster.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Catalog"}, Resource: "catalogs", Short: []string{"cat"}, Namespaced: true}
	kinds := append([]fakecluster.Kind{foreign}, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...)...)
	set, err := discover(t, fakecluster.Start(t, kinds, nil))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestKindsAreDiscovered(t *testing.T) {
	set := discoverAll(t)
	registry := set.Kind("ModelRegistry.modelregistry.opendatahub.io")
	if registry.Version != "v1beta1" || !registry.Namespaced {
		t.Errorf("unexpected registry: %+v", registry)
	}
	older := schema.GroupVersionKind{Group: registry.Group, Version: "v1alpha1", Kind: "ModelRegistry"}
	if got := set.ForGVK(older); got.GVR() != older.GroupVersion().WithResource("modelregistries") {
		t.Errorf("ForGVK returned %+v, want the resource modelregistries in the requested version", got)
	}
	if !set.Has(older) || set.Has(older.GroupKind().WithVersion("v1")) {
		t.Error("want the served version v1alpha1 in the set, and v1 not in the set")
	}
	if set.Kind("Other.modelregistry.opendatahub.io").Served() {
		t.Error("a kind that is not served was found")
	}
	if mlflow := set.Kind("MLflow.mlflow.opendatahub.io"); !mlflow.Served() || mlflow.Namespaced {
		t.Error("want MLflow served and cluster-scoped")
	}
}

func TestListableKindsExcludeSubresources(t *testing.T) {
	for _, k := range discoverAll(t).Kinds {
		if !k.Listable || strings.Contains(k.Resource, "/") {
			t.Errorf("got %+v, want only listable kinds without subresources", k)
		}
	}
}

func TestDiscoverReportsFailedGroups(t *testing.T) {
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), nil)
	cluster.Break(func(r fakecluster.Request) bool { return r.Resource == "ray.io/v1" || r.Resource == "batch/v1" })
	set, err := discover(t, cluster)
	if err != nil || !slices.Equal(set.Failed, []string{"batch/v1", "ray.io/v1"}) {
		t.Errorf("got failed groups %v and error %v, want batch/v1 and ray.io/v1", set.Failed, err)
	}
	if set.Kind("RayCluster.ray.io").Served() {
		t.Error("want RayCluster not served, because discovery of its group fails")
	}
	if !set.Kind("Deployment.apps").Served() {
		t.Error("want Deployment.apps served although other groups cannot be read")
	}
	cluster.URL = "http://127.0.0.1:1"
	if _, err := discover(t, cluster); err == nil || !strings.HasPrefix(err.Error(), "discovering the served APIs: ") {
		t.Errorf("got error %v from a cluster that does not respond, want a failed discovery", err)
	}
}
