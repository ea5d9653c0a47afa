package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

func securedByKubeRay(s *Settings) { s.KubeRaySecures = true }

// byPlatform has the fields that the KubeRay of the platform sets by its webhook and its controllers.
func byPlatform(object map[string]any) {
	annotationsOf(object)["odh.ray.io/secure-trusted-network"] = "true"
	put(false, "spec", "headGroupSpec", "enableIngress")(object)
	put([]any{"ray.io/authentication-resources"}, "metadata", "finalizers")(object)
}

// The changes of the webhooks and controllers of that KubeRay are accepted.
func TestNothingIsInjectedIfPlatformKubeRaySecuresClusters(t *testing.T) {
	s := onOpenShift().with(securedByKubeRay)
	submitted := parse(t, minimal, put("mine", in(headPod, "serviceAccountName")...))
	created := applyDefaults(t, s, submitted, nil)
	// The annotation selects the names of objects if that KubeRay is removed later.
	if diff := cmp.Diff(copyOf(submitted, put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion)), created); diff != "" {
		t.Errorf("(-submitted +got):\n%s", diff)
	}
	expectAllowed(t, s, copyOf(created, byPlatform), nil)
	expectAllowed(t, s, copyOf(created, byPlatform), created)
	if diff := cmp.Diff(copyOf(created, byPlatform), applyDefaults(t, s, copyOf(created, byPlatform), created)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An older KubeRay leaves enableIngress to the user.
	expectAllowed(t, s, copyOf(created, put(true, "spec", "headGroupSpec", "enableIngress")), created)
	for _, field := range []string{"authOptions", "tlsOptions", "networkPolicy"} {
		expectAllowed(t, s, copyOf(created, put(map[string]any{"mode": "token", "enabled": true}, "spec", field)), created)
	}
}

// The next update removes injections from a stored cluster, with or without a change of the template: a head with two proxies on one port
// isNever gets ready. They are injected again when that KubeRay is removed and the pods are recreated.
func TestUpdateRemovesInjectionsForPlatformKubeRay(t *testing.T) {
	for name, s := range map[string]Settings{
		"OpenShift": onOpenShift(), "legacy settings": onOpenShift().with(original), "not on OpenShift": onOpenShift().with(plain),
	} {
		t.Run(name, func(t *testing.T) {
			submitted := parse(t, minimal, put("mine", in(headPod, "serviceAccountName")...), put(true, "spec", "enableInTreeAutoscaling"))
			stored := applyDefaults(t, s, submitted, nil)
			kuberay := s.with(securedByKubeRay)
			touched := copyOf(stored, byPlatform)
			got := applyDefaults(t, kuberay, touched, stored)
			want := copyOf(submitted, byPlatform, put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion), put(map[string]any{}, "spec", "autoscalerOptions"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			expectAllowed(t, kuberay, touched, stored) // the webhook of KubeRay may be called before that of this operator
			expectAllowed(t, kuberay, got, stored)
			back := copyOf(got, changedHead)
			if diff := cmp.Diff(applyDefaults(t, s, copyOf(back, put(nil, "spec", "autoscalerOptions")), nil), applyDefaults(t, s, back, got)); diff != "" {
				t.Errorf("(-after create +after update):\n%s", diff)
			}
		})
	}
	s := onOpenShift().with(securedByKubeRay)
	for _, release := range []string{"both names", "the Service"} {
		stored := storedRecording(t, "openshift-oauth-mtls", true, release)
		if has := raycluster.View(applyDefaults(t, s, stored, stored)).Injected(); has != (raycluster.Injected{}) {
			t.Errorf("%s: injected %+v remain, want %+v", release, has, (raycluster.Injected{}))
		}
	}
}
