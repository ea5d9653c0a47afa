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
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	minute = meshsettings.ScaleToZero{Enabled: true, GracePeriod: time.Minute}
	always = meshsettings.ScaleToZero{GracePeriod: time.Minute}
)

func TestDecideReplicas(t *testing.T) {
	hpa := modelmesh.Autoscale{Enabled: true, Min: 2, Max: 4}
	later := func(d time.Duration) time.Time { return noon.Add(d) }
	live := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		in   ReplicaInputs
		want Replicas
	}{
		"[modelmesh-31] the setting":              {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: always}, Replicas{Count: 2}},
		"[modelmesh-33] the spec":                 {ReplicaInputs{PodsPerRuntime: 1, SpecReplicas: new(int64(5)), ScaleToZero: always}, Replicas{Count: 5}},
		"spec.replicas unset":                     {ReplicaInputs{PodsPerRuntime: 1, SpecReplicas: new(int64(0)), ScaleToZero: always, Autoscale: hpa}, Replicas{}},
		"[M6] spec.replicas too large":            {ReplicaInputs{SpecReplicas: new(int64(70000)), ScaleToZero: always}, Replicas{Count: 65535}},
		"[M6] spec.replicas negative":             {ReplicaInputs{SpecReplicas: new(int64(-1)), ScaleToZero: always}, Replicas{}},
		"needed":                                  {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, Needed: true, IdleSince: noon, Now: later(time.Hour)}, Replicas{Count: 2}},
		"[modelmesh-98] new and not needed":       {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, Now: noon}, Replicas{IdleSince: noon}},
		"[modelmesh-98] needed no more":           {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(2), Now: noon}, Replicas{Count: 2, IdleSince: noon, RequeueAfter: time.Minute}},
		"[modelmesh-98] within the period":        {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(2), IdleSince: noon, Now: later(40 * time.Second)}, Replicas{Count: 2, IdleSince: noon, RequeueAfter: 20 * time.Second}},
		"[modelmesh-98] after the period":         {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(2), IdleSince: noon, Now: later(time.Minute)}, Replicas{IdleSince: noon}},
		"[M25] the program has just started":      {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(2), Now: later(time.Hour)}, Replicas{Count: 2, IdleSince: later(time.Hour), RequeueAfter: time.Minute}},
		"scaled to zero remains so":               {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(0), Now: noon}, Replicas{IdleSince: noon}},
		"down and needed":                         {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live(0), Needed: true, Now: noon}, Replicas{Count: 2}},
		"[modelmesh-99] autoscaled and idle":      {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, Autoscale: hpa, CurrentReplicas: live(0), Now: noon}, Replicas{IdleSince: noon}},
		"[modelmesh-99] autoscaled and needed":    {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, Autoscale: hpa, CurrentReplicas: live(0), Needed: true}, Replicas{Count: 2, Autoscaled: true}},
		"[M17] autoscaled and new":                {ReplicaInputs{PodsPerRuntime: 7, ScaleToZero: always, Autoscale: hpa}, Replicas{Count: 2, Autoscaled: true}},
		"autoscaled and scaled":                   {ReplicaInputs{PodsPerRuntime: 7, ScaleToZero: always, Autoscale: hpa, CurrentReplicas: live(3)}, Replicas{Count: 3, Autoscaled: true}},
		"[modelmesh-100] the minimum was raised":  {ReplicaInputs{ScaleToZero: always, PodsPerRuntime: 1, Autoscale: hpa, CurrentReplicas: live(1)}, Replicas{Count: 2, Autoscaled: true}},
		"[modelmesh-100] the maximum was lowered": {ReplicaInputs{ScaleToZero: always, PodsPerRuntime: 1, Autoscale: hpa, CurrentReplicas: live(9)}, Replicas{Count: 4, Autoscaled: true}},
		"[modelmesh-101] autoscaled no more":      {ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: always, CurrentReplicas: live(4)}, Replicas{Count: 2}},
		"autoscaled, idle, within the period":     {ReplicaInputs{PodsPerRuntime: 1, ScaleToZero: minute, Autoscale: hpa, CurrentReplicas: live(3), IdleSince: noon, Now: noon}, Replicas{Count: 3, Autoscaled: true, IdleSince: noon, RequeueAfter: time.Minute}},
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
		now, idle, idleFor := noon, time.Time{}, time.Duration(0)
		var live *int32
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step := time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
			needed := rapid.Bool().Draw(t, "needed")
			now = now.Add(step)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				idle, idleFor = time.Time{}, 0
			}
			r := DecideReplicas(ReplicaInputs{PodsPerRuntime: 2, ScaleToZero: minute, CurrentReplicas: live, Needed: needed, IdleSince: idle, Now: now})
			if needed {
				idleFor = 0
			} else if !idle.IsZero() {
				idleFor += step
			}
			before := live != nil && *live > 0
			switch {
			case needed && r.Count != 2:
				t.Fatalf("needed, and %d pods", r.Count)
			case !needed && !before && r.Count != 0:
				t.Fatalf("down and not needed, and %d pods", r.Count)
			case !needed && before && (r.Count == 0) != (idleFor >= time.Minute):
				t.Fatalf("idle for %s, and %d pods", idleFor, r.Count)
			case r.Count > 0 && !needed && r.RequeueAfter != time.Minute-idleFor:
				t.Fatalf("idle for %s, looks again in %s", idleFor, r.RequeueAfter)
			}
			live, idle = &r.Count, r.IdleSince
		}
	})
}
