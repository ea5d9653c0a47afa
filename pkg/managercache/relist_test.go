package managercache

import (
	"context"
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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

func TestIsCustomResource(t *testing.T) {
	for name, c := range map[string]struct {
		object runtime.Object
		want   bool
	}{
		"typed built-in kind":         {&corev1.Pod{}, false},
		"metadata of a built-in kind": {objectmeta.New(corev1.SchemeGroupVersion.WithKind("Secret")), false},
		"typed custom kind":           {&awv1beta2.AppWrapper{}, true},
		"metadata of a custom kind":   {objectmeta.New(capability.HTTPRoute), true},
		"metadata of an AppWrapper":   {objectmeta.New(awv1beta2.GroupVersion.WithKind("AppWrapper")), true},
	} {
		if got := isCustomResource(c.object); got != c.want {
			t.Errorf("%s: custom = %v, want %v", name, got, c.want)
		}
	}
}

// After a watch that the API server closed before its timeout, the next watch of a reflector fails with the error that makes it list.
func TestWatchClosedEarlyRelists(t *testing.T) {
	for name, c := range map[string]struct {
		seconds *int64
		elapsed time.Duration
		between func(toolscache.ListerWatcherWithContext) error
		expired bool
	}{
		"closed early":            {new(int64(600)), 599 * time.Second, nil, true},
		"timeout reached":         {new(int64(600)), 600 * time.Second, nil, false},
		"no timeout":              {nil, time.Second, nil, false},
		"list in between":         {new(int64(600)), time.Second, list, false},
		"watch with initial list": {new(int64(600)), time.Second, watchList, false},
	} {
		t.Run(name, func(t *testing.T) {
			relists := 0
			clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			lw := toolscache.ToListerWatcherWithContext(listWatchCustomResources(&toolscache.ListWatch{
				ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, nil },
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}, "", clk, func() { relists++ }))
			for round := range 2 {
				if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: c.seconds}); err != nil {
					t.Fatal(err)
				}
				clk.SetTime(clk.Now().Add(c.elapsed))
				if c.between != nil {
					if err := c.between(lw); err != nil {
						t.Fatal(err)
					}
				}
				_, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: c.seconds})
				if apierrors.IsResourceExpired(err) != c.expired {
					t.Errorf("round %d: got error %v, want ResourceExpired: %t", round, err, c.expired)
				}
				if c.expired && relists != round+1 || !c.expired && relists > 0 {
					t.Errorf("round %d: got %d calls of onRelist", round, relists)
				}
				if err := list(lw); err != nil { // as the reflector does after the error
					t.Fatal(err)
				}
			}
		})
	}
}

func list(lw toolscache.ListerWatcherWithContext) error {
	_, err := lw.ListWithContext(context.Background(), metav1.ListOptions{})
	return err
}

func watchList(lw toolscache.ListerWatcherWithContext) error {
	_, err := lw.WatchWithContext(context.Background(), metav1.ListOptions{SendInitialEvents: new(true)})
	return err
}
