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

// run starts a head with the pod spec of a template, and with some more variables.
func (s *scene) run(name, template string, env ...corev1.EnvVar) *corev1.Pod {
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

func (s *scene) stop(pod *corev1.Pod) {
	s.t.Helper()
	if err := s.server.Delete(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// leadsTo is where the Route of the dashboard leads; empty without one.
func (s *scene) leadsTo(u *unstructured.Unstructured) string {
	s.t.Helper()
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	if !s.has(route, "team1", raycluster.View(u.Object).Names().Dashboard) {
		return ""
	}
	name, _, _ := unstructured.NestedString(route.Object, "spec", "to", "name")
	return name
}

// opens tells whether the policy of the head lets routers, or all, to a port.
func (s *scene) opens(u *unstructured.Unstructured, port int32) bool {
	s.t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	if !s.has(policy, "team1", raycluster.View(u.Object).Names().HeadPolicy) {
		s.t.Fatal("no policy")
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

// [R29] [R32] A dashboard that only a token of Ray guards is published by an administrator's word, and while every head that runs
// asks for it. Until then it stays behind the sidecar that its pods have.
func TestExposureRequiresRayTokenInPods(t *testing.T) {
	s := newScene(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.put(demoCluster(hashedVersion, sidecar))
	guarded := raycluster.View(u.Object).Names().ProxyService
	first := s.run("first", sidecar)
	s.must(u)
	expect := func(when, route string, open bool) {
		t.Helper()
		s.must(u)
		if to := s.leadsTo(u); to != route {
			t.Errorf("%s: the Route leads to %q, want %q", when, to, route)
		}
		if got := s.opens(u, 8265); got != open {
			t.Errorf("%s: open to routers: %t", when, got)
		}
	}
	expect("as it was", guarded, false)
	s.edit(u, func() {
		u.Object["spec"] = clusterFrom(t, tokenHead).Object["spec"]
	})
	expect("a token without an administrator's word", guarded, false)
	s.settings.KubeRaySecurity = config.KubeRaySecurityTrust
	expect("the pod of before runs", guarded, false)
	if !s.has(&rbacv1.ClusterRoleBinding{}, "", raycluster.View(u.Object).Names().ClusterRoleBinding) {
		t.Error("the sidecar that runs cannot ask who calls any more")
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

// [R29] An old version of Ray knows no tokens, whatever rayVersion says, and KubeRay goes by that alone.
func TestExposureIgnoresRayTokenOfOldImage(t *testing.T) {
	u := clusterFrom(t, demoCluster(hashedVersion, "spec: {rayVersion: 2.52.0, authOptions: {mode: token}, "+
		"headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: 'quay.io/modh/ray:2.47.1-py311-cu121'}]}}}}"))
	for _, changes := range [][]func(*resources.Inputs){nil, {trusting}, {trusting, heads(raycluster.Injected{})}, {noOAuth}} {
		for _, o := range built(t, u, inputsFor(u, true, changes...)) {
			if to, _, _ := unstructured.NestedString(o.Object, "spec", "to", "name"); o.GetKind() == "Route" && to == "demo-head-svc" {
				t.Errorf("a Route leads to the bare dashboard: %v", o.Object["spec"])
			}
		}
	}
}

// [R32] The client port is opened when every head that runs serves TLS, and not by a wish or a template.
func TestClientPortFollowsThePods(t *testing.T) {
	s := newScene(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.put(demoCluster(hashedVersion, sidecar))
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	expect := func(when string, want bool) {
		t.Helper()
		s.must(u)
		if open, published := s.opens(u, 10001), s.has(route, "team1", "rayclient-demo"); open != want || published != want {
			t.Errorf("%s: open %t, published %t", when, open, published)
		}
	}
	expect("no pod runs", true)
	plain := s.run("plain", plainHead)
	expect("a pod of an older template", false)
	if said := s.said(); !strings.Contains(said, ReasonNotSecured) || !strings.Contains(said, "delete its pod") {
		t.Errorf("reported %q", said)
	}
	encrypted := s.run("encrypted", sidecar)
	expect("beside an older pod", false)
	s.stop(plain)
	expect("encrypted", true)
	s.settings.MTLS = false
	expect("mTLS is off", false)
	s.settings.MTLS = true
	s.stop(encrypted)
	s.run("switched off by variable", sidecar, corev1.EnvVar{Name: "RAY_USE_TLS", Value: "0"})
	expect("with certificates that it does not use", false)
}

// [R28] Certificates are kept and renewed while pods mount them, workers too.
func TestCertificatesStayWhilePodsMountThem(t *testing.T) {
	s := newScene(t)
	s.settings.MTLS = false
	u := s.put(demoCluster(hashedVersion, plainHead))
	inForce := func() raycluster.Mode {
		t.Helper()
		s.must(u)
		return s.certificates.modes[len(s.certificates.modes)-1]
	}
	if mode := inForce(); mode.MTLS {
		t.Errorf("without pods: %+v", mode)
	}
	worker := s.run("worker", mutualHead)
	worker.Labels[raycluster.LabelNodeType] = raycluster.NodeTypeWorker
	if err := s.server.Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := inForce(); !mode.MTLS || mode.Issuer != raycluster.IssuerPod {
		t.Errorf("with a worker: %+v", mode)
	}
	worker.Status.Phase = corev1.PodSucceeded
	if err := s.server.Status().Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := inForce(); mode.MTLS {
		t.Errorf("after the worker: %+v", mode)
	}
}

// [R28] With OAuth off nothing is made for a container of a well-known name, be it like ours in every word: the account would have
// the right to review tokens, for all who make pods in the namespace.
func TestReconcileCreatesNoBindingForUserSidecar(t *testing.T) {
	for name, spec := range map[string]string{
		"kube-rbac-proxy of the user": "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: kube-rbac-proxy, image: users/own, args: [mine]}]}}}}",
		"oauth-proxy of the user":     "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: oauth-proxy, image: users/own}]}}}}",
		"oauth-proxy like ours":       fmt.Sprintf(injectedHead, "oauth-proxy"),
		"kube-rbac-proxy like ours":   fmt.Sprintf(injectedHead, "kube-rbac-proxy"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.settings.OAuth, s.settings.MTLS = false, false
			u := s.put(demoCluster(hashedVersion, spec))
			s.run("head", spec)
			s.settle(u)
			n := raycluster.View(u.Object).Names()
			if s.has(&rbacv1.ClusterRoleBinding{}, "", n.ClusterRoleBinding) || s.has(&corev1.ServiceAccount{}, "team1", n.ServiceAccount) ||
				s.has(&corev1.Service{}, "team1", n.ProxyService) || s.has(&corev1.Secret{}, "team1", n.CookieSecret) {
				t.Errorf("made: %q", s.around())
			}
			if s.reread(u); len(u.GetFinalizers()) > 0 {
				t.Errorf("finalizers %v", u.GetFinalizers())
			}
		})
	}
}
