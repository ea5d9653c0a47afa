package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func sizes(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// [R15] The administrator sets the resources of the containers that the operator adds to Ray pods; each list replaces the default list.
func TestContainerResourcesReplaceDefaults(t *testing.T) {
	defaultResources := DefaultRayCluster().SidecarResources
	for settings, want := range map[string]corev1.ResourceRequirements{
		"{}":                                     defaultResources,
		"{sidecarResources: null}":               defaultResources,
		"{sidecarResources: {requests: null}}":   defaultResources,
		"{sidecarResources: {requests: {}}}":     {Requests: sizes(), Limits: defaultResources.Limits},
		"{sidecarResources: {limits: {cpu: 2}}}": {Requests: defaultResources.Requests, Limits: sizes("cpu", "2")},
		"{sidecarResources: {requests: {cpu: 10m, memory: 1Gi}, limits: {memory: 1Gi}}}": {
			Requests: sizes("cpu", "10m", "memory", "1Gi"), Limits: sizes("memory", "1Gi"),
		},
	} {
		got, _, err := mustLoad(t, inputs{}.withFile("raycluster: "+settings)).RayCluster(nil)
		if diff := cmp.Diff(want, got.SidecarResources); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", settings, err, diff)
		}
		if diff := cmp.Diff(DefaultRayCluster().CertificateResources, got.CertificateResources); diff != "" {
			t.Errorf("%s: certificateResources (-want +got):\n%s", settings, diff)
		}
	}
	for settings, want := range map[string]string{
		"{certificateResources: 5}":                               `raycluster.certificateResources 5: must be an object`,
		"{sidecarResources: {requests: [1]}}":                     `raycluster.sidecarResources.requests is a list: must be an object`,
		"{sidecarResources: {limits: {cpu: \"1e-999\"}}}":         `raycluster.sidecarResources.limits "{\"cpu\":\"1e-999\"}": must be quantities of Kubernetes that are not negative, such as {cpu: 100m, memory: 64Mi}`,
		"{sidecarResources: {limits: {cpu: many}}}":               `raycluster.sidecarResources.limits "{\"cpu\":\"many\"}": must be quantities of Kubernetes that are not negative, such as {cpu: 100m, memory: 64Mi}`,
		"{sidecarResources: {limits: {cpu: -1}}}":                 `raycluster.sidecarResources.limits "{\"cpu\":-1}": must be quantities of Kubernetes that are not negative, such as {cpu: 100m, memory: 64Mi}`,
		"{sidecarResources: {requests: {memory: 1Gi}}}":           `raycluster.sidecarResources.requests "1Gi": must be at most the limit of memory, which is 256Mi`,
		"{sidecarResources: {claims: [{name: x}]}}":               `unknown key "claims" in raycluster.sidecarResources; known keys there: limits, requests`,
		"{certificateResources: {limits: {memory: 1Mi, cpu: 1}}}": `raycluster.certificateResources.requests "32Mi": must be at most the limit of memory, which is 1Mi`,
	} {
		_, err := inputs{}.withFile("raycluster: " + settings).load()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", settings, err, want)
		}
	}
}
