package raycluster

import (
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// withdraw takes out what is ours and no longer wanted (R28). An element is ours when it says what we write, and not by its
// name alone: a user may have a container or a volume of such a name where we have none.
func (p *plan) withdraw(e *edit) {
	ours := p.owned()
	for _, g := range p.groups {
		if rayContainer(g) != "" {
			continue
		}
		pod := g.pod()
		encrypted := ours.encrypted(e.list(pod.child("volumes")))
		keep := namesOf(slices.Concat([]element{g.sidecar}, g.sidecarVolumes, g.volumes))
		e.dropWhere(pod.child("containers"), func(c element) bool { return ours.sidecar(c) && !slices.Contains(keep, c["name"]) })
		e.dropWhere(pod.child("volumes"), func(v element) bool { return ours.volume(v, encrypted) && !slices.Contains(keep, v["name"]) })
		if g.env == nil && encrypted {
			e.dropWhere(pod.child("initContainers"), ours.certificate)
			p.withdrawTLS(e, pod.child("containers", "0", "env"), pod.child("containers", "0", "volumeMounts"))
		}
	}
	mounts := e.list(autoscalerMounts)
	if p.autoscaler.env == nil && find(mounts, ray.VolumeServer) != nil {
		p.withdrawTLS(e, autoscalerEnv, autoscalerMounts)
	}
	if find(asList(p.autoscaler.mounts), ray.VolumeToken) == nil {
		e.dropWhere(autoscalerMounts, func(m element) bool { return m["name"] == ray.VolumeToken && m["mountPath"] == tokenPath })
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
		return m["name"] == ray.VolumeCA && m["mountPath"] == caPath || m["name"] == ray.VolumeServer && m["mountPath"] == tlsPath
	})
}

func (e *edit) dropWhere(list place, ours func(element) bool) {
	for i, entry := range slices.Backward(slices.Clone(e.list(list))) {
		if fields, _ := entry.(map[string]any); fields != nil && ours(fields) {
			e.drop(list, i)
		}
	}
}

func namesOf(elements []element) []any {
	var names []any
	for _, e := range elements {
		if e != nil {
			names = append(names, e["name"])
		}
	}
	return names
}

// owned tells by the names of objects what is ours: legacy and hashed ones.
type owned struct{ legacy, hashed ray.Names }

func (p *plan) owned() owned { return owned{p.cluster.LegacyNames(), p.cluster.HashedNames()} }

// guarded tells whether the head has a sidecar of ours, or had one before it was changed.
func (p *plan) guarded() bool {
	containers := slices.Concat(groupsOf(p.cluster)[0].containers(), groupsOf(p.old)[0].containers())
	return slices.ContainsFunc(containers, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields != nil && p.owned().sidecar(fields)
	})
}

func (o owned) either(value any, name func(ray.Names) string) bool {
	return value == name(o.legacy) || value == name(o.hashed)
}

func (o owned) sidecar(c element) bool {
	args, _ := c["args"].([]any)
	switch c["name"] {
	case ray.ContainerOAuth:
		return slices.ContainsFunc(args, func(arg any) bool {
			return o.either(arg, func(n ray.Names) string { return "--openshift-service-account=" + n.ServiceAccount })
		})
	case ray.ContainerProxy:
		mounts, _ := c["volumeMounts"].([]any)
		return find(mounts, ray.VolumeProxyTLS) != nil && find(mounts, ray.VolumeProxyConfig) != nil
	}
	return false
}

// volume tells whether a volume is ours; encrypted tells that the pod has our authority.
func (o owned) volume(v element, encrypted bool) bool {
	secret := valueAt(v, place{"secret", "secretName"})
	switch v["name"] {
	case ray.VolumeProxyTLS:
		return o.either(secret, func(n ray.Names) string { return n.ProxyTLS })
	case ray.VolumeToken:
		return v["projected"] != nil || o.either(secret, func(n ray.Names) string { return n.TokenSecret })
	case ray.VolumeProxyConfig:
		return o.either(valueAt(v, place{"configMap", "name"}), func(n ray.Names) string { return n.ProxyConfig })
	case ray.VolumeCA, ray.VolumeServer:
		return encrypted
	}
	return false
}

// encrypted tells whether volumes have our authority. Everything else of our certificates comes with it.
func (o owned) encrypted(volumes []any) bool {
	return o.either(valueAt(find(volumes, ray.VolumeCA), place{"secret", "secretName"}), func(n ray.Names) string { return n.CASecret })
}

func (o owned) certificate(c element) bool {
	mounts, _ := c["volumeMounts"].([]any)
	return c["name"] == ray.InitCertificate && find(mounts, ray.VolumeServer) != nil
}
