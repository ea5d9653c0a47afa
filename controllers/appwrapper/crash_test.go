package appwrapper

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

var errKilled = errors.New("killed")

// killAt ends the process at its nth write, before or after its execution. It reports whether that write was reached.
func (f *fixture) killAt(n int, carriedOut bool) *bool {
	crashed := new(bool)
	seen := 0
	at := func(request string) error {
		if *crashed {
			return errKilled
		}
		if !strings.HasPrefix(request, "get") {
			seen++
		}
		if seen == n {
			*crashed = true
			return errKilled
		}
		return nil
	}
	if carriedOut {
		f.after = at
		f.before = func(string) error {
			if *crashed {
				return errKilled
			}
			return nil
		}
	} else {
		f.before = at
	}
	return crashed
}

// reconcileWithCrash reconciles until idle, and restarts the process after a crash. Each write is an event that starts another reconcile.
func (f *fixture) reconcileWithCrash(crashed *bool) {
	f.Helper()
	for range 50 {
		before := len(f.writes)
		err := f.rest(45 * time.Second)
		if err == nil && len(f.writes) == before {
			return
		}
		if err == nil {
			continue
		}
		if !*crashed {
			f.Fatal(err)
		}
		f.before, f.after = func(string) error { return nil }, func(string) error { return nil }
		*crashed = false
		f.restart()
	}
	f.Fatal("the AppWrapper does not reach the steady state")
}

// run is a scenario: the events during the reconciles, and the expected result.
type run struct {
	name   string
	aw     *awv1beta2.AppWrapper
	events []func(*fixture)
	check  func(*fixture)
}

func createdOnce(names ...string) func(*fixture) {
	return func(w *fixture) {
		w.Helper()
		for _, name := range names {
			if n := created(w, name); n != 1 {
				w.Errorf("%s was created %d times: %q", name, n, w.writes)
			}
		}
	}
}

// created returns the number of created objects of a name by uid, since some requests were rejected.
func created(w *fixture, name string) int { return len(w.born[name]) }

func runs() []run {
	clean := func(w *fixture) {
		w.Helper()
		for _, kind := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}} {
			if err := w.server.List(w.Context(), kind, client.InNamespace(awKey.Namespace)); err != nil || meta.LenList(kind) != 0 {
				w.Errorf("%d objects are left (%v)", meta.LenList(kind), err)
			}
		}
	}
	phase := func(w *fixture, phase awv1beta2.AppWrapperPhase, retries int32) {
		w.Helper()
		if aw := w.get(); aw.Status.Phase != phase || aw.Status.Retries != retries {
			w.Errorf("phase %s after %d retries, want %s after %d: %+v", aw.Status.Phase, aw.Status.Retries, phase, retries, aw.Status.LastFailure)
		}
	}
	settings := generateName("settings-", "aw-uid", 1)
	return []run{
		{
			name: "success", aw: wrapper([]string{wrappedPod("a"), mapTemplate, wrappedPod("b")}, annotated("successTTLDuration", "30s")),
			events: []func(*fixture){
				func(w *fixture) { w.setPodPhase(corev1.PodRunning) },
				func(w *fixture) { w.setPodPhase(corev1.PodSucceeded) },
			},
			check: func(w *fixture) {
				createdOnce("a", "b", settings)(w)
				phase(w, awv1beta2.PhaseSucceeded, 0)
				clean(w)
			},
		},
		{
			name: "failure with a retry", aw: wrapper([]string{wrappedPod("a"), mapTemplate},
				annotated("retryLimit", "1", "failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "5s")),
			events: []func(*fixture){
				func(w *fixture) { w.setPodPhase(corev1.PodFailed) },
				func(w *fixture) { w.setPodPhase(corev1.PodFailed) },
			},
			check: func(w *fixture) {
				for _, name := range []string{"a", settings} {
					if n := created(w, name); n != 2 {
						w.Errorf("%s was created %d times, want twice", name, n)
					}
				}
				phase(w, awv1beta2.PhaseFailed, 1)
				clean(w)
			},
		},
		{
			name: "suspended, resumed and deleted", aw: wrapper([]string{mapTemplate, fixedMap, wrappedPod("a")}),
			events: []func(*fixture){
				func(w *fixture) { w.setPodPhase(corev1.PodRunning) },
				func(w *fixture) { w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true }) },
				func(w *fixture) { phase(w, awv1beta2.PhaseSuspended, 0); clean(w) },
				func(w *fixture) { w.spec(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = false }) },
				func(w *fixture) { phase(w, awv1beta2.PhaseRunning, 0) },
				func(w *fixture) {
					if err := w.server.Delete(w.Context(), w.get()); err != nil {
						w.Fatal(err)
					}
				},
			},
			check: func(w *fixture) {
				clean(w)
				if err := w.server.Get(w.Context(), awKey, &awv1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
					w.Errorf("the AppWrapper is still there: %v", err)
				}
			},
		},
	}
}

// [D11] [D10] A crash at any write, executed or not, does not lose, duplicate or fail a workload.
func TestCrashAfterAnyWrite(t *testing.T) {
	fakeapi.Exhaustive(t)
	for index := range runs() {
		for _, carriedOut := range []bool{false, true} {
			for n := 1; ; n++ {
				r := runs()[index]
				reached := false
				t.Run(fmt.Sprintf("%s, write %d, carried out %t", r.name, n, carriedOut), func(t *testing.T) {
					w := newFixture(t, r.aw)
					killed := w.killAt(n, carriedOut)
					w.reconcileWithCrash(killed)
					for _, happens := range r.events {
						happens(w)
						w.reconcileWithCrash(killed)
					}
					reached = w.restarts > 1
					r.check(w)
				})
				if !reached {
					if n < 8 {
						t.Errorf("%s: only %d writes", r.name, n-1)
					}
					break
				}
			}
		}
	}
}
