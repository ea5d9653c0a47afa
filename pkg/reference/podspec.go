package reference

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// OfEnv returns the Secrets and ConfigMaps that environment variables take single keys from.
func OfEnv(env []corev1.EnvVar) []Reference {
	var refs []Reference
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if s := e.ValueFrom.SecretKeyRef; s != nil {
			refs = append(refs, Reference{Kind: Secret, Name: s.Name, Keys: []string{s.Key}, Optional: isTrue(s.Optional)})
		}
		if c := e.ValueFrom.ConfigMapKeyRef; c != nil {
			refs = append(refs, Reference{Kind: ConfigMap, Name: c.Name, Keys: []string{c.Key}, Optional: isTrue(c.Optional)})
		}
	}
	return refs
}

// OfEnvFrom returns the Secrets and ConfigMaps that are turned into environment variables as a whole.
func OfEnvFrom(sources []corev1.EnvFromSource) []Reference {
	var refs []Reference
	for _, s := range sources {
		if s.SecretRef != nil {
			refs = append(refs, Reference{Kind: Secret, Name: s.SecretRef.Name, Optional: isTrue(s.SecretRef.Optional)})
		}
		if s.ConfigMapRef != nil {
			refs = append(refs, Reference{Kind: ConfigMap, Name: s.ConfigMapRef.Name, Optional: isTrue(s.ConfigMapRef.Optional)})
		}
	}
	return refs
}

// OfPods returns the Secrets and ConfigMaps without which pods do not start that are placed like this: those of volumes and pulls. A change
// of them needs no new pods: mounted files follow it.
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
		refs = append(refs, Reference{Kind: Secret, Name: v.Secret.SecretName, Optional: isTrue(v.Secret.Optional)})
	}
	if v.ConfigMap != nil {
		refs = append(refs, Reference{Kind: ConfigMap, Name: v.ConfigMap.Name, Optional: isTrue(v.ConfigMap.Optional)})
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		refs = append(refs, Reference{Kind: Secret, Name: v.CSI.NodePublishSecretRef.Name})
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			refs = append(refs, ofProjection(s)...)
		}
	}
	return refs
}

func ofProjection(s corev1.VolumeProjection) []Reference {
	var refs []Reference
	if s.Secret != nil {
		refs = append(refs, Reference{Kind: Secret, Name: s.Secret.Name, Optional: isTrue(s.Secret.Optional)})
	}
	if s.ConfigMap != nil {
		refs = append(refs, Reference{Kind: ConfigMap, Name: s.ConfigMap.Name, Optional: isTrue(s.ConfigMap.Optional)})
	}
	return refs
}

func isTrue(b *bool) bool { return b != nil && *b }
