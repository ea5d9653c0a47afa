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

// dawn is the discovery of a starting API server: first unavailable, then without one version, then complete.
type dawn struct {
	discovery.DiscoveryInterface
	responding, describes atomic.Bool
}

func (d *dawn) ServerGroups() (*metav1.APIGroupList, error) {
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

func (d *dawn) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: gv}
	switch {
	case gv == capability.RayCluster.GroupVersion().String():
		list.APIResources = []metav1.APIResource{{Kind: "RayCluster", Name: "rayclusters"}}
	case !d.describes.Load():
		return nil, errors.New("the server is currently unable to handle the request")
	default:
		list.APIResources = []metav1.APIResource{{Kind: "Route", Name: "routes"}}
	}
	return list, nil
}

// A component waits until discovery succeeded, and an API whose server is down does not count as missing.
func TestComponentsWaitForDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w, mgr := &dawn{}, &worker{}, newManager(t)
		definitions := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
		served := capability.New(capability.Options{Discovery: d, Metadata: definitions, Kinds: capability.Known(), Log: mgr.GetLogger()})
		c := ray(w)
		c.Requires = c.Requires[:1] // RayCluster; Route is optional
		if err := Setup(mgr, served, []Component{c}, all); err != nil {
			t.Fatal(err)
		}
		close(mgr.elected)
		if err := mgr.Add(served); err != nil {
			t.Fatal(err)
		}
		defer mgr.start()()
		pass(time.Hour)
		w.want(t, 0, 0)
		d.responding.Store(true)
		pass(time.Minute)
		w.want(t, 1, 1)
		if !served.Current().Has(capability.Route) {
			t.Error("the component was started before discovery of its optional API")
		}
		d.describes.Store(true)
		pass(time.Hour)
		w.want(t, 1, 1)
		d.responding.Store(false)
		d.describes.Store(false)
		pass(time.Hour)
		w.want(t, 1, 1)
	})
}
