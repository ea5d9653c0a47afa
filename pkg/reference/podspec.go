package reference

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// OfEnv returns the Secrets and ConfigMaps of which environment variables use single keys.
func OfEnv(env []corev1.EnvVar) []Reference {
	var refs []Reference
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if s := e.ValueFrom.SecretKeyRef; s != nil {
			refs = append(refs, Reference{Kind: Secret, Name: s.Name, Keys: []string{s.Key}, Optional: ptr.Deref(s.Optional, false)})
		}
		if c := e.ValueFrom.ConfigMapKeyRef; c != nil {
			refs = append(refs, Reference{Kind: ConfigMap, Name: c.Name, Keys: []string{c.Key}, Optional: ptr.Deref(c.Optional, false)})
		}
	}
	return refs
}

// OfEnvFrom returns the Secrets and ConfigMaps of envFrom.
func OfEnvFrom(sources []corev1.EnvFromSource) []Reference {
	var refs []Reference
	for _, s := range sources {
		if s.SecretRef != nil {
			refs = append(refs, allKeys(Secret, s.SecretRef.Name, s.SecretRef.Optional))
		}
		if s.ConfigMapRef != nil {
			refs = append(refs, allKeys(ConfigMap, s.ConfigMapRef.Name, s.ConfigMapRef.Optional))
		}
	}
	return refs
}

// OfPods returns the Secrets and ConfigMaps that pods need to start: of volumes and image pulls. A change needs no rollout, because the
// kubelet updates mounted files.
func OfPods(p *server.Pods) []Reference {
	var refs []Reference
	for _, s := range p.ImagePullSecrets {
		refs = append(refs, Reference{Kind: Secret, Name: s.Name})
	}
	for i := range p.Volumes {
		refs = append(refs, ofVolume(&p.Volumes[i])...)
	}
	return Merge(refs)
}

func ofVolume(v *server.Volume) []Reference {
	var refs []Reference
	if v.Secret != nil {
		refs = append(refs, allKeys(Secret, v.Secret.SecretName, v.Secret.Optional))
	}
	if v.ConfigMap != nil {
		refs = append(refs, allKeys(ConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional))
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		refs = append(refs, Reference{Kind: Secret, Name: v.CSI.NodePublishSecretRef.Name})
	}
	if v.Projected == nil {
		return refs
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			refs = append(refs, allKeys(Secret, s.Secret.Name, s.Secret.Optional))
		}
		if s.ConfigMap != nil {
			refs = append(refs, allKeys(ConfigMap, s.ConfigMap.Name, s.ConfigMap.Optional))
		}
	}
	return refs
}

// allKeys returns a reference to all keys of an object.
func allKeys(kind Kind, name string, optional *bool) Reference {
	return Reference{Kind: kind, Name: name, Optional: ptr.Deref(optional, false)}
}
