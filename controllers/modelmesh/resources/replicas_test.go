package resources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

var (
	noon             = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	scaleAfterMinute = meshsettings.ScaleToZero{Enabled: true, GracePeriod: time.Minute}
	noScaleToZero    = meshsettings.ScaleToZero{GracePeriod: time.Minute}
)

func TestDecideReplicas(t *testing.T) {
	hpa := modelmesh.Autoscale{Enabled: true, Min: 2, Max: 4}
	later := func(d time.Duration) time.Time { return noon.Add(d) }
	live := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		in   ReplicaInputs
		want Replicas
	}{
		"[modelmesh-31] replicas of the settings": {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: noScaleToZero}, Replicas{Count: 2}},
		"[modelmesh-33] replicas of the spec":     {ReplicaInputs{PodsPerRuntime: 1, SpecReplicas: new(int64(5)), ScaleToZero: noScaleToZero}, Replicas{Count: 5}},
		"spec.replicas zero":                      {ReplicaInputs{PodsPerRuntime: 1, SpecReplicas: new(int64(0)), ScaleToZero: noScaleToZero, Autoscale: hpa}, Replicas{}},
		"[M6] spec.replicas too large":            {ReplicaInputs{SpecReplicas: new(int64(70000)), ScaleToZero: noScaleToZero}, Replicas{Count: 65535}},
		"[M6] spec.replicas negative":             {ReplicaInputs{SpecReplicas: new(int64(-1)), ScaleToZero: noScaleToZero}, Replicas{}},
		"needed":                                  {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, Needed: true, IdleSince: noon, Now: later(time.Hour)}, Replicas{Count: 2}},
		"[modelmesh-98] new and not needed":       {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, Now: noon}, Replicas{IdleSince: noon}},
		"[modelmesh-98] not needed any more":      {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(2), Now: noon}, Replicas{Count: 2, IdleSince: noon, RequeueAfter: time.Minute}},
		"[modelmesh-98] within the period":        {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(2), IdleSince: noon, Now: later(40 * time.Second)}, Replicas{Count: 2, IdleSince: noon, RequeueAfter: 20 * time.Second}},
		"[modelmesh-98] after the period":         {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(2), IdleSince: noon, Now: later(time.Minute)}, Replicas{IdleSince: noon}},
		"[M25] after a restart of the operator":   {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(2), Now: later(time.Hour)}, Replicas{Count: 2, IdleSince: later(time.Hour), RequeueAfter: time.Minute}},
		"scaled to zero":                          {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(0), Now: noon}, Replicas{IdleSince: noon}},
		"scaled to zero and needed":               {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live(0), Needed: true, Now: noon}, Replicas{Count: 2}},
		"[modelmesh-99] autoscaled and idle":      {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, Autoscale: hpa, CurrentReplicas: live(0), Now: noon}, Replicas{IdleSince: noon}},
		"[modelmesh-99] autoscaled and needed":    {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, Autoscale: hpa, CurrentReplicas: live(0), Needed: true}, Replicas{Count: 2, Autoscaled: true}},
		"[M17] autoscaled and new":                {ReplicaInputs{PodsPerRuntime: 7, ScaleToZero: noScaleToZero, Autoscale: hpa}, Replicas{Count: 2, Autoscaled: true}},
		"autoscaled within the bounds":            {ReplicaInputs{PodsPerRuntime: 7, ScaleToZero: noScaleToZero, Autoscale: hpa, CurrentReplicas: live(3)}, Replicas{Count: 3, Autoscaled: true}},
		"[modelmesh-100] below the minimum":       {ReplicaInputs{ScaleToZero: noScaleToZero, PodsPerRuntime: 1, Autoscale: hpa, CurrentReplicas: live(1)}, Replicas{Count: 2, Autoscaled: true}},
		"[modelmesh-100] above the maximum":       {ReplicaInputs{ScaleToZero: noScaleToZero, PodsPerRuntime: 1, Autoscale: hpa, CurrentReplicas: live(9)}, Replicas{Count: 4, Autoscaled: true}},
		"[modelmesh-101] autoscaling disabled":    {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: noScaleToZero, CurrentReplicas: live(4)}, Replicas{Count: 2}},
		"autoscaled, idle, within the period":     {ReplicaInputs{PodsPerRuntime: 1, ScaleToZero: scaleAfterMinute, Autoscale: hpa, CurrentReplicas: live(3), IdleSince: noon, Now: noon}, Replicas{Count: 3, Autoscaled: true, IdleSince: noon, RequeueAfter: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, DecideReplicas(c.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A runtime is scaled to zero only after a whole grace period without models, and scaled up for the first model.
func TestScaleToZeroGracePeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, idleSince, idleFor := noon, time.Time{}, time.Duration(0)
		var live *int32
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step := time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
			needed := rapid.Bool().Draw(t, "needed")
			now = now.Add(step)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				idleSince, idleFor = time.Time{}, 0
			}
			r := DecideReplicas(ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: scaleAfterMinute, CurrentReplicas: live, Needed: needed, IdleSince: idleSince, Now: now})
			if needed {
				idleFor = 0
			} else if !idleSince.IsZero() {
				idleFor += step
			}
			hasPods := live != nil && *live > 0
			switch {
			case needed && r.Count != 2:
				t.Fatalf("needed: %d replicas, want 2", r.Count)
			case !needed && !hasPods && r.Count != 0:
				t.Fatalf("scaled to zero and not needed: %d replicas, want 0", r.Count)
			case !needed && hasPods && (r.Count == 0) != (idleFor >= time.Minute):
				t.Fatalf("idle for %s: %d replicas", idleFor, r.Count)
			case r.Count > 0 && !needed && r.RequeueAfter != time.Minute-idleFor:
				t.Fatalf("idle for %s: requeue after %s, want the rest of the grace period", idleFor, r.RequeueAfter)
			}
			live, idleSince = &r.Count, r.IdleSince
		}
	})
}
