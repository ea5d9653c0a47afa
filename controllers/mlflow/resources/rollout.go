package resources

import (
	"slices"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// Stamp records what the pods consume on the Deployment, and on its pod template once that has changed.
func Stamp(desired apply.Desired, stamp reference.Stamp) {
	for _, o := range desired {
		if d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			stamp.Mark(d)
		}
	}
}

// WithoutClaim leaves out the volume claim, which may not be written again and again.
func WithoutClaim(desired apply.Desired) apply.Desired {
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		_, claim := o.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration)
		return claim
	})
}
