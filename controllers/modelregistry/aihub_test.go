package modelregistry

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Nothing is written or deleted before the AIHub has been read, because it may override settings.
func TestReconcileWaitsForAIHub(t *testing.T) {
	hub := aihub.NewWatcher(fake.NewSimpleDynamicClient(runtime.NewScheme()), clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard())
	hub.SetServed(true)
	r := &registryReconciler{
		aihub: hub, settings: Settings{ModelRegistry: config.ModelRegistry{Namespace: "set"}}, served: func() capability.Set { return capability.NewSet() },
	}
	for name, phase := range map[string]func() error{
		"phase":    func() error { return r.phases()[0].Run(t.Context(), &v1beta1.ModelRegistry{}) },
		"finalize": func() error { return r.finalize(t.Context(), &v1beta1.ModelRegistry{}) },
	} {
		if wait, ok := errors.AsType[*reconciler.Wait](phase()); !ok || wait.Retry != time.Second {
			t.Errorf("%s: got %+v, want a wait of one second", name, wait)
		}
	}
	hub.SetServed(false) // the API of AIHub is not installed
	m := &v1beta1.ModelRegistry{}
	if err := r.waitForPlatform(t.Context(), m); err != nil || r.stateOf(m).platform.Namespace != "set" {
		t.Errorf("without the API of AIHub: error %v, settings %+v; want the namespace of the settings", err, r.stateOf(m).platform)
	}
}
