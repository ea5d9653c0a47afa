package component

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// startingDiscovery is the discovery of a starting API server: first unavailable, then without the resources of one version, then complete.
type startingDiscovery struct {
	discovery.DiscoveryInterface
	responding, complete atomic.Bool
}

func (d *startingDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	if !d.responding.Load() {
		return nil, errors.New("connection refused")
	}
	list := &metav1.APIGroupList{}
	for _, gv := range []schema.GroupVersion{capability.RayCluster.GroupVersion(), capability.Route.GroupVersion()} {
		one := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{one}})
	}
	return list, nil
}

func (d *startingDiscovery) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: gv}
	switch {
	case gv == capability.RayCluster.GroupVersion().String():
		list.APIResources = []metav1.APIResource{{Kind: "RayCluster", Name: "rayclusters"}}
	case !d.complete.Load():
		return nil, errors.New("the server is currently unable to handle the request")
	default:
		list.APIResources = []metav1.APIResource{{Kind: "Route", Name: "routes"}}
	}
	return list, nil
}

// A component waits until discovery responds. An unavailable API does not count as missing.
func TestComponentsWaitForDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w, mgr := &startingDiscovery{}, &worker{}, newManager(t)
		definitions := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
		served := capability.New(capability.Options{Discovery: d, Metadata: definitions, Kinds: capability.Known(), Log: mgr.GetLogger()})
		c := ray(w)
		c.Requires = c.Requires[:1] // RayCluster; Route is optional
		if err := Setup(mgr, served, []Component{c}, enableAll); err != nil {
			t.Fatal(err)
		}
		close(mgr.elected)
		if err := mgr.Add(served); err != nil {
			t.Fatal(err)
		}
		defer mgr.start()()
		advance(time.Hour)
		w.expectRuns(t, 0, 0)
		d.responding.Store(true)
		advance(time.Minute)
		w.expectRuns(t, 1, 1)
		if !served.Current().Has(capability.Route) {
			t.Error("want the unavailable API to count as served")
		}
		d.complete.Store(true)
		advance(time.Hour)
		w.expectRuns(t, 1, 1)
		d.responding.Store(false)
		d.complete.Store(false)
		advance(time.Hour)
		w.expectRuns(t, 1, 1)
	})
}
