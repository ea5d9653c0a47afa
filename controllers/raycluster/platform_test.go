package raycluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// If the KubeRay of the platform is enabled and disabled, the objects are deleted and created again. Objects of a running sidecar are
// retained, but not created.
func TestPlatformKubeRayAppearsAndDisappears(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	old := s.run("old", sidecar)
	s.reconcileUntilIdle(u)
	s.eventsSince()
	guarded, n := raycluster.View(u.Object).Names().ProxyService, raycluster.View(u.Object).Names()
	if s.leadsTo(u) != guarded {
		t.Fatal("the guarded cluster was not published")
	}

	s.served = openShift.WithPlatformKubeRay(true)
	writes := s.mustReconcile(u)
	if !slices.Contains(writes, "patch RayCluster demo") {
		t.Errorf("admission was not asked to take out what is ours: %q", writes)
	}
	if s.exists(&networkingv1.NetworkPolicy{}, "team1", n.HeadPolicy) || s.exists(&networkingv1.NetworkPolicy{}, "team1", n.WorkerPolicy) || s.leadsTo(u) != guarded {
		t.Errorf("while the old head runs: %q", s.managedNames())
	}
	if eventText := s.eventsSince(); !strings.Contains(eventText, "Normal "+ReasonSecuredByKubeRay) || !strings.Contains(eventText, "Warning "+ReasonPodsOutdated) {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.edit(u, func() { u.Object["spec"] = clusterFrom(t, plainHead).Object["spec"] }) // by our webhook
	s.reconcileUntilIdle(u)
	s.stop(old)
	s.run("new", plainHead)
	s.reconcileUntilIdle(u)
	s.reread(u)
	if left := s.managedNames(); len(left) > 0 || len(u.GetFinalizers()) > 0 {
		t.Errorf("left %q, finalizers %q", left, u.GetFinalizers())
	}
	s.expectIdle(u)
	if eventText := s.eventsSince(); eventText != "" {
		t.Errorf("unexpected Events %q", eventText)
	}

	s.served = openShift
	s.reconcileUntilIdle(u)
	if s.leadsTo(u) != guarded || !s.exists(&networkingv1.NetworkPolicy{}, "team1", n.HeadPolicy) {
		t.Errorf("after the deletion: objects %q", s.managedNames())
	}
	if eventText := s.eventsSince(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "KubeRay of the platform secured it") {
		t.Errorf("unexpected Events %q", eventText)
	}
}

// If the OAuth server is removed and added again, admission replaces the sidecar; it is triggered repeatedly because another replica may
// detect that later. The Route stays.
func TestOAuthServerDisappearsAndReturns(t *testing.T) {
	s, now := newTestEnv(t), testclock.NewFakePassiveClock(time.Now())
	s.clock = now
	oauth, proxy := fmt.Sprintf(injectedHead, "oauth-proxy"), fmt.Sprintf(injectedHead, "kube-rbac-proxy")
	u := s.create(demoCluster(hashedVersion, oauth))
	old := s.run("old", oauth)
	s.reconcileUntilIdle(u)
	n := raycluster.View(u.Object).Names()
	guarded := func(cookie, rules bool) {
		t.Helper()
		if s.exists(&corev1.Secret{}, "team1", n.CookieSecret) != cookie || s.exists(&corev1.ConfigMap{}, "team1", n.ProxyConfig) != rules || s.leadsTo(u) != n.ProxyService {
			t.Errorf("unexpected around: %q", s.managedNames())
		}
		service := &corev1.Service{}
		if s.exists(service, "team1", n.ProxyService); service.Annotations[oauthproxy.ServingCertAnnotation] != n.ProxyTLS {
			t.Error("the Service does not request a serving certificate from OpenShift")
		}
	}
	guarded(true, false)

	s.served = capability.NewSet(capability.Route, capability.OpenShiftIngress)
	for range 2 {
		if writes := s.mustReconcile(u); !slices.Contains(writes, "patch RayCluster demo") {
			t.Errorf("admission was not asked to replace the sidecar: %q", writes)
		}
		s.reconcileUntilIdle(u)
		s.expectIdle(u)
		now.SetTime(now.Now().Add(sidecarRequeue))
	}
	now.SetTime(now.Now().Add(sidecarTimeout))
	s.expectIdle(u) // no webhook answers
	guarded(false, true)
	s.eventsSince()
	s.edit(u, func() { u.Object["spec"] = clusterFrom(t, proxy).Object["spec"] }) // by our webhook
	s.reconcileUntilIdle(u)
	if eventText := s.eventsSince(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "delete its pod") {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.stop(old)
	s.run("new", proxy)
	s.reconcileUntilIdle(u)
	s.expectIdle(u)
	guarded(false, true)

	s.served = openShift
	if writes := s.mustReconcile(u); !slices.Contains(writes, "patch RayCluster demo") {
		t.Errorf("admission was not asked to bring the sidecar back: %q", writes)
	}
	guarded(true, false)
}

// A new cluster that the KubeRay of the platform secures has no objects, for any way of publishing.
func TestReconcileCreatesNothingWithPlatformKubeRay(t *testing.T) {
	for _, publish := range []string{"", config.PublishAuto, config.PublishOpen, config.PublishGateway} {
		for _, head := range []string{plainHead, tokenHead} {
			u := clusterFrom(t, demoCluster(hashedVersion, head))
			in := inputsFor(u, true, func(in *resources.Inputs) {
				in.Publish, in.Gateway, in.BackendTLSPolicies, in.KubeRaySecures, in.KubeRaySecurity = publish, true, true, true, config.KubeRaySecurityTrust
			})
			if objects := buildObjects(t, u, in); len(objects) > 0 {
				t.Errorf("%q: unexpected objects: %v", publish, objects)
			}
		}
	}
}

// Without Routes, the KubeRay of the platform deletes all NetworkPolicies with legacy names.
func TestNetworkPolicyNamesWithPlatformKubeRay(t *testing.T) {
	u := clusterFrom(t, demoCluster("", plainHead))
	for there, want := range map[bool]string{false: raycluster.View(u.Object).LegacyNames().HeadPolicy, true: raycluster.View(u.Object).HashedNames().HeadPolicy} {
		objects := buildObjects(t, u, inputsFor(u, false, func(in *resources.Inputs) { in.PlatformKubeRay = there }))
		if objects[0].GetKind() != "NetworkPolicy" || objects[0].GetName() != want {
			t.Errorf("KubeRay found %t: got %s %s, want NetworkPolicy %s", there, objects[0].GetKind(), objects[0].GetName(), want)
		}
	}
}
