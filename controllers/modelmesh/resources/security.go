package resources

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// runtimeUser is the user of servers where the namespace refuses root and the platform gives no other. The images of Triton,
// TorchServe and MLServer have a user of that number, and the first two name none or name it by a word, which is refused too.
const runtimeUser = 1000

// podSecurity holds for all containers. That it does not run as root is set on each container: a server may need root.
func (p *pod) podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	if p.original() {
		return nil
	}
	return corev1ac.PodSecurityContext().
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// ownSecurity is that of containers of ModelMesh, whose images have users by number. In the original only some had one.
func (p *pod) ownSecurity(originalHad bool) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case !p.original():
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case originalHad:
		return dropAll()
	default:
		return nil
	}
}

func dropAll() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// runtimeSecurity is that of a container of the runtime. What its author says stands; only where the namespace would refuse the
// pod, what is not said is added.
func (p *pod) runtimeSecurity(given *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case given == nil && p.original():
		return dropAll()
	case given == nil && p.OpenShift:
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case given == nil && p.Restricted:
		return resources.ContainerSecurity().WithRunAsNonRoot(true).WithRunAsUser(runtimeUser)
	case given == nil:
		return resources.ContainerSecurity()
	case p.original() || p.OpenShift || !p.Restricted:
		return given
	default:
		return completed(given)
	}
}

// completed adds what a restricted namespace demands and the author does not say.
func completed(c *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	if c.AllowPrivilegeEscalation == nil {
		c.WithAllowPrivilegeEscalation(false)
	}
	if c.Capabilities == nil {
		c.WithCapabilities(corev1ac.Capabilities())
	}
	if len(c.Capabilities.Drop) == 0 {
		c.Capabilities.WithDrop("ALL")
	}
	if c.RunAsNonRoot == nil {
		c.WithRunAsNonRoot(true)
	}
	if c.RunAsUser == nil && *c.RunAsNonRoot {
		c.WithRunAsUser(runtimeUser)
	}
	return c
}
