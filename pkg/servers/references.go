package servers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// EnvReferences returns the Secrets and ConfigMaps from which environment variables take single keys.
func EnvReferences(env []corev1.EnvVar) []reference.Reference {
	var refs []reference.Reference
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if s := e.ValueFrom.SecretKeyRef; s != nil {
			refs = append(refs, reference.Reference{Kind: reference.Secret, Name: s.Name, Keys: []string{s.Key}, Optional: ptr.Deref(s.Optional, false)})
		}
		if c := e.ValueFrom.ConfigMapKeyRef; c != nil {
			refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: c.Name, Keys: []string{c.Key}, Optional: ptr.Deref(c.Optional, false)})
		}
	}
	return refs
}

// EnvFromReferences returns the Secrets and ConfigMaps of envFrom.
func EnvFromReferences(sources []corev1.EnvFromSource) []reference.Reference {
	var refs []reference.Reference
	for _, s := range sources {
		if s.SecretRef != nil {
			refs = append(refs, allKeys(reference.Secret, s.SecretRef.Name, s.SecretRef.Optional))
		}
		if s.ConfigMapRef != nil {
			refs = append(refs, allKeys(reference.ConfigMap, s.ConfigMapRef.Name, s.ConfigMapRef.Optional))
		}
	}
	return refs
}

// PodReferences returns the Secrets and ConfigMaps of volumes and image pulls. A change needs no rollout, because the kubelet reads them
// again.
func PodReferences(p *server.Pods) []reference.Reference {
	var refs []reference.Reference
	for _, s := range p.ImagePullSecrets {
		refs = append(refs, allKeys(reference.Secret, s.Name, nil))
	}
	for i := range p.Volumes {
		refs = append(refs, volumeReferences(&p.Volumes[i])...)
	}
	return reference.Merge(refs)
}

func volumeReferences(v *server.Volume) []reference.Reference {
	var refs []reference.Reference
	if v.Secret != nil {
		refs = append(refs, allKeys(reference.Secret, v.Secret.SecretName, v.Secret.Optional))
	}
	if v.ConfigMap != nil {
		refs = append(refs, allKeys(reference.ConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional))
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		refs = append(refs, allKeys(reference.Secret, v.CSI.NodePublishSecretRef.Name, nil))
	}
	if v.Projected == nil {
		return refs
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			refs = append(refs, allKeys(reference.Secret, s.Secret.Name, s.Secret.Optional))
		}
		if s.ConfigMap != nil {
			refs = append(refs, allKeys(reference.ConfigMap, s.ConfigMap.Name, s.ConfigMap.Optional))
		}
	}
	return refs
}

// allKeys returns a reference to all keys of an object.
func allKeys(kind reference.Kind, name string, optional *bool) reference.Reference {
	return reference.Reference{Kind: kind, Name: name, Optional: ptr.Deref(optional, false)}
}
