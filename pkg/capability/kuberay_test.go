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

func ofPlatform() *unstructured.Unstructured {
	return configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", service("/mutate-ray-io-v1-raycluster"))
}

func TestIsPlatformKubeRay(t *testing.T) {
	for name, test := range map[string]struct {
		configuration *unstructured.Unstructured
		want          bool
	}{
		"no webhook":         {nil, false},
		"of the platform":    {ofPlatform(), true},
		"called by its URL":  {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", map[string]any{"url": "https://example.com:9443/mutate-ray-io-v1-raycluster"}), true},
		"of another name":    {configuration("mutating-webhook-configuration", "mraycluster.kb.io", service("/mutate-ray-io-v1-raycluster")), false},
		"another webhook":    {configuration(PlatformKubeRayConfiguration, "mraycluster.ray.openshift.ai", service("/mutate-ray-io-v1-raycluster")), false},
		"another path":       {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", service("/mutate-ray-io-v1-rayjob")), false},
		"without a client":   {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", nil), false},
		"an address, no URL": {configuration(PlatformKubeRayConfiguration, "mraycluster.kb.io", map[string]any{"url": "%"}), false},
		"webhooks of another type": {&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": PlatformKubeRayConfiguration}, "webhooks": "mraycluster.kb.io"}}, false},
	} {
		if got := IsPlatformKubeRay(test.configuration); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestPlatformKubeRayInASet(t *testing.T) {
	plain, shift := NewSet(RayCluster), NewSet(RayCluster, Route)
	for name, test := range map[string]struct {
		set            Set
		there, secures bool
	}{
		"plain":                  {plain, false, false},
		"without Routes":         {plain.WithPlatformKubeRay(true), true, false}, // its webhook looks for them as well
		"with Routes":            {shift.WithPlatformKubeRay(true), true, true},
		"removed":                {shift.WithPlatformKubeRay(true).WithPlatformKubeRay(false), false, false},
		"of a community, Routes": {shift, false, false},
	} {
		if test.set.PlatformKubeRay() != test.there || test.set.KubeRaySecures() != test.secures {
			t.Errorf("%s: PlatformKubeRay returned %t, KubeRaySecures %t", name, test.set.PlatformKubeRay(), test.set.KubeRaySecures())
		}
	}
	if shift.Equal(shift.WithPlatformKubeRay(true)) || !shift.WithPlatformKubeRay(true).Equal(shift.WithPlatformKubeRay(true)) {
		t.Error("Equal ignores the KubeRay of the platform, or is not reflexive")
	}
}

func newKubeRay(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{mutatingConfigurations: "MutatingWebhookConfigurationList"}, objects...)
}

// lists returns the number of list requests.
func lists(client *dynamicfake.FakeDynamicClient) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "list" {
			n++
		}
	}
	return n
}

// The KubeRay of the platform is watched without reads in the steady state, and every change is reported once.
func TestPlatformKubeRayIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, l, recorder := newKubeRay(), &logs{}, &changes{}
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client, Log: l.logger()})
		if w.Ready(nil) != nil || !w.Current().Has(RayCluster) || w.Current().PlatformKubeRay() {
			t.Fatal("want Ready, RayCluster served, and no KubeRay of the platform")
		}
		w.Subscribe(t.Context(), recorder.add)
		run(t, w)
		pass(time.Second)
		at := lists(client)
		want := func(there bool, reported int) {
			t.Helper()
			pass(time.Second)
			if w.Current().KubeRaySecures() != there || recorder.len() != reported || !w.Current().Has(RayCluster) {
				t.Errorf("%t after %d changes: %s", w.Current().KubeRaySecures(), recorder.len(), w.Current())
			}
		}
		want(false, 0)
		of := client.Tracker()
		if err := of.Add(ofPlatform()); err != nil {
			t.Fatal(err)
		}
		want(true, 1)
		changed := ofPlatform()
		nested.Map(changed.Object, "webhooks", "1")["failurePolicy"] = "Ignore"
		if err := of.Update(mutatingConfigurations, changed, ""); err != nil {
			t.Fatal(err)
		}
		want(true, 1)
		if err := of.Delete(mutatingConfigurations, "", PlatformKubeRayConfiguration); err != nil {
			t.Fatal(err)
		}
		want(false, 2)
		pass(time.Hour)
		want(false, 2)
		if lists(client) != at {
			t.Errorf("%d reads at rest", lists(client)-at)
		}
		name := PlatformKubeRayConfiguration + ".admissionregistration.k8s.io/v1"
		if l.with(`"gained"="`+name+`"`) != 1 || l.with(`"lost"="`+name+`"`) != 1 {
			t.Error(l.lines)
		}
	})
}

// An existing configuration is known before any component is set up.
func TestPlatformKubeRayAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Kinds: kinds, KubeRay: newKubeRay(ofPlatform())})
		if !w.Current().KubeRaySecures() {
			t.Error("the KubeRay of the platform was not detected")
		}
	})
}

// The set is empty until the presence of KubeRay is known. Without the permission KubeRay counts as absent.
func TestPlatformKubeRayThatCannotBeRead(t *testing.T) {
	failing := func(err error) (*dynamicfake.FakeDynamicClient, func()) {
		client, mended := newKubeRay(ofPlatform()), &atomic.Bool{}
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return !mended.Load(), nil, err })
		return client, func() { mended.Store(true) }
	}
	synctest.Test(t, func(t *testing.T) {
		client, mend := failing(errors.New("away"))
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client})
		if err := w.Ready(nil); err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration of KubeRay") || w.Current().Has(RayCluster) {
			t.Errorf("ready: %v, %s", err, w.Current())
		}
		run(t, w)
		if w.Ready(nil) == nil {
			t.Error("want Ready to return an error")
		}
		mend()
		pass(2 * time.Minute)
		if err := w.Ready(nil); err != nil || !w.Current().KubeRaySecures() {
			t.Errorf("Ready returned %v with capabilities %s", err, w.Current())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, _ := failing(apierrors.NewForbidden(mutatingConfigurations.GroupResource(), "", errors.New("no role")))
		w := New(Options{Discovery: newDiscovery(RayCluster, Route), Metadata: newCluster(t), Kinds: kinds, KubeRay: client})
		if err := w.Ready(nil); err != nil || w.Current().PlatformKubeRay() || !w.Current().Has(RayCluster) {
			t.Errorf("Ready returned %v with capabilities %s", err, w.Current())
		}
	})
}
