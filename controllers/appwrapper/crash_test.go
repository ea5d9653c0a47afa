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

var errCrashed = errors.New("the process has crashed")

// crashAtWrite crashes the process at its nth write, before or after the execution of the write. It returns a pointer to a bool that the
// crash sets to true.
func (f *fixture) crashAtWrite(n int, executed bool) *bool {
	crashed := new(bool)
	writes := 0
	crash := func(request string) error {
		if *crashed {
			return errCrashed
		}
		if !strings.HasPrefix(request, "get") {
			writes++
		}
		if writes == n {
			*crashed = true
			return errCrashed
		}
		return nil
	}
	if executed {
		f.afterRequest = crash
		f.beforeRequest = func(string) error {
			if *crashed {
				return errCrashed
			}
			return nil
		}
	} else {
		f.beforeRequest = crash
	}
	return crashed
}

// reconcileWithCrash reconciles until no write follows, and restarts the process after a crash. Each write starts another reconcile.
func (f *fixture) reconcileWithCrash(crashed *bool) {
	f.Helper()
	for range 50 {
		writes := len(f.writes)
		err := f.reconcileUntilWait(45 * time.Second)
		if err == nil && len(f.writes) == writes {
			return
		}
		if err == nil {
			continue
		}
		if !*crashed {
			f.Fatal(err)
		}
		f.beforeRequest, f.afterRequest = func(string) error { return nil }, func(string) error { return nil }
		*crashed = false
		f.restart()
	}
	f.Fatal("the reconciler still writes after 50 attempts")
}

// crashScenario is a workload, the events between its reconciles, and a check of the result.
type crashScenario struct {
	name   string
	aw     *awv1beta2.AppWrapper
	events []func(*fixture)
	check  func(*fixture)
}

func expectCreatedOnce(names ...string) func(*fixture) {
	return func(f *fixture) {
		f.Helper()
		for _, name := range names {
			if n := creationCount(f, name); n != 1 {
				f.Errorf("%s was created %d times: %q", name, n, f.writes)
			}
		}
	}
}

// creationCount returns how many objects of a name were created. Rejected requests do not count.
func creationCount(f *fixture, name string) int { return len(f.createdUIDs[name]) }

func crashScenarios() []crashScenario {
	expectNoObjects := func(f *fixture) {
		f.Helper()
		for _, kind := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}} {
			if err := f.server.List(f.Context(), kind, client.InNamespace(awKey.Namespace)); err != nil || meta.LenList(kind) != 0 {
				f.Errorf("got %d objects, error %v, want none", meta.LenList(kind), err)
			}
		}
	}
	expectPhase := func(f *fixture, phase awv1beta2.AppWrapperPhase, retries int32) {
		f.Helper()
		if aw := f.get(); aw.Status.Phase != phase || aw.Status.Retries != retries {
			f.Errorf("got phase %s after %d retries, want %s after %d; last failure %+v", aw.Status.Phase, aw.Status.Retries, phase, retries, aw.Status.LastFailure)
		}
	}
	settings := generateName("settings-", "aw-uid", 1)
	return []crashScenario{
		{
			name: "success", aw: newAppWrapper([]string{podJSON("a"), configMapJSON, podJSON("b")}, withAnnotations("successTTLDuration", "30s")),
			events: []func(*fixture){
				func(f *fixture) { f.setPodPhase(corev1.PodRunning) },
				func(f *fixture) { f.setPodPhase(corev1.PodSucceeded) },
			},
			check: func(f *fixture) {
				expectCreatedOnce("a", "b", settings)(f)
				expectPhase(f, awv1beta2.PhaseSucceeded, 0)
				expectNoObjects(f)
			},
		},
		{
			name: "failure after one retry", aw: newAppWrapper([]string{podJSON("a"), configMapJSON},
				withAnnotations("retryLimit", "1", "failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "5s")),
			events: []func(*fixture){
				func(f *fixture) { f.setPodPhase(corev1.PodFailed) },
				func(f *fixture) { f.setPodPhase(corev1.PodFailed) },
			},
			check: func(f *fixture) {
				for _, name := range []string{"a", settings} {
					if n := creationCount(f, name); n != 2 {
						f.Errorf("%s was created %d times, want twice", name, n)
					}
				}
				expectPhase(f, awv1beta2.PhaseFailed, 1)
				expectNoObjects(f)
			},
		},
		{
			name: "suspension, resumption and deletion", aw: newAppWrapper([]string{configMapJSON, namedConfigMapJSON, podJSON("a")}),
			events: []func(*fixture){
				func(f *fixture) { f.setPodPhase(corev1.PodRunning) },
				func(f *fixture) { f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true }) },
				func(f *fixture) { expectPhase(f, awv1beta2.PhaseSuspended, 0); expectNoObjects(f) },
				func(f *fixture) { f.updateAppWrapper(func(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = false }) },
				func(f *fixture) { expectPhase(f, awv1beta2.PhaseRunning, 0) },
				func(f *fixture) {
					if err := f.server.Delete(f.Context(), f.get()); err != nil {
						f.Fatal(err)
					}
				},
			},
			check: func(f *fixture) {
				expectNoObjects(f)
				if err := f.server.Get(f.Context(), awKey, &awv1beta2.AppWrapper{}); !apierrors.IsNotFound(err) {
					f.Errorf("got error %v, want the AppWrapper deleted", err)
				}
			},
		},
	}
}

// [D11] [D10] After a crash at any write, before or after its execution, the workload continues, and each attempt creates each object once.
func TestCrashAfterAnyWrite(t *testing.T) {
	fakeapi.Exhaustive(t)
	for index := range crashScenarios() {
		for _, executed := range []bool{false, true} {
			for n := 1; ; n++ {
				scenario := crashScenarios()[index]
				crashReached := false
				t.Run(fmt.Sprintf("%s, write %d, executed %t", scenario.name, n, executed), func(t *testing.T) {
					f := newFixture(t, scenario.aw)
					crashed := f.crashAtWrite(n, executed)
					f.reconcileWithCrash(crashed)
					for _, event := range scenario.events {
						event(f)
						f.reconcileWithCrash(crashed)
					}
					crashReached = f.processes > 1
					scenario.check(f)
				})
				if !crashReached {
					if n < 8 {
						t.Errorf("%s: got %d writes, want at least 7", scenario.name, n-1)
					}
					break
				}
			}
		}
	}
}
