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
	secret := func(name string, optional *bool) {
		refs = append(refs, Reference{Kind: Secret, Name: name, Optional: isTrue(optional)})
	}
	configMap := func(name string, optional *bool) {
		refs = append(refs, Reference{Kind: ConfigMap, Name: name, Optional: isTrue(optional)})
	}
	for _, s := range p.ImagePullSecrets {
		secret(s.Name, nil)
	}
	for _, v := range p.Volumes {
		switch {
		case v.Secret != nil:
			secret(v.Secret.SecretName, v.Secret.Optional)
		case v.ConfigMap != nil:
			configMap(v.ConfigMap.Name, v.ConfigMap.Optional)
		case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
			secret(v.CSI.NodePublishSecretRef.Name, nil)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				projected(s, secret, configMap)
			}
		}
	}
	return Merge(refs)
}

// projected calls for the Secret or the ConfigMap of a source.
func projected(s corev1.VolumeProjection, secret, configMap func(name string, optional *bool)) {
	if s.Secret != nil {
		secret(s.Secret.Name, s.Secret.Optional)
	}
	if s.ConfigMap != nil {
		configMap(s.ConfigMap.Name, s.ConfigMap.Optional)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
