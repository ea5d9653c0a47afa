package models

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// [BR-F8] A Predictor whose runtime has no pods reports the cause of the runtime, as soon as it is known, with the time of the first failure.
func TestPredictorReportsCauseOfRuntime(t *testing.T) {
	for text, mesh := range map[string]fakeMesh{
		messageNoPods:          {fault: meshclient.ErrNoAddress},
		messageNoSupportingPod: {response: singleModel(&meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING_FAILED, Errors: []string{noInstancePrefix + "mt:sklearn"}})},
	} {
		t.Run(text, func(t *testing.T) {
			w := newTestEnv(t, predictor())
			w.mesh, w.supports = &mesh, true
			expectFailure := func(want string) *v1alpha1.FailureInfo {
				t.Helper()
				w.reconcile(aPredictor)
				f := w.status().LastFailureInfo
				if f == nil || f.Reason != v1alpha1.RuntimeUnhealthy || f.Message != want {
					t.Fatalf("lastFailureInfo %+v, want message %q", f, want)
				}
				patches := len(w.patches)
				w.reconcile(aPredictor)
				if len(w.patches) != patches {
					t.Errorf("a second reconcile patched the unchanged status: %s", w.patches[patches:])
				}
				return f
			}
			first := expectFailure(text)
			w.clock.SetTime(now.Add(time.Hour))
			w.runtimeCause = modelmeshcontroller.Cause{Message: "runtime r: exceeded quota"}
			if f := expectFailure(text + ": runtime r: exceeded quota"); !f.Time.Equal(first.Time) {
				t.Errorf("time of the failure %v, want %v as before", f.Time, first.Time)
			}
			w.causeUnknown = true // after a restart, the cause is unknown at first
			expectFailure(text + ": runtime r: exceeded quota")
			w.causeUnknown = false
			w.runtimeCause = modelmeshcontroller.Cause{Message: "runtime r: no container", Invalid: true}
			expectFailure(text + ": invalid runtime r: no container")
			p := &v1alpha1.Predictor{}
			if err := w.client.Get(t.Context(), inCluster, p); err != nil {
				t.Fatal(err)
			}
			if !conditions.IsTrue(p.Status.Conditions, "Stalled") || meta.IsStatusConditionTrue(p.Status.Conditions, "Reconciling") {
				t.Errorf("conditions %+v, want Stalled and not Reconciling, because only a change of the runtime helps", p.Status.Conditions)
			}
			w.runtimeCause = modelmeshcontroller.Cause{Message: "token=abc " + strings.Repeat("x", 2*maxMessage)}
			w.reconcile(aPredictor)
			if f := w.status().LastFailureInfo; len(f.Message) > maxMessage {
				t.Errorf("message of %d bytes, want at most %d", len(f.Message), maxMessage)
			}
		})
	}
}
