package raycluster

import (
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// write puts the plan into the object: what is no longer wanted goes first, then everything comes in the order in which it
// always came.
func (p *plan) write(e *edit, version string) {
	if !p.mode.Active() {
		return
	}
	p.writeVersion(e, version)
	p.withdraw(e)
	for _, g := range p.groups {
		p.writeGroup(e, g)
	}
	for _, variable := range p.autoscaler.env {
		e.upsert(autoscalerEnv, variable)
	}
	for _, mount := range p.autoscaler.mounts {
		e.upsert(autoscalerMounts, mount)
	}
}

var annotations = place{"metadata", "annotations"}

func (p *plan) writeVersion(e *edit, version string) {
	value, belongs := p.version(version)
	present, there := p.cluster.Annotation(raycluster.AnnotationVersion)
	switch {
	case belongs && (!there || present != value):
		e.set(annotations.child(raycluster.AnnotationVersion), value)
	case !belongs && there:
		e.remove(annotations.child(raycluster.AnnotationVersion))
	}
}

func (p *plan) writeGroup(e *edit, g *group) {
	pod := g.pod()
	containers := pod.child("containers")
	if g.sidecar != nil {
		e.upsertContainer(containers, g.sidecar)
		for _, volume := range g.sidecarVolumes {
			e.upsert(pod.child("volumes"), volume)
		}
	}
	if g.head && rayContainer(g) == "" {
		p.writeAccount(e, pod.child("serviceAccountName"))
	}
	for _, variable := range g.env {
		e.upsert(containers.child("0", "env"), variable)
	}
	if g.certificate != nil {
		e.upsertContainer(pod.child("initContainers"), g.certificate)
	}
	for _, volume := range g.volumes {
		e.upsert(pod.child("volumes"), volume)
	}
	for _, mount := range g.mounts {
		e.upsert(containers.child("0", "volumeMounts"), mount)
	}
}

// writeAccount sets the account of the head, where there is or was a sidecar of ours. That of its user is remembered, so that
// it can come back (R28, R30).
func (p *plan) writeAccount(e *edit, at place) {
	if p.groups[0].sidecar == nil && !p.guarded() {
		return
	}
	present, wanted, user := p.cluster.HeadAccount(), p.account(), p.cluster.UserAccount()
	remembered, there := p.cluster.Annotation(raycluster.AnnotationServiceAccount)
	overwritten := wanted == p.names.ServiceAccount && wanted != user
	switch {
	case !overwritten || user == "" || present == "":
		// Nothing is overwritten, or the user took the name of the account out of the template.
		if there {
			e.remove(annotations.child(raycluster.AnnotationServiceAccount))
		}
	case remembered != user:
		e.set(annotations.child(raycluster.AnnotationServiceAccount), user)
	}
	switch {
	case present == wanted:
	case wanted == "":
		e.remove(at)
	default:
		e.set(at, wanted)
	}
}
