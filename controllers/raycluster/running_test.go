package raycluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// run starts a head with the pod spec of a template and additional variables.
func (s *testEnv) run(name, template string, env ...corev1.EnvVar) *corev1.Pod {
	s.t.Helper()
	pod := podWith(name, "")
	spec := nested.At(clusterFrom(s.t, template).Object, "spec", "headGroupSpec", "template", "spec").(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod.Spec); err != nil {
		s.t.Fatal(err)
	}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, env...)
	if err := s.server.Create(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
	return pod
}

func (s *testEnv) stop(pod *corev1.Pod) {
	s.t.Helper()
	if err := s.server.Delete(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// leadsTo returns the backend of the dashboard's Route, or "".
func (s *testEnv) leadsTo(u *unstructured.Unstructured) string {
	s.t.Helper()
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	if !s.exists(route, "team1", raycluster.View(u.Object).Names().Dashboard) {
		return ""
	}
	name, _, _ := unstructured.NestedString(route.Object, "spec", "to", "name")
	return name
}

// opens reports whether the head's NetworkPolicy opens a port to routers or everyone.
func (s *testEnv) opens(u *unstructured.Unstructured, port int32) bool {
	s.t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	if !s.exists(policy, "team1", raycluster.View(u.Object).Names().HeadPolicy) {
		s.t.Fatal("the NetworkPolicy of the head is missing")
	}
	for _, rule := range policy.Spec.Ingress {
		strangers := len(rule.From) == 0
		for _, from := range rule.From {
			strangers = strangers || from.NamespaceSelector != nil && strings.Contains(fmt.Sprint(from.NamespaceSelector.MatchExpressions), "openshift-ingress")
		}
		for _, p := range rule.Ports {
			if strangers && p.Port.IntVal == port {
				return true
			}
		}
	}
	return false
}

var asksForToken = corev1.EnvVar{Name: "RAY_AUTH_MODE", Value: "token"}

// [R29] [R32] A dashboard with only a Ray token is published with the consent of an administrator while every running head requires the
// token. Until then it stays behind the sidecar of its pods.
func TestExposureRequiresRayTokenInPods(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	guarded := raycluster.View(u.Object).Names().ProxyService
	first := s.run("first", sidecar)
	s.mustReconcile(u)
	expect := func(when, route string, open bool) {
		t.Helper()
		s.mustReconcile(u)
		if to := s.leadsTo(u); to != route {
			t.Errorf("%s: the Route leads to %q, want %q", when, to, route)
		}
		if got := s.opens(u, 8265); got != open {
			t.Errorf("%s: open to routers: %t, want %t", when, got, open)
		}
	}
	expect("as it was", guarded, false)
	s.edit(u, func() {
		u.Object["spec"] = clusterFrom(t, tokenHead).Object["spec"]
	})
	expect("a token without an administrator's word", guarded, false)
	s.settings.KubeRaySecurity = config.KubeRaySecurityTrust
	expect("the pod of before runs", guarded, false)
	if !s.exists(&rbacv1.ClusterRoleBinding{}, "", raycluster.View(u.Object).Names().ClusterRoleBinding) {
		t.Error("the binding with which the running sidecar reviews tokens was deleted")
	}
	s.stop(first)
	expect("no pod runs", guarded, false)
	second := s.run("second", tokenHead, asksForToken)
	expect("the new pod asks for the token", "demo-head-svc", true)
	third := s.run("third", tokenHead)
	expect("another head does not", "", false)
	s.stop(third)
	expect("all heads do again", "demo-head-svc", true)
	s.stop(second)
	expect("no pod runs any more", "demo-head-svc", false)
}

// [R29] Old versions of Ray ignore tokens, regardless of rayVersion, and KubeRay depends on rayVersion only.
func TestExposureIgnoresRayTokenOfOldImage(t *testing.T) {
	u := clusterFrom(t, demoCluster(hashedVersion, "spec: {rayVersion: 2.52.0, authOptions: {mode: token}, "+
		"headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: 'quay.io/modh/ray:2.47.1-py311-cu121'}]}}}}"))
	for _, changes := range [][]func(*resources.Inputs){nil, {trusting}, {trusting, heads(raycluster.Injected{})}, {noOAuth}} {
		for _, o := range buildObjects(t, u, inputsFor(u, true, changes...)) {
			if to, _, _ := unstructured.NestedString(o.Object, "spec", "to", "name"); o.GetKind() == "Route" && to == "demo-head-svc" {
				t.Errorf("a Route leads to the bare dashboard: %v", o.Object["spec"])
			}
		}
	}
}

// [R32] The client port is published when every running head serves TLS, regardless of settings and template.
func TestClientPortFollowsThePods(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	expect := func(when string, want bool) {
		t.Helper()
		s.mustReconcile(u)
		if open, published := s.opens(u, 10001), s.exists(route, "team1", "rayclient-demo"); open != want || published != want {
			t.Errorf("%s: open %t, published %t", when, open, published)
		}
	}
	expect("no pod runs", true)
	plain := s.run("plain", plainHead)
	expect("a pod of the previous template", false)
	if eventText := s.eventsSince(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "delete its pod") {
		t.Errorf("unexpected Events %q", eventText)
	}
	encrypted := s.run("encrypted", sidecar)
	expect("with a pod of the previous template", false)
	s.stop(plain)
	expect("encrypted", true)
	s.settings.MTLS = false
	expect("mTLS is off", false)
	s.settings.MTLS = true
	s.stop(encrypted)
	s.run("disabled by variable", sidecar, corev1.EnvVar{Name: "RAY_USE_TLS", Value: "0"})
	expect("with certificates that it does not use", false)
}

// [R28] Certificates are retained and renewed while any pod mounts them.
func TestMountedCertificatesAreKept(t *testing.T) {
	s := newTestEnv(t)
	s.settings.MTLS = false
	u := s.create(demoCluster(hashedVersion, plainHead))
	inForce := func() raycluster.Mode {
		t.Helper()
		s.mustReconcile(u)
		return s.certificates.modes[len(s.certificates.modes)-1]
	}
	if mode := inForce(); mode.MTLS {
		t.Errorf("got mode %+v without pods, want no mTLS", mode)
	}
	worker := s.run("worker", mutualHead)
	worker.Labels[raycluster.LabelNodeType] = raycluster.NodeTypeWorker
	if err := s.server.Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := inForce(); !mode.MTLS || mode.Issuer != raycluster.IssuerPod {
		t.Errorf("got mode %+v with a worker that mounts certificates, want mTLS issued by the pod", mode)
	}
	worker.Status.Phase = corev1.PodSucceeded
	if err := s.server.Status().Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := inForce(); mode.MTLS {
		t.Errorf("got mode %+v after the worker was deleted, want no mTLS", mode)
	}
}

// [R28] With OAuth disabled, a container of the user that equals the sidecar gets no objects: its ServiceAccount could review tokens,
// and everyone who can create pods in the namespace could use it.
func TestReconcileCreatesNoBindingForUserSidecar(t *testing.T) {
	for name, spec := range map[string]string{
		"kube-rbac-proxy of the user":        "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: kube-rbac-proxy, image: users/own, args: [mine]}]}}}}",
		"oauth-proxy of the user":            "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: oauth-proxy, image: users/own}]}}}}",
		"oauth-proxy with our arguments":     fmt.Sprintf(injectedHead, "oauth-proxy"),
		"kube-rbac-proxy with our arguments": fmt.Sprintf(injectedHead, "kube-rbac-proxy"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.settings.OAuth, s.settings.MTLS = false, false
			u := s.create(demoCluster(hashedVersion, spec))
			s.run("head", spec)
			s.reconcileUntilIdle(u)
			n := raycluster.View(u.Object).Names()
			if s.exists(&rbacv1.ClusterRoleBinding{}, "", n.ClusterRoleBinding) || s.exists(&corev1.ServiceAccount{}, "team1", n.ServiceAccount) ||
				s.exists(&corev1.Service{}, "team1", n.ProxyService) || s.exists(&corev1.Secret{}, "team1", n.CookieSecret) {
				t.Errorf("made: %q", s.managedNames())
			}
			if s.reread(u); len(u.GetFinalizers()) > 0 {
				t.Errorf("finalizers %v", u.GetFinalizers())
			}
		})
	}
}
