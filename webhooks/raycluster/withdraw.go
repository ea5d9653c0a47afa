package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// withdraw takes out what is ours and no longer wanted (R28). An element is ours when it says what we write, and not by its
// name alone: a user may have a container or a volume of such a name where we have none.
func (p *plan) withdraw(e *edit) {
	ours := p.cluster.Ours()
	for _, g := range p.groups {
		if rayContainer(g) != "" {
			continue
		}
		pod := g.pod()
		volumes := e.list(pod.child("volumes")) // as they are now: what they say of each other changes with the first that goes
		encrypted := ours.Authority(volumes)
		keep := namesOf(slices.Concat([]element{g.sidecar}, g.sidecarVolumes, g.volumes))
		e.dropWhere(pod.child("containers"), func(c element) bool {
			return ours.Sidecar(c, volumes).Sidecar() && !slices.Contains(keep, nested.Text(c, "name"))
		})
		e.dropWhere(pod.child("volumes"), func(v element) bool { return ours.Volume(v, volumes) && !slices.Contains(keep, nested.Text(v, "name")) })
		if g.env == nil && encrypted {
			e.dropWhere(pod.child("initContainers"), ours.Certificate)
			p.withdrawTLS(e, pod.child("containers", "0", "env"), pod.child("containers", "0", "volumeMounts"))
		}
	}
	mounts := e.list(autoscalerMounts)
	if p.autoscaler.env == nil && nested.Named(mounts, raycluster.VolumeServer) != nil {
		p.withdrawTLS(e, autoscalerEnv, autoscalerMounts)
	}
	if !slices.Contains(namesOf(p.autoscaler.mounts), raycluster.VolumeToken) {
		e.dropWhere(autoscalerMounts, func(m element) bool { return m["name"] == raycluster.VolumeToken && m["mountPath"] == tokenPath })
	}
}

const (
	caPath    = "/home/ray/workspace/ca"
	tlsPath   = "/home/ray/workspace/tls"
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// withdrawTLS takes the variables and mounts out of a container.
func (p *plan) withdrawTLS(e *edit, env, mounts place) {
	e.dropWhere(env, func(v element) bool {
		return slices.ContainsFunc(p.variables, func(written element) bool { return same(v, written) })
	})
	e.dropWhere(mounts, func(m element) bool {
		return m["name"] == raycluster.VolumeCA && m["mountPath"] == caPath || m["name"] == raycluster.VolumeServer && m["mountPath"] == tlsPath
	})
}

func (e *edit) dropWhere(list place, ours func(element) bool) {
	for i, entry := range slices.Backward(slices.Clone(e.list(list))) {
		if fields, _ := entry.(map[string]any); fields != nil && ours(fields) {
			e.drop(list, i)
		}
	}
}

func namesOf(elements []element) []string {
	var names []string
	for _, e := range elements {
		names = append(names, nested.Text(e, "name"))
	}
	return names
}

// guarded tells whether the head has a sidecar of ours, or had one before it was changed.
func (p *plan) guarded() bool {
	return p.cluster.Injected().Sidecar.Sidecar() || p.old.Injected().Sidecar.Sidecar()
}
