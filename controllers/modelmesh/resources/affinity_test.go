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

// Each node selector term of the runtime gets the architectures. The legacy controller added them as another term. [M4] [modelmesh-25]
func TestAffinity(t *testing.T) {
	arch := expression("kubernetes.io/arch", "amd64", "arm64", "s390x")
	gpu, zone, own := expression("gpu", "yes"), expression("zone", "a"), expression("kubernetes.io/arch", "ppc64le")
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expression("metadata.name", "n")}}
	both := byName
	both.MatchExpressions = []corev1.NodeSelectorRequirement{arch}
	preferred := func() *corev1.Affinity {
		return &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(gpu)}}},
			PodAffinity:  &corev1.PodAffinity{},
		}
	}
	withPreferred := preferred()
	withPreferred.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required(term(arch)).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for name, c := range map[string]struct{ given, current, original *corev1.Affinity }{
		"no affinity":                     {nil, required(term(arch)), required(term(arch))},
		"empty":                           {&corev1.Affinity{}, required(term(arch)), required(term(arch))},
		"no terms":                        {required(), required(term(arch)), required(term(arch))},
		"a GPU":                           {required(term(gpu)), required(term(gpu, arch)), required(term(gpu), term(arch))},
		"alternatives":                    {required(term(gpu), term(zone)), required(term(gpu, arch), term(zone, arch)), required(term(gpu), term(zone), term(arch))},
		"architecture chosen by the user": {required(term(own)), required(term(own)), required(term(own), term(arch))},
		"a node by its name":              {required(byName), required(both), required(byName, term(arch))},
		"a term for no node":              {required(term()), required(term()), required(term(), term(arch))},
		"preferred terms":                 {preferred(), withPreferred, withPreferred},
	} {
		for form, want := range map[string]*corev1.Affinity{"current": c.current, "original": c.original} {
			in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Affinity = c.given }), forms[form])
			before := c.given.DeepCopy()
			if diff := cmp.Diff(want, podOf(t, in).Affinity); diff != "" {
				t.Errorf("%s, form %s (-want +got):\n%s", name, form, diff)
			}
			if diff := cmp.Diff(before, c.given); diff != "" {
				t.Errorf("%s: the spec was changed:\n%s", name, diff)
			}
		}
	}
}

// An empty list of architectures requires none.
func TestArchitecturesSetNodeAffinity(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Settings.RuntimeArchitectures = []string{"ppc64le"}
	if diff := cmp.Diff(required(term(expression("kubernetes.io/arch", "ppc64le"))), podOf(t, in).Affinity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	in.Settings.RuntimeArchitectures = nil
	if got := podOf(t, in).Affinity; got != nil {
		t.Errorf("got affinity %+v without architectures, want none", got)
	}
}

// [modelmesh-25]
func TestNodeSelectorAndTolerations(t *testing.T) {
	tolerations := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}, {Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(0))}}
	pod := podOf(t, inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) {
		s.NodeSelector, s.Tolerations = map[string]string{"type": "kwok"}, tolerations
	})))
	if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" || pod.NodeSelector["type"] != "kwok" {
		t.Errorf("nodeSelector %v, tolerations (-want +got):\n%s", pod.NodeSelector, diff)
	}
}
