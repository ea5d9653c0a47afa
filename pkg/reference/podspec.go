package reference

import corev1 "k8s.io/api/core/v1"

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

func isTrue(b *bool) bool { return b != nil && *b }
