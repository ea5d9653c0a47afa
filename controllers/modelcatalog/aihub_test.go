package modelcatalog

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// Nothing is written or deleted before the AIHub has been read, because it may override settings. If its API is not served, the Catalog
// does not wait.
func TestReconcileWaitsForAIHub(t *testing.T) {
	hub := aihub.NewWatcher(fake.NewSimpleDynamicClient(runtime.NewScheme()), clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard())
	hub.SetServed(true)
	r := &catalogReconciler{
		aihub: hub, settings: Settings{ModelRegistry: config.ModelRegistry{Namespace: "set"}}, Reconciler: &servers.Reconciler{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))},
		served: func() capability.Set { return capability.NewSet() },
	}
	for name, phase := range map[string]func() error{
		"first phase": func() error { return r.phases()[0].Run(t.Context(), &aihubv1alpha1.Catalog{}) },
		"finalize": func() error {
			return r.finalize(t.Context(), &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Name: aihubv1alpha1.CatalogName}})
		},
	} {
		if wait, ok := errors.AsType[*reconciler.Wait](phase()); !ok || wait.Retry != reconciler.RequeueSoon {
			t.Errorf("%s: got %+v, want a wait of one second", name, wait)
		}
	}
	hub.SetServed(false) // the API of AIHub is not installed
	if err := r.waitForPlatform(&aihubv1alpha1.Catalog{}); err != nil || r.stateOf("").platform.Namespace != "set" {
		t.Errorf("without the API of AIHub: error %v, settings %+v; want the namespace of the settings", err, r.stateOf("").platform)
	}
}
