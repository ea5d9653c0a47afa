package capability

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// configuration returns a MutatingWebhookConfiguration with one webhook.
func configuration(name, webhook string, client map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{map[string]any{"name": "another"}, map[string]any{"name": webhook, "clientConfig": client}}}}
	u.SetAPIVersion("admissionregistration.k8s.io/v1")
	u.SetKind("MutatingWebhookConfiguration")
	u.SetName(name)
	return u
}

func service(path string) map[string]any {
	return map[string]any{"service": map[string]any{"name": "kuberay-webhook-service", "namespace": "opendatahub", "path": path}}
}

func platformConfiguration() *unstructured.Unstructured {
	return configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", service("/mutate-ray-io-v1-raycluster"))
}

func TestIsPlatformKubeRay(t *testing.T) {
	for name, test := range map[string]struct {
		configuration *unstructured.Unstructured
		want          bool
	}{
		"no configuration":        {nil, false},
		"KubeRay of the platform": {platformConfiguration(), true},
		"webhook with a URL":      {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", map[string]any{"url": "https://example.com:9443/mutate-ray-io-v1-raycluster"}), true},
		"another configuration":   {configuration("mutating-webhook-configuration", "mraycluster.kb.io", service("/mutate-ray-io-v1-raycluster")), false},
		"another webhook":         {configuration(PlatformKubeRayConfiguration, "mraycluster.ray.openshift.ai", service("/mutate-ray-io-v1-raycluster")), false},
		"another path":            {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", service("/mutate-ray-io-v1-rayjob")), false},
		"no clientConfig":         {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", nil), false},
		"invalid URL":             {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", map[string]any{"url": "%"}), false},
		"invalid webhooks": {&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": PlatformKubeRayConfiguration}, "webhooks": "mraycluster.kb.io"}}, false},
	} {
		if got := IsPlatformKubeRay(test.configuration); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestSetWithPlatformKubeRay(t *testing.T) {
	withoutRoutes, withRoutes := NewSet(RayCluster), NewSet(RayCluster, Route)
	for name, test := range map[string]struct {
		set               Set
		detected, secures bool
	}{
		"no KubeRay of the platform":    {withoutRoutes, false, false},
		"without Routes":                {withoutRoutes.WithPlatformKubeRay(true), true, false}, // its webhook needs Routes, too
		"with Routes":                   {withRoutes.WithPlatformKubeRay(true), true, true},
		"removed":                       {withRoutes.WithPlatformKubeRay(true).WithPlatformKubeRay(false), false, false},
		"community KubeRay with Routes": {withRoutes, false, false},
	} {
		if test.set.HasPlatformKubeRay() != test.detected || test.set.KubeRaySecures() != test.secures {
			t.Errorf("%s: HasPlatformKubeRay returned %t, KubeRaySecures %t", name, test.set.HasPlatformKubeRay(), test.set.KubeRaySecures())
		}
	}
	if withRoutes.Equal(withRoutes.WithPlatformKubeRay(true)) || !withRoutes.WithPlatformKubeRay(true).Equal(withRoutes.WithPlatformKubeRay(true)) {
		t.Error("Equal ignores the KubeRay of the platform, or is not reflexive")
	}
}

func newKubeRay(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{mutatingConfigurations: "MutatingWebhookConfigurationList"}, objects...)
}

// countLists returns the number of list requests.
func countLists(client *dynamicfake.FakeDynamicClient) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "list" {
			n++
		}
	}
	return n
}

// The KubeRay of the platform is watched without lists in the steady state. Listeners and the log get each change of its presence once.
func TestPlatformKubeRayIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l, recorder := newKubeRay(), &logs{}, &changes{}
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client, Log: l.logger()})
		if w.Ready(nil) != nil || !w.Current().Has(RayCluster) || w.Current().HasPlatformKubeRay() {
			t.Fatal("want Ready, RayCluster served, and no KubeRay of the platform")
		}
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		advance(time.Second)
		before := countLists(client)
		expectState := func(secures bool, notifications int) {
			t.Helper()
			advance(time.Second)
			if w.Current().KubeRaySecures() != secures || recorder.len() != notifications || !w.Current().Has(RayCluster) {
				t.Errorf("got KubeRaySecures %t after %d notifications: %s", w.Current().KubeRaySecures(), recorder.len(), w.Current())
			}
		}
		expectState(false, 0)
		tracker := client.Tracker()
		if err := tracker.Add(platformConfiguration()); err != nil {
			t.Fatal(err)
		}
		expectState(true, 1)
		update := platformConfiguration()
		nested.Map(update.Object, "webhooks", "1")["failurePolicy"] = "Ignore"
		if err := tracker.Update(mutatingConfigurations, update, ""); err != nil {
			t.Fatal(err)
		}
		expectState(true, 1)
		if err := tracker.Delete(mutatingConfigurations, "", PlatformKubeRayConfiguration); err != nil {
			t.Fatal(err)
		}
		expectState(false, 2)
		advance(time.Hour)
		expectState(false, 2)
		if countLists(client) != before {
			t.Errorf("got %d list requests in the steady state, want none", countLists(client)-before)
		}
		name := PlatformKubeRayConfiguration + ".admissionregistration.k8s.io/v1"
		if l.count(`"gained"="`+name+`"`) != 1 || l.count(`"lost"="`+name+`"`) != 1 {
			t.Errorf("got log %q, want one line each for the installation and the removal", l.lines)
		}
	})
}

// An existing configuration is known before any component is set up.
func TestPlatformKubeRayIsDetectedAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Kinds: kinds, KubeRay: newKubeRay(platformConfiguration())})
		if !w.Current().KubeRaySecures() {
			t.Error("the KubeRay of the platform was not detected")
		}
	})
}

// The set is empty until the presence of KubeRay is known. Without permission to read it, KubeRay is treated as absent.
func TestUnreadablePlatformKubeRay(t *testing.T) {
	failing := func(err error) (*dynamicfake.FakeDynamicClient, func()) {
		client, repaired := newKubeRay(platformConfiguration()), &atomic.Bool{}
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return !repaired.Load(), nil, err })
		return client, func() { repaired.Store(true) }
	}
	synctest.Test(t, func(t *testing.T) {
		client, repair := failing(errors.New("unreachable"))
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client})
		if err := w.Ready(nil); err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration of KubeRay") || w.Current().Has(RayCluster) {
			t.Errorf("Ready returned %v with capabilities %s", err, w.Current())
		}
		run(t, w)
		if w.Ready(nil) == nil {
			t.Error("want Ready to return an error")
		}
		repair()
		advance(2 * time.Minute)
		if err := w.Ready(nil); err != nil || !w.Current().KubeRaySecures() {
			t.Errorf("Ready returned %v with capabilities %s", err, w.Current())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := failing(apierrors.NewForbidden(mutatingConfigurations.GroupResource(), "", errors.New("no role")))
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client})
		if err := w.Ready(nil); err != nil || w.Current().HasPlatformKubeRay() || !w.Current().Has(RayCluster) {
			t.Errorf("Ready returned %v with capabilities %s", err, w.Current())
		}
	})
}
