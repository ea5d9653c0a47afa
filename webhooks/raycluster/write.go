package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// write puts the plan into an object of its own: what is no longer wanted goes first, then everything comes in the order in which it
// always came.
func (p *plan) write(object map[string]any, version string) {
	p.writeVersion(object, version)
	for _, g := range p.groups {
		if rayContainerProblem(g) == "" {
			pod := nested.Map(object, g.podPath()...)
			p.removeInjected(g, pod)
			p.writeGroup(g, pod)
			if g.head {
				p.writeAccount(object, pod)
			}
		}
	}
	p.writeAutoscaler(object)
}

func annotationsOf(object map[string]any) map[string]any {
	return child(child(object, "metadata"), "annotations")
}

func (p *plan) writeVersion(object map[string]any, version string) {
	value, belongs := p.version(version)
	if belongs {
		annotationsOf(object)[raycluster.AnnotationVersion] = value
	} else {
		delete(nested.Map(object, "metadata", "annotations"), raycluster.AnnotationVersion)
	}
}

// withdraw takes out of a pod spec what is ours and no longer wanted (R28). An element is ours when it says what we write, and not by its
// name alone: a user may have a container or a volume of such a name where we have none.
func (p *plan) removeInjected(g *group, pod map[string]any) {
	ours := p.cluster.Managed()
	volumes := nested.List(pod, "volumes") // as they are now: what they say of each other changes with the first that goes
	keep := namesOf(slices.Concat([]element{g.sidecar}, g.sidecarVolumes, g.volumes))
	dropElements(pod, "containers", func(c element) bool {
		return ours.Sidecar(c, volumes).Sidecar() && !slices.Contains(keep, nested.Text(c, "name"))
	})
	dropElements(pod, "volumes", func(v element) bool {
		return ours.HasVolume(v, volumes) && !slices.Contains(keep, nested.Text(v, "name"))
	})
	if g.env == nil && ours.HasAuthority(volumes) {
		dropElements(pod, "initContainers", ours.HasInitContainer)
		p.removeTLS(nested.Map(pod, "containers", "0"))
	}
}

// withdrawTLS takes the variables and mounts out of a container, or something like it.
func (p *plan) removeTLS(container map[string]any) {
	dropElements(container, "env", func(v element) bool {
		return slices.ContainsFunc(p.variables, func(written element) bool { return equalElements(v, written) })
	})
	dropElements(container, "volumeMounts", func(m element) bool { return hasSameMount(m, p.mounts) })
}

// mounts tells whether a mount has the volume and the path of one that we write.
func hasSameMount(mount element, written []element) bool {
	return slices.ContainsFunc(written, func(w element) bool { return mount["name"] == w["name"] && mount["mountPath"] == w["mountPath"] })
}

func namesOf(elements []element) []string {
	var names []string
	for _, e := range elements {
		names = append(names, nested.Text(e, "name"))
	}
	return names
}

func (p *plan) writeGroup(g *group, pod map[string]any) {
	if g.sidecar != nil {
		upsertContainer(pod, "containers", g.sidecar)
	}
	if g.certificate != nil {
		upsertContainer(pod, "initContainers", g.certificate)
	}
	for _, volume := range slices.Concat(g.sidecarVolumes, g.volumes) {
		upsert(pod, "volumes", volume)
	}
	p.writeTLS(nested.Map(pod, "containers", "0"), g.env, g.mounts)
}

func (p *plan) writeTLS(container map[string]any, env, mounts []element) {
	for _, variable := range env {
		upsert(container, "env", variable)
	}
	for _, mount := range mounts {
		upsert(container, "volumeMounts", mount)
	}
}

func (p *plan) writeAutoscaler(object map[string]any) {
	options := nested.Map(object, autoscalerOptions...)
	if p.autoscaler.env == nil && nested.Named(nested.List(options, "volumeMounts"), raycluster.VolumeServer) != nil {
		p.removeTLS(options)
	}
	if !slices.Contains(namesOf(p.autoscaler.mounts), raycluster.VolumeToken) {
		dropElements(options, "volumeMounts", func(m element) bool { return hasSameMount(m, []element{p.token}) })
	}
	if len(p.autoscaler.env)+len(p.autoscaler.mounts) > 0 {
		p.writeTLS(child(nested.Map(object, "spec"), "autoscalerOptions"), p.autoscaler.env, p.autoscaler.mounts)
	}
}

// writeAccount sets the account of the head, where there is or was a sidecar of ours. That of its user is remembered, so that
// it can come back (R28, R30).
func (p *plan) writeAccount(object, pod map[string]any) {
	wasGuarded := p.cluster.Injected().Sidecar.Sidecar() || p.old.Injected().Sidecar.Sidecar()
	if p.groups[0].sidecar == nil && !wasGuarded {
		return
	}
	present, wanted, user := p.cluster.HeadServiceAccount(), p.serviceAccount(), p.cluster.UserServiceAccount()
	if overwritten := wanted == p.names.ServiceAccount && wanted != user; overwritten && user != "" && present != "" {
		annotationsOf(object)[raycluster.AnnotationServiceAccount] = user
	} else { // nothing is overwritten, or the user took the name of the account out of the template
		delete(nested.Map(object, "metadata", "annotations"), raycluster.AnnotationServiceAccount)
	}
	switch wanted {
	case present:
	case "":
		delete(pod, "serviceAccountName")
	default:
		pod["serviceAccountName"] = wanted
	}
}
