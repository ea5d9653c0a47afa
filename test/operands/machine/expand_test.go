package machine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestExpand(t *testing.T) {
	env := []corev1.EnvVar{{Name: "A", Value: "old"}, {Name: "A", Value: "$(B)"}}
	for text, want := range map[string]string{
		"--uri=$(A)": "--uri=$(B)", "$$(A)": "$(A)", "$(C)": "$(C)", "$A $": "$A $", "$$$$": "$$",
	} {
		if got := Expand(text, env); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
