package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

func expression(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func required(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// Node selector terms get the architectures unless they are empty or require an architecture; in the legacy form a term is added. [M4]
// [modelmesh-25]
func TestAffinity(t *testing.T) {
	arch := expression("kubernetes.io/arch", "amd64", "arm64", "s390x")
	gpu, zone, otherArch := expression("gpu", "yes"), expression("zone", "a"), expression("kubernetes.io/arch", "ppc64le")
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expression("metadata.name", "n")}}
	byNameAndArch := byName
	byNameAndArch.MatchExpressions = []corev1.NodeSelectorRequirement{arch}
	preferred := func() *corev1.Affinity {
		return &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(gpu)}}},
			PodAffinity:  &corev1.PodAffinity{},
		}
	}
	withPreferred := preferred()
	withPreferred.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required(term(arch)).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for name, c := range map[string]struct{ affinity, current, legacy *corev1.Affinity }{
		"no affinity":                  {nil, required(term(arch)), required(term(arch))},
		"empty":                        {&corev1.Affinity{}, required(term(arch)), required(term(arch))},
		"no terms":                     {required(), required(term(arch)), required(term(arch))},
		"one term":                     {required(term(gpu)), required(term(gpu, arch)), required(term(gpu), term(arch))},
		"two terms":                    {required(term(gpu), term(zone)), required(term(gpu, arch), term(zone, arch)), required(term(gpu), term(zone), term(arch))},
		"architecture set by the user": {required(term(otherArch)), required(term(otherArch)), required(term(otherArch), term(arch))},
		"node name":                    {required(byName), required(byNameAndArch), required(byName, term(arch))},
		"empty term":                   {required(term()), required(term()), required(term(), term(arch))},
		"preferred terms":              {preferred(), withPreferred, withPreferred},
	} {
		for form, want := range map[string]*corev1.Affinity{"current": c.current, "legacy": c.legacy} {
			in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Affinity = c.affinity }), forms[form])
			unchanged := c.affinity.DeepCopy()
			if diff := cmp.Diff(want, buildPod(t, in).Affinity); diff != "" {
				t.Errorf("%s, form %s (-want +got):\n%s", name, form, diff)
			}
			if diff := cmp.Diff(unchanged, c.affinity); diff != "" {
				t.Errorf("%s: BuildDeployment changed the spec:\n%s", name, diff)
			}
		}
	}
}

// RuntimeArchitectures set a node affinity; an empty list sets none.
func TestArchitecturesSetNodeAffinity(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Settings.RuntimeArchitectures = []string{"ppc64le"}
	if diff := cmp.Diff(required(term(expression("kubernetes.io/arch", "ppc64le"))), buildPod(t, in).Affinity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	in.Settings.RuntimeArchitectures = nil
	if got := buildPod(t, in).Affinity; got != nil {
		t.Errorf("affinity %+v without architectures, want none", got)
	}
}

// [modelmesh-25]
func TestNodeSelectorAndTolerations(t *testing.T) {
	tolerations := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}, {Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(0))}}
	pod := buildPod(t, inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) {
		s.NodeSelector, s.Tolerations = map[string]string{"type": "kwok"}, tolerations
	})))
	if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" || pod.NodeSelector["type"] != "kwok" {
		t.Errorf("nodeSelector %v, tolerations (-want +got):\n%s", pod.NodeSelector, diff)
	}
}
