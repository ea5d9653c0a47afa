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

// TestWhyAModelWaits follows a model whose runtime has no pods [BR-F8].
func TestWhyAModelWaits(t *testing.T) {
	for text, mesh := range map[string]fakeMesh{
		messageNoPods:          {fault: meshclient.ErrNoAddress},
		messageNoSupportingPod: {answer: one(&meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING_FAILED, Errors: []string{noInstancePrefix + "mt:sklearn"}})},
	} {
		t.Run(text, func(t *testing.T) {
			w := newTestEnv(t, predictor())
			w.mesh, w.supports = &mesh, true
			says := func(want string) *v1alpha1.FailureInfo {
				t.Helper()
				w.reconcile(aPredictor)
				f := w.status().LastFailureInfo
				if f == nil || f.Reason != v1alpha1.RuntimeUnhealthy || f.Message != want {
					t.Fatalf("%+v, want %q", f, want)
				}
				patches := len(w.patches)
				w.reconcile(aPredictor)
				if len(w.patches) != patches {
					t.Errorf("the status was written again: %s", w.patches[patches:])
				}
				return f
			}
			first := says(text)
			w.clock.SetTime(now.Add(time.Hour))
			w.why = modelmeshcontroller.Cause{Message: "runtime r: exceeded quota"}
			if f := says(text + ": runtime r: exceeded quota"); !f.Time.Equal(first.Time) {
				t.Errorf("it waits since %v, not %v", f.Time, first.Time)
			}
			w.unseen = true // as after a restart
			says(text + ": runtime r: exceeded quota")
			w.unseen = false
			w.why = modelmeshcontroller.Cause{Message: "runtime r: no container", Invalid: true}
			says(text + ": invalid runtime r: no container")
			p := &v1alpha1.Predictor{}
			if err := w.client.Get(t.Context(), inCluster, p); err != nil {
				t.Fatal(err)
			}
			if !conditions.IsTrue(p.Status.Conditions, "Stalled") || meta.IsStatusConditionTrue(p.Status.Conditions, "Reconciling") {
				t.Errorf("a model that waits for a change of its runtime has %+v", p.Status.Conditions)
			}
			w.why = modelmeshcontroller.Cause{Message: "token=abc " + strings.Repeat("x", 2*maxMessage)}
			w.reconcile(aPredictor)
			if f := w.status().LastFailureInfo; len(f.Message) > maxMessage {
				t.Errorf("%d bytes of a cause", len(f.Message))
			}
		})
	}
}
