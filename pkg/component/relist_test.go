package component

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func TestIsCustomResource(t *testing.T) {
	for name, c := range map[string]struct {
		object runtime.Object
		want   bool
	}{
		"a typed built-in kind":        {&corev1.Pod{}, false},
		"metadata of a built-in kind":  {capability.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret")), false},
		"a typed custom kind":          {&awv1beta2.AppWrapper{}, true},
		"metadata of a custom kind":    {capability.MetadataOf(capability.HTTPRoute), true},
		"metadata of one of our kinds": {capability.MetadataOf(awv1beta2.GroupVersion.WithKind("AppWrapper")), true},
	} {
		if got := isCustomResource(c.object); got != c.want {
			t.Errorf("%s: custom = %v, want %v", name, got, c.want)
		}
	}
}

// watched starts a watch with a timeout through withRelist.
func watched(t *testing.T, inner watch.Interface, seconds *int64) watch.Interface {
	t.Helper()
	lw := withRelist(&toolscache.ListWatch{WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return inner, nil }}, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	w, err := toolscache.ToListerWatcherWithContext(lw).WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: seconds})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWatchClosedEarlyRelists(t *testing.T) {
	inner := watch.NewFake()
	w := watched(t, inner, new(int64(600)))
	go func() {
		inner.Add(&corev1.Pod{})
		inner.Stop()
	}()
	if event := <-w.ResultChan(); event.Type != watch.Added {
		t.Errorf("got %v, want the event of the server", event)
	}
	event := <-w.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v %v, want the error that makes a reflector list again", event.Type, err)
	}
	if _, open := <-w.ResultChan(); open {
		t.Error("want the end after the error")
	}
}

func TestWatchTimeoutDoesNotRelist(t *testing.T) {
	for name, seconds := range map[string]*int64{"its time is over": new(int64(0)), "no time was asked for": nil} {
		inner := watch.NewFake()
		w := watched(t, inner, seconds)
		inner.Stop()
		if event, open := <-w.ResultChan(); open {
			t.Errorf("%s: got %v, want the end", name, event)
		}
	}
}

func TestStoppedWatchStopsServerWatch(t *testing.T) {
	inner := watch.NewFake()
	w := expireIfClosedEarly(inner, func() bool { return true })
	w.Stop()
	for range w.ResultChan() {
		t.Error("want no event after the end")
	}
	if !inner.IsStopped() {
		t.Error("the watch of the server was not stopped")
	}
}
