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

// [BR-F8] A Predictor whose runtime has no pods reports the cause as soon as it is known, with the time of the first failure.
func TestPredictorReportsCauseOfRuntime(t *testing.T) {
	for prefix, mesh := range map[string]fakeMesh{
		messageNoPods:          {err: meshclient.ErrNoAddress},
		messageNoSupportingPod: {response: singleModelResponse(&meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING_FAILED, Errors: []string{noInstancePrefix + "mt:sklearn"}})},
	} {
		t.Run(prefix, func(t *testing.T) {
			env := newTestEnv(t, newPredictor())
			env.mesh, env.hasRuntime = &mesh, true
			expectFailure := func(want string) *v1alpha1.FailureInfo {
				t.Helper()
				env.reconcile(predictorKey)
				f := env.status().LastFailureInfo
				if f == nil || f.Reason != v1alpha1.RuntimeUnhealthy || f.Message != want {
					t.Fatalf("lastFailureInfo %+v, want message %q", f, want)
				}
				patches := len(env.patches)
				env.reconcile(predictorKey)
				if len(env.patches) != patches {
					t.Errorf("the second reconcile patched the unchanged status: %s", env.patches[patches:])
				}
				return f
			}
			first := expectFailure(prefix)
			env.clock.SetTime(now.Add(time.Hour))
			env.runtimeCause = modelmeshcontroller.Cause{Message: "runtime r: exceeded quota"}
			if f := expectFailure(prefix + ": runtime r: exceeded quota"); !f.Time.Equal(first.Time) {
				t.Errorf("time of the failure %v, want %v as before", f.Time, first.Time)
			}
			env.causeUnknown = true // as after a restart
			expectFailure(prefix + ": runtime r: exceeded quota")
			env.causeUnknown = false
			env.runtimeCause = modelmeshcontroller.Cause{Message: "runtime r: no container", Invalid: true}
			expectFailure(prefix + ": invalid runtime r: no container")
			p := &v1alpha1.Predictor{}
			if err := env.client.Get(t.Context(), objectKey, p); err != nil {
				t.Fatal(err)
			}
			if !conditions.IsTrue(p.Status.Conditions, "Stalled") || meta.IsStatusConditionTrue(p.Status.Conditions, "Reconciling") {
				t.Errorf("conditions %+v, want Stalled and not Reconciling, because the runtime must be changed", p.Status.Conditions)
			}
			env.runtimeCause = modelmeshcontroller.Cause{Message: "token=abc " + strings.Repeat("x", 2*maxMessageBytes)}
			env.reconcile(predictorKey)
			if f := env.status().LastFailureInfo; len(f.Message) > maxMessageBytes || strings.Contains(f.Message, "token=abc") {
				t.Errorf("message %.90q of %d bytes, want at most %d without the token", f.Message, len(f.Message), maxMessageBytes)
			}
		})
	}
}
