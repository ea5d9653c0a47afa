package servers

import (
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// Deployments returns the desired Deployments, in order.
func Deployments(desired apply.Desired) []*appsv1ac.DeploymentApplyConfiguration {
	var all []*appsv1ac.DeploymentApplyConfiguration
	for _, o := range desired {
		if config, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			all = append(all, config)
		}
	}
	return all
}
