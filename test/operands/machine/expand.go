package machine

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

var references = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)`)

// Expand expands references as a kubelet does: $(NAME) is the value of a variable, $$ is an escaped $, and unresolved references are
// unchanged.
func Expand(text string, env []corev1.EnvVar) string {
	return references.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		for _, entry := range slices.Backward(env) {
			if entry.Name == found[2:len(found)-1] {
				return entry.Value
			}
		}
		return found
	})
}
