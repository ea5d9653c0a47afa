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

// If the KubeRay of the platform is enabled and disabled, the objects are deleted and recreated. Objects of a running sidecar are retained,
// but not created.
func TestPlatformKubeRayIsEnabledAndDisabled(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	old := s.startHead("old", sidecar)
	s.reconcileUntilIdle(u)
	s.drainEvents()
	n := raycluster.View(u.Object).Names()
	if s.routeBackend(u) != n.ProxyService {
		t.Fatal("the dashboard is not published through the sidecar")
	}

	s.served = openShift.WithPlatformKubeRay(true)
	writes := s.mustReconcile(u)
	if !slices.Contains(writes, "patch RayCluster demo") {
		t.Errorf("admission was not triggered to remove the injections: writes %q", writes)
	}
	if s.exists(&networkingv1.NetworkPolicy{}, "team1", n.HeadPolicy) || s.exists(&networkingv1.NetworkPolicy{}, "team1", n.WorkerPolicy) || s.routeBackend(u) != n.ProxyService {
		t.Errorf("want the Route of the sidecar and no NetworkPolicies while the old head runs, got %q", s.managedNames())
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, "Normal "+ReasonSecuredByKubeRay) || !strings.Contains(eventText, "Warning "+ReasonPodsOutdated) {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.edit(u, func() { u.Object["spec"] = clusterFrom(t, plainHead).Object["spec"] }) // as the webhook does
	s.reconcileUntilIdle(u)
	s.deletePod(old)
	s.startHead("new", plainHead)
	s.reconcileUntilIdle(u)
	s.refresh(u)
	if remaining := s.managedNames(); len(remaining) > 0 || len(u.GetFinalizers()) > 0 {
		t.Errorf("objects %q and finalizers %q remain", remaining, u.GetFinalizers())
	}
	s.expectIdle(u)
	if eventText := s.drainEvents(); eventText != "" {
		t.Errorf("unexpected Events %q", eventText)
	}

	s.served = openShift
	s.reconcileUntilIdle(u)
	if s.routeBackend(u) != n.ProxyService || !s.exists(&networkingv1.NetworkPolicy{}, "team1", n.HeadPolicy) {
		t.Errorf("want the Route and the NetworkPolicy after KubeRay was disabled, got %q", s.managedNames())
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "KubeRay of the platform secured it") {
		t.Errorf("unexpected Events %q", eventText)
	}
}

// If the OAuth server is removed and added again, admission replaces the sidecar, and the Route is not deleted. Admission is triggered
// repeatedly, because another replica may detect the change later.
func TestSidecarIsReplacedIfOAuthServerIsRemoved(t *testing.T) {
	s, now := newTestEnv(t), testclock.NewFakePassiveClock(time.Now())
	s.clock = now
	oauth, proxy := fmt.Sprintf(injectedHead, "oauth-proxy"), fmt.Sprintf(injectedHead, "kube-rbac-proxy")
	u := s.create(demoCluster(hashedVersion, oauth))
	old := s.startHead("old", oauth)
	s.reconcileUntilIdle(u)
	n := raycluster.View(u.Object).Names()
	expectSidecarObjects := func(cookie, rules bool) {
		t.Helper()
		if s.exists(&corev1.Secret{}, "team1", n.CookieSecret) != cookie || s.exists(&corev1.ConfigMap{}, "team1", n.ProxyConfig) != rules || s.routeBackend(u) != n.ProxyService {
			t.Errorf("unexpected objects of the sidecar: %q", s.managedNames())
		}
		service := &corev1.Service{}
		if s.exists(service, "team1", n.ProxyService); service.Annotations[oauthproxy.ServingCertAnnotation] != n.ProxyTLS {
			t.Error("the Service does not request a serving certificate from OpenShift")
		}
	}
	expectSidecarObjects(true, false)

	s.served = capability.NewSet(capability.Route, capability.OpenShiftIngress)
	for range 2 {
		if writes := s.mustReconcile(u); !slices.Contains(writes, "patch RayCluster demo") {
			t.Errorf("admission was not triggered to replace the sidecar: writes %q", writes)
		}
		s.reconcileUntilIdle(u)
		s.expectIdle(u)
		now.SetTime(now.Now().Add(sidecarRequeue))
	}
	now.SetTime(now.Now().Add(sidecarTimeout))
	s.expectIdle(u) // no more triggers after sidecarTimeout
	expectSidecarObjects(false, true)
	s.drainEvents()
	s.edit(u, func() { u.Object["spec"] = clusterFrom(t, proxy).Object["spec"] }) // as the webhook does
	s.reconcileUntilIdle(u)
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "delete its pod") {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.deletePod(old)
	s.startHead("new", proxy)
	s.reconcileUntilIdle(u)
	s.expectIdle(u)
	expectSidecarObjects(false, true)

	s.served = openShift
	if writes := s.mustReconcile(u); !slices.Contains(writes, "patch RayCluster demo") {
		t.Errorf("admission was not triggered to restore the OAuth sidecar: writes %q", writes)
	}
	expectSidecarObjects(true, false)
}

// A new cluster that the KubeRay of the platform secures has no objects, for all values of raycluster.publish.
func TestBuildReturnsNothingWithPlatformKubeRay(t *testing.T) {
	for _, publish := range []string{"", config.PublishAuto, config.PublishOpen, config.PublishGateway, config.PublishNone} {
		for _, head := range []string{plainHead, tokenHead} {
			u := clusterFrom(t, demoCluster(hashedVersion, head))
			in := inputsFor(u, true, func(in *resources.Inputs) {
				in.Publish, in.HasHTTPRoutes, in.HasBackendTLSPolicies, in.KubeRaySecures, in.KubeRaySecurity = publish, true, true, true, config.KubeRaySecurityTrust
			})
			if objects := buildObjects(t, u, in); len(objects) > 0 {
				t.Errorf("publish %q: unexpected objects: %v", publish, objects)
			}
		}
	}
}

// If the platform installed KubeRay, the NetworkPolicies have hashed names, because that KubeRay deletes NetworkPolicies with legacy names.
func TestNetworkPolicyNamesWithPlatformKubeRay(t *testing.T) {
	u := clusterFrom(t, demoCluster("", plainHead))
	for installed, want := range map[bool]string{false: raycluster.View(u.Object).LegacyNames().HeadPolicy, true: raycluster.View(u.Object).HashedNames().HeadPolicy} {
		objects := buildObjects(t, u, inputsFor(u, false, func(in *resources.Inputs) { in.HasPlatformKubeRay = installed }))
		if objects[0].GetKind() != "NetworkPolicy" || objects[0].GetName() != want {
			t.Errorf("KubeRay of the platform installed: %t: got %s %s, want NetworkPolicy %s", installed, objects[0].GetKind(), objects[0].GetName(), want)
		}
	}
}
