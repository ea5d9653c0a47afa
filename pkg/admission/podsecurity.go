package admission

import (
	"cmp"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podSecurityEvaluator returns the evaluator of the Pod Security Standards. Its error is a bug of the library.
var podSecurityEvaluator = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// AddPodSecurityViolations adds the violations of a Pod Security level. Unset fields are evaluated with the defaults of the manager, which
// all levels allow.
func (r *References) AddPodSecurityViolations(level Level, metadata *metav1.ObjectMeta, spec *corev1.PodSpec, path *field.Path) {
	evaluator, err := podSecurityEvaluator()
	if err != nil {
		r.Add(Privilege, err.Error(), path)
		return
	}
	version := api.LevelVersion{Level: api.Level(level), Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(version, metadata, withDefaultSecurityContext(spec)) {
		if result.Allowed {
			continue
		}
		text := result.ForbiddenReason
		if result.ForbiddenDetail != "" {
			text = fmt.Sprintf("%s (%s)", text, result.ForbiddenDetail)
		}
		r.Add(Privilege, text, path)
	}
}

// withDefaultSecurityContext returns a copy of a pod spec with the security context that the manager sets by default.
func withDefaultSecurityContext(spec *corev1.PodSpec) *corev1.PodSpec {
	spec = spec.DeepCopy()
	pod := cmp.Or(spec.SecurityContext, &corev1.PodSecurityContext{})
	pod.RunAsNonRoot = cmp.Or(pod.RunAsNonRoot, new(true))
	pod.SeccompProfile = cmp.Or(pod.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	spec.SecurityContext = pod
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := cmp.Or(containers[i].SecurityContext, &corev1.SecurityContext{})
			c.AllowPrivilegeEscalation = cmp.Or(c.AllowPrivilegeEscalation, new(false))
			c.Capabilities = cmp.Or(c.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})
			containers[i].SecurityContext = c
		}
	}
	return spec
}
