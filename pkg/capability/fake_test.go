package capability

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeDiscovery is an API server with aggregated discovery.
type fakeDiscovery struct {
	discovery.DiscoveryInterfaces

	mu    sync.Mutex
	lists map[schema.GroupVersion][]metav1.APIResource
	stale map[schema.GroupVersion]error
	err   error
	calls int
}

func newDiscovery(kinds ...schema.GroupVersionKind) *fakeDiscovery {
	d := &fakeDiscovery{lists: map[schema.GroupVersion][]metav1.APIResource{}, stale: map[schema.GroupVersion]error{}}
	d.serve(kinds...)
	return d
}

// plurals maps kinds to the resource names that the fake serves.
var plurals = map[string]string{
	"Route": "routes", "Ingress": "ingresses", "HTTPRoute": "httproutes", "ReferenceGrant": "referencegrants",
	"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules", "RayCluster": "rayclusters", "Group": "groups",
}

func crdName(k schema.GroupVersionKind) string { return plurals[k.Kind] + "." + k.Group }

func (d *fakeDiscovery) serve(kinds ...schema.GroupVersionKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range kinds {
		d.lists[k.GroupVersion()] = append(d.lists[k.GroupVersion()],
			metav1.APIResource{Kind: k.Kind, Name: plurals[k.Kind]},
			metav1.APIResource{Kind: k.Kind, Name: plurals[k.Kind] + "/status"})
	}
}

func (d *fakeDiscovery) remove(kinds ...schema.GroupVersionKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range kinds {
		remaining := slices.DeleteFunc(slices.Clone(d.lists[k.GroupVersion()]), func(r metav1.APIResource) bool { return r.Kind == k.Kind })
		d.lists[k.GroupVersion()] = remaining
		if len(remaining) == 0 {
			delete(d.lists, k.GroupVersion())
		}
	}
}

func (d *fakeDiscovery) setError(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *fakeDiscovery) markStale(gv schema.GroupVersion, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.stale, gv)
		return
	}
	d.stale[gv] = err
}

func (d *fakeDiscovery) callCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// groups returns the groups with the versions that pass the filter.
func (d *fakeDiscovery) groups(filter func(schema.GroupVersion) bool) *metav1.APIGroupList {
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for gv := range d.lists {
		if !filter(gv) {
			continue
		}
		versions[gv.Group] = append(versions[gv.Group], metav1.GroupVersionForDiscovery{Version: gv.Version, GroupVersion: gv.String()})
	}
	out := &metav1.APIGroupList{}
	for _, group := range slices.Sorted(maps.Keys(versions)) {
		out.Groups = append(out.Groups, metav1.APIGroup{Name: group, Versions: versions[group]})
	}
	return out
}

func (d *fakeDiscovery) GroupsAndMaybeResourcesWithContext(context.Context) (*metav1.APIGroupList,
	map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.err != nil {
		return nil, nil, nil, d.err
	}
	resources := coreResources()
	for gv, list := range d.lists {
		if d.stale[gv] == nil {
			resources[gv] = &metav1.APIResourceList{GroupVersion: gv.String(), APIResources: slices.Clone(list)}
		}
	}
	current := func(gv schema.GroupVersion) bool { return d.stale[gv] == nil }
	return d.groups(current), resources, maps.Clone(d.stale), nil // like client-go, which returns an error for each stale version
}

// newUnaggregated returns an API server without aggregated discovery.
func newUnaggregated(d *fakeDiscovery) discovery.DiscoveryInterface {
	return struct{ discovery.DiscoveryInterface }{unaggregatedDiscovery{d: d}}
}

type unaggregatedDiscovery struct {
	discovery.DiscoveryInterface
	d *fakeDiscovery
}

func (l unaggregatedDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.calls++
	if l.d.err != nil {
		return nil, l.d.err
	}
	return l.d.groups(func(schema.GroupVersion) bool { return true }), nil
}

func (l unaggregatedDiscovery) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.calls++
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	if err := l.d.stale[gv]; err != nil {
		return nil, err
	}
	return &metav1.APIResourceList{GroupVersion: version, APIResources: slices.Clone(l.d.lists[gv])}, nil
}

// fakeCluster holds the metadata of CRDs.
type fakeCluster struct {
	*metadatafake.FakeMetadataClient
	t *testing.T
}

func newCluster(t *testing.T) *fakeCluster {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &fakeCluster{metadatafake.NewSimpleMetadataClient(scheme), t}
}

func object(name string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: "1", Labels: map[string]string{"big": "label"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	obj.SetGroupVersionKind(customResourceDefinitions.GroupVersion().WithKind("CustomResourceDefinition"))
	return obj
}

func (c *fakeCluster) create(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := c.Tracker().Create(customResourceDefinitions, object(name), ""); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *fakeCluster) update(name, version string) {
	c.t.Helper()
	obj := object(name)
	obj.ResourceVersion = version
	if err := c.Tracker().Update(customResourceDefinitions, obj, ""); err != nil {
		c.t.Fatal(err)
	}
}

func (c *fakeCluster) remove(name string) {
	c.t.Helper()
	if err := c.Tracker().Delete(customResourceDefinitions, "", name); err != nil {
		c.t.Fatal(err)
	}
}

// forbid makes every list and watch fail until allow is called.
func (c *fakeCluster) forbid() (allow func()) {
	var allowed bool
	var mu sync.Mutex
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if allowed {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no role"))
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		allowed = true
	}
}

// coreResources returns the resources of the core group, which every API server describes.
func coreResources() map[schema.GroupVersion]*metav1.APIResourceList {
	return map[schema.GroupVersion]*metav1.APIResourceList{{Version: "v1"}: {GroupVersion: "v1"}}
}
