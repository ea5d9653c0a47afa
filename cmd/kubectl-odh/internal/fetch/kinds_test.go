package fetch

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// aggregatedDiscovery is an API server with aggregated discovery, whose groups list the preferred version first.
type aggregatedDiscovery struct {
	discovery.DiscoveryInterfaces
	groups map[string][]string
}

func (d aggregatedDiscovery) GroupsAndMaybeResourcesWithContext(context.Context) (*metav1.APIGroupList,
	map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups, lists := &metav1.APIGroupList{}, map[schema.GroupVersion]*metav1.APIResourceList{}
	for name, versions := range d.groups {
		group := metav1.APIGroup{Name: name}
		for _, version := range versions {
			gv := schema.GroupVersion{Group: name, Version: version}
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: version})
			lists[gv] = &metav1.APIResourceList{GroupVersion: gv.String(), APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}}
		}
		groups.Groups = append(groups.Groups, group)
	}
	return groups, lists, nil, nil
}

func TestAggregatedDiscoveryPrefersFirstVersion(t *testing.T) {
	api := aggregatedDiscovery{groups: map[string][]string{"a.io": {"v2", "v1", "v1beta1", "v1alpha1"}, "b.io": {"v1beta1", "v1", "v1alpha1"}}}
	for range 20 { // the lists are in any order
		set, err := Discover(t.Context(), api)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := set.Kind("Thing.a.io").Version, set.Kind("Thing.b.io").Version; a != "v2" || b != "v1beta1" {
			t.Fatalf("got versions %s and %s, want v2 and v1beta1, the first of their groups", a, b)
		}
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
