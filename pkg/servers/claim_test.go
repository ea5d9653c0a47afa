package servers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Only an unbound claim without a class gets one.
func TestSetStorageClassIfUnbound(t *testing.T) {
	claim := func(phase corev1.PersistentVolumeClaimPhase, volume string, class *string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume, StorageClassName: class},
			Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		class *string
		want  string
	}{
		"no class":            {claim(corev1.ClaimPending, "", nil), new("fast"), "fast"},
		"other class":         {claim(corev1.ClaimPending, "", new("slow")), new("fast"), "slow"},
		"bound":               {claim(corev1.ClaimBound, "v", nil), new("fast"), "unset"},
		"volume assigned":     {claim(corev1.ClaimPending, "v", nil), new("fast"), "unset"},
		"empty desired class": {claim(corev1.ClaimPending, "", nil), new(""), "unset"},
		"no desired class":    {claim(corev1.ClaimPending, "", nil), nil, "unset"},
	} {
		SetStorageClassIfUnbound(c.claim, c.class)
		got := "unset"
		if c.claim.Spec.StorageClassName != nil {
			got = *c.claim.Spec.StorageClassName
		}
		if got != c.want {
			t.Errorf("%s: class %q, want %q", name, got, c.want)
		}
	}
}
