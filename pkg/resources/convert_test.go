package resources

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// expectSameJSON converts a value to an apply configuration and checks that both have the same JSON.
func expectSameJSON[T any](t *testing.T, from any) *T {
	t.Helper()
	into := MustConvert[T](from)
	if diff := cmp.Diff(normalizedJSON(t, from), normalizedJSON(t, into)); diff != "" {
		t.Errorf("%T (-value +converted):\n%s", from, diff)
	}
	return into
}

func normalizedJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if data, err = json.MarshalIndent(tree, "", " "); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMustApplyKeepsJSON(t *testing.T) {
	expectSameJSON[corev1ac.EnvVarApplyConfiguration](t, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Key: "k", Optional: new(false)}}})
	expectSameJSON[corev1ac.EnvVarApplyConfiguration](t, corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}})
	expectSameJSON[corev1ac.SecurityContextApplyConfiguration](t, &corev1.SecurityContext{})
	expectSameJSON[corev1ac.PodSecurityContextApplyConfiguration](t, &corev1.PodSecurityContext{
		FSGroup: new(int64(0)), SupplementalGroups: []int64{1, 2}, SELinuxOptions: &corev1.SELinuxOptions{Level: "s0"}})
	expectSameJSON[corev1ac.TolerationApplyConfiguration](t, corev1.Toleration{Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(0))})
	expectSameJSON[corev1ac.ResourceRequirementsApplyConfiguration](t, corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}, Claims: []corev1.ResourceClaim{{Name: "gpu"}}})
	expectSameJSON[networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration](t, networkingv1.NetworkPolicyEgressRule{
		Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("https"))}, {Port: new(intstr.FromInt32(1)), EndPort: new(int32(9))}}})
}

func TestMustApplyCopiesPointers(t *testing.T) {
	source := &corev1.PersistentVolumeClaimSpec{StorageClassName: new("")}
	claim := expectSameJSON[corev1ac.PersistentVolumeClaimSpecApplyConfiguration](t, source)
	if claim.StorageClassName == nil || *claim.StorageClassName != "" {
		t.Errorf("an empty storageClassName was converted to %v", claim.StorageClassName)
	}
	*claim.StorageClassName = "other"
	if *source.StorageClassName != "" {
		t.Error("the converted object shares memory with its source")
	}
	if claim.VolumeName != nil {
		t.Errorf("an unset volumeName was converted to %q", *claim.VolumeName)
	}
}

func TestMustApplyRejectsOtherTypes(t *testing.T) {
	for name, from := range map[string]any{"cannot be encoded": func() {}, "is of another type": "text"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a value that %s was converted", name)
				}
			}()
			MustConvert[corev1ac.AffinityApplyConfiguration](from)
		}()
	}
}

func TestMustConvertEach(t *testing.T) {
	env := MustConvertEach[corev1ac.EnvVarApplyConfiguration]([]corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}})
	if len(env) != 2 || *env[0].Name != "A" || *env[0].Value != "1" || *env[1].Name != "B" || env[1].Value != nil {
		t.Errorf("got %+v", env)
	}
	if none := MustConvertEach[corev1ac.EnvVarApplyConfiguration]([]corev1.EnvVar(nil)); none != nil {
		t.Errorf("MustConvertEach(nil) returned %v, want nil", none)
	}
}
