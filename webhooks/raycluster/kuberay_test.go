package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

func kubeRaySecures(s *Settings) { s.KubeRaySecures = true }

// withPlatformFields sets the fields that the webhook and the controllers of the platform's KubeRay set.
func withPlatformFields(object map[string]any) {
	annotationsOf(object)["odh.ray.io/secure-trusted-network"] = "true"
	put(false, "spec", "headGroupSpec", "enableIngress")(object)
	put([]any{"ray.io/authentication-resources"}, "metadata", "finalizers")(object)
}

// Nothing is injected, and changes by the webhooks and controllers of the platform's KubeRay are accepted.
func TestNothingIsInjectedIfPlatformKubeRaySecuresClusters(t *testing.T) {
	s := onOpenShift().with(kubeRaySecures)
	submitted := parse(t, minimal, put("mine", in(headPod, "serviceAccountName")...))
	created := applyDefaults(t, s, submitted, nil)
	// The annotation selects the names of objects after the platform's KubeRay is removed.
	if diff := cmp.Diff(copyOf(submitted, put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion)), created); diff != "" {
		t.Errorf("(-submitted +got):\n%s", diff)
	}
	expectAllowed(t, s, copyOf(created, withPlatformFields), nil)
	expectAllowed(t, s, copyOf(created, withPlatformFields), created)
	if diff := cmp.Diff(copyOf(created, withPlatformFields), applyDefaults(t, s, copyOf(created, withPlatformFields), created)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Older versions of KubeRay do not set enableIngress to false.
	expectAllowed(t, s, copyOf(created, put(true, "spec", "headGroupSpec", "enableIngress")), created)
	for _, field := range []string{"authOptions", "tlsOptions", "networkPolicy"} {
		expectAllowed(t, s, copyOf(created, put(map[string]any{"mode": "token", "enabled": true}, "spec", field)), created)
	}
}

// An update removes injections from a stored cluster, even if the template is unchanged: a head with two proxies on one port never becomes
// ready. The elements are injected again after the platform's KubeRay is removed and the head template changes.
func TestUpdateRemovesInjectionsForPlatformKubeRay(t *testing.T) {
	for name, s := range map[string]Settings{
		"OpenShift": onOpenShift(), "issued by the pods": onOpenShift().with(issuedByPod), "not on OpenShift": onOpenShift().with(plain),
	} {
		t.Run(name, func(t *testing.T) {
			submitted := parse(t, minimal, put("mine", in(headPod, "serviceAccountName")...), put(true, "spec", "enableInTreeAutoscaling"))
			stored := applyDefaults(t, s, submitted, nil)
			kuberay := s.with(kubeRaySecures)
			updated := copyOf(stored, withPlatformFields)
			got := applyDefaults(t, kuberay, updated, stored)
			want := copyOf(submitted, withPlatformFields, put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion), put(map[string]any{}, "spec", "autoscalerOptions"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			expectAllowed(t, kuberay, updated, stored) // the webhook of KubeRay may be called before that of this operator
			expectAllowed(t, kuberay, got, stored)
			recreated := copyOf(got, changedHead)
			if diff := cmp.Diff(applyDefaults(t, s, copyOf(recreated, put(nil, "spec", "autoscalerOptions")), nil), applyDefaults(t, s, recreated, got)); diff != "" {
				t.Errorf("(-after create +after update):\n%s", diff)
			}
		})
	}
	s := onOpenShift().with(kubeRaySecures)
	for _, release := range []string{"both names", "the Service"} {
		stored := storedRecording(t, "openshift-oauth-mtls", true, release)
		if injected := raycluster.View(applyDefaults(t, s, stored, stored)).Injected(); injected != (raycluster.Injected{}) {
			t.Errorf("%s: injections %+v remain, want none", release, injected)
		}
	}
}
