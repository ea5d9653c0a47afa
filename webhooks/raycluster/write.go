package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// write applies the plan to an object: it removes elements that are no longer desired, and then adds the desired ones in the order of the
// CodeFlare operator.
func (p *plan) write(object map[string]any, version string) {
	p.writeVersion(object, version)
	for _, g := range p.groups {
		if rayContainerProblem(g) == "" {
			pod := nested.Map(object, g.podPath()...)
			p.removeInjected(g, pod)
			p.writeGroup(g, pod)
			if g.isHead {
				p.writeServiceAccount(object, pod)
			}
		}
	}
	p.writeAutoscaler(object)
}

func annotationsOf(object map[string]any) map[string]any {
	return ensureObject(ensureObject(object, "metadata"), "annotations")
}

func (p *plan) writeVersion(object map[string]any, version string) {
	value, desired := p.version(version)
	if desired {
		annotationsOf(object)[raycluster.AnnotationVersion] = value
	} else {
		delete(nested.Map(object, "metadata", "annotations"), raycluster.AnnotationVersion)
	}
}

// removeInjected removes injected elements that are no longer desired from a pod spec [R28]. It compares the content of elements and not
// only their names: users may have a container or volume of the same name.
func (p *plan) removeInjected(g *group, pod map[string]any) {
	managed := p.cluster.Managed()
	volumes := nested.List(pod, "volumes") // as submitted: Sidecar and HasVolume need all volumes of the pod
	keep := namesOf(slices.Concat([]element{g.sidecar}, g.sidecarVolumes, g.volumes))
	dropElements(pod, "containers", func(c element) bool {
		return managed.Sidecar(c, volumes).UsesSidecar() && !slices.Contains(keep, nested.String(c, "name"))
	})
	dropElements(pod, "volumes", func(v element) bool {
		return managed.HasVolume(v, volumes) && !slices.Contains(keep, nested.String(v, "name"))
	})
	if g.env == nil && managed.HasAuthority(volumes) {
		dropElements(pod, "initContainers", managed.HasInitContainer)
		p.removeTLS(nested.Map(pod, "containers", "0"))
	}
}

// removeTLS removes the TLS variables and mounts from a container or the autoscaler options.
func (p *plan) removeTLS(container map[string]any) {
	dropElements(container, "env", func(v element) bool {
		return slices.ContainsFunc(p.variables, func(injected element) bool { return equalElements(v, injected) })
	})
	dropElements(container, "volumeMounts", func(m element) bool { return hasSameMount(m, p.mounts) })
}

// hasSameMount reports whether injected contains a mount with the same volume and path.
func hasSameMount(mount element, injected []element) bool {
	return slices.ContainsFunc(injected, func(m element) bool { return mount["name"] == m["name"] && mount["mountPath"] == m["mountPath"] })
}

func namesOf(elements []element) []string {
	var names []string
	for _, e := range elements {
		names = append(names, nested.String(e, "name"))
	}
	return names
}

func (p *plan) writeGroup(g *group, pod map[string]any) {
	if g.sidecar != nil {
		upsertContainer(pod, "containers", g.sidecar)
	}
	if g.initContainer != nil {
		upsertContainer(pod, "initContainers", g.initContainer)
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
	if p.autoscaler.env == nil && nested.ByName(nested.List(options, "volumeMounts"), raycluster.VolumeServer) != nil {
		p.removeTLS(options)
	}
	if !slices.Contains(namesOf(p.autoscaler.mounts), raycluster.VolumeToken) {
		dropElements(options, "volumeMounts", func(m element) bool { return hasSameMount(m, []element{p.token}) })
	}
	if len(p.autoscaler.env)+len(p.autoscaler.mounts) > 0 {
		p.writeTLS(ensureObject(nested.Map(object, "spec"), "autoscalerOptions"), p.autoscaler.env, p.autoscaler.mounts)
	}
}

// writeServiceAccount sets the ServiceAccount of the head, if the head has or had an injected sidecar. An annotation stores an overwritten
// ServiceAccount of the user until it can be restored [R28] [R30].
func (p *plan) writeServiceAccount(object, pod map[string]any) {
	hadSidecar := p.cluster.Injected().Sidecar.UsesSidecar() || p.old.Injected().Sidecar.UsesSidecar()
	if p.groups[0].sidecar == nil && !hadSidecar {
		return
	}
	current, desired, user := p.cluster.HeadServiceAccount(), p.serviceAccount(), p.cluster.UserServiceAccount()
	if overwritten := desired == p.names.ServiceAccount && desired != user; overwritten && user != "" && current != "" {
		annotationsOf(object)[raycluster.AnnotationServiceAccount] = user
	} else { // nothing is overwritten, or the user removed the ServiceAccount from the template
		delete(nested.Map(object, "metadata", "annotations"), raycluster.AnnotationServiceAccount)
	}
	switch desired {
	case current:
	case "":
		delete(pod, "serviceAccountName")
	default:
		pod["serviceAccountName"] = desired
	}
}
