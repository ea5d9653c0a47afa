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

// startHead creates a head pod with the pod spec of a template and additional environment variables.
func (s *testEnv) startHead(name, template string, env ...corev1.EnvVar) *corev1.Pod {
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

func (s *testEnv) deletePod(pod *corev1.Pod) {
	s.t.Helper()
	if err := s.server.Delete(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// routeBackend returns the backend of the dashboard's Route, or "".
func (s *testEnv) routeBackend(u *unstructured.Unstructured) string {
	s.t.Helper()
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	if !s.exists(route, "team1", raycluster.View(u.Object).Names().Dashboard) {
		return ""
	}
	name, _, _ := unstructured.NestedString(route.Object, "spec", "to", "name")
	return name
}

// isPortOpen reports whether the head's NetworkPolicy allows routers or everyone to connect to a port.
func (s *testEnv) isPortOpen(u *unstructured.Unstructured, port int32) bool {
	s.t.Helper()
	policy := &networkingv1.NetworkPolicy{}
	if !s.exists(policy, "team1", raycluster.View(u.Object).Names().HeadPolicy) {
		s.t.Fatal("the NetworkPolicy of the head is missing")
	}
	for _, rule := range policy.Spec.Ingress {
		open := len(rule.From) == 0
		for _, from := range rule.From {
			open = open || from.NamespaceSelector != nil && strings.Contains(fmt.Sprint(from.NamespaceSelector.MatchExpressions), "openshift-ingress")
		}
		for _, p := range rule.Ports {
			if open && p.Port.IntVal == port {
				return true
			}
		}
	}
	return false
}

var tokenAuthEnv = corev1.EnvVar{Name: "RAY_AUTH_MODE", Value: "token"}

// [R29] [R32] A dashboard with only a Ray token is published if an administrator trusts KubeRay and every running head requires the token.
// The Route of an earlier sidecar is retained until a head without that sidecar runs.
func TestExposureRequiresRayTokenInPods(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	proxyService := raycluster.View(u.Object).Names().ProxyService
	first := s.startHead("first", sidecar)
	s.mustReconcile(u)
	expect := func(when, backend string, open bool) {
		t.Helper()
		s.mustReconcile(u)
		if got := s.routeBackend(u); got != backend {
			t.Errorf("%s: the Route has backend %q, want %q", when, got, backend)
		}
		if got := s.isPortOpen(u, 8265); got != open {
			t.Errorf("%s: dashboard port open to routers: %t, want %t", when, got, open)
		}
	}
	expect("no token", proxyService, false)
	s.edit(u, func() {
		u.Object["spec"] = clusterFrom(t, tokenHead).Object["spec"]
	})
	expect("token, KubeRay is not trusted", proxyService, false)
	s.settings.KubeRaySecurity = config.KubeRaySecurityTrust
	expect("token, KubeRay is trusted, old head", proxyService, false)
	if !s.exists(&rbacv1.ClusterRoleBinding{}, "", raycluster.View(u.Object).Names().ClusterRoleBinding) {
		t.Error("the ClusterRoleBinding of the running sidecar was deleted")
	}
	s.deletePod(first)
	expect("no head", proxyService, false)
	second := s.startHead("second", tokenHead, tokenAuthEnv)
	expect("new head that requires the token", "demo-head-svc", true)
	third := s.startHead("third", tokenHead)
	expect("additional head without the token", "", false)
	s.deletePod(third)
	expect("all heads require the token", "demo-head-svc", true)
	s.deletePod(second)
	expect("last head deleted", "demo-head-svc", false)
}

// [R29] Old versions of Ray ignore tokens, but KubeRay requests them by rayVersion only. So unless an administrator trusts KubeRay, no
// Route leads to the dashboard itself, even if the running head has the variable of the token.
func TestExposureIgnoresRayTokenOfOldImage(t *testing.T) {
	u := clusterFrom(t, demoCluster(hashedVersion, "spec: {rayVersion: 2.52.0, authOptions: {mode: token}, "+
		"headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: 'quay.io/modh/ray:2.47.1-py311-cu121'}]}}}}"))
	head := withHeads(raycluster.Injected{RayToken: true})
	for _, changes := range [][]func(*resources.Inputs){{head}, {head, withoutOAuth}} {
		for _, o := range buildObjects(t, u, inputsFor(u, true, changes...)) {
			if to, _, _ := unstructured.NestedString(o.Object, "spec", "to", "name"); o.GetKind() == "Route" && to == "demo-head-svc" {
				t.Errorf("a Route publishes the unauthenticated dashboard: %v", o.Object["spec"])
			}
		}
	}
}

// [R32] With mTLS, the client port is published if every running head serves TLS. Without a running head, the template decides.
func TestClientPortFollowsThePods(t *testing.T) {
	s := newTestEnv(t)
	sidecar := fmt.Sprintf(injectedHead, "oauth-proxy")
	u := s.create(demoCluster(hashedVersion, sidecar))
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	expect := func(when string, want bool) {
		t.Helper()
		s.mustReconcile(u)
		if open, published := s.isPortOpen(u, 10001), s.exists(route, "team1", "rayclient-demo"); open != want || published != want {
			t.Errorf("%s: port open: %t, Route exists: %t, want %t", when, open, published, want)
		}
	}
	expect("no head", true)
	plain := s.startHead("plain", plainHead)
	expect("head of the previous template", false)
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonNotSecured) || !strings.Contains(eventText, "delete its pod") {
		t.Errorf("unexpected Events %q", eventText)
	}
	encrypted := s.startHead("encrypted", sidecar)
	expect("heads of both templates", false)
	s.deletePod(plain)
	expect("encrypted head", true)
	s.settings.MTLS = false
	expect("mTLS disabled", false)
	s.settings.MTLS = true
	s.deletePod(encrypted)
	s.startHead("disabled by variable", sidecar, corev1.EnvVar{Name: "RAY_USE_TLS", Value: "0"})
	expect("head with unused certificates", false)
}

// [R28] Certificates are retained and renewed while any pod mounts them.
func TestMountedCertificatesAreKept(t *testing.T) {
	s := newTestEnv(t)
	s.settings.MTLS = false
	u := s.create(demoCluster(hashedVersion, plainHead))
	certificateMode := func() raycluster.Mode {
		t.Helper()
		s.mustReconcile(u)
		return s.certificates.modes[len(s.certificates.modes)-1]
	}
	if mode := certificateMode(); mode.MTLS {
		t.Errorf("got mode %+v without pods, want no mTLS", mode)
	}
	worker := s.startHead("worker", mutualHead)
	worker.Labels[raycluster.LabelNodeType] = raycluster.NodeTypeWorker
	if err := s.server.Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := certificateMode(); !mode.MTLS || mode.Issuer != raycluster.IssuerPod {
		t.Errorf("got mode %+v with a worker that mounts certificates, want mTLS issued by the pod", mode)
	}
	worker.Status.Phase = corev1.PodSucceeded
	if err := s.server.Status().Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if mode := certificateMode(); mode.MTLS {
		t.Errorf("got mode %+v after the worker finished, want no mTLS", mode)
	}
}

// [R28] The token Secret of a head that keeps its ServiceAccount is kept while its sidecar runs, although the mode has none.
func TestTokenSecretOfRunningSidecarIsKept(t *testing.T) {
	for name, disable := range map[string]func(*testEnv){
		"OAuth is disabled":    func(s *testEnv) { s.settings.OAuth = false },
		"the platform secures": func(s *testEnv) { s.served = openShift.WithPlatformKubeRay(true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			sidecar := strings.Replace(fmt.Sprintf(injectedHead, "oauth-proxy"), "containers:", "serviceAccountName: mine, containers:", 1)
			u := s.create(demoCluster(hashedVersion+", "+raycluster.AnnotationKeepServiceAccount+": 'true'", sidecar))
			head, token := s.startHead("head", sidecar), raycluster.View(u.Object).Names().TokenSecret
			s.reconcileUntilIdle(u)
			disable(s)
			s.reconcileUntilIdle(u)
			if !s.exists(&corev1.Secret{}, "team1", token) {
				t.Error("the Secret that the running sidecar mounts was deleted")
			}
			s.edit(u, func() { u.Object["spec"] = clusterFrom(t, plainHead).Object["spec"] })
			s.deletePod(head)
			s.reconcileUntilIdle(u)
			if s.exists(&corev1.Secret{}, "team1", token) {
				t.Error("the Secret was not deleted with the last sidecar")
			}
		})
	}
}

// [R28] With OAuth disabled, a container of the user with the name of the sidecar gets no objects, even if it equals the sidecar: its
// ServiceAccount could review tokens, and everyone who can create pods in the namespace could use it.
func TestReconcileCreatesNoBindingForUserSidecar(t *testing.T) {
	for name, spec := range map[string]string{
		"kube-rbac-proxy of the user":           "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: kube-rbac-proxy, image: users/own, args: [mine]}]}}}}",
		"oauth-proxy of the user":               "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, image: i}, {name: oauth-proxy, image: users/own}]}}}}",
		"oauth-proxy like the injected one":     fmt.Sprintf(injectedHead, "oauth-proxy"),
		"kube-rbac-proxy like the injected one": fmt.Sprintf(injectedHead, "kube-rbac-proxy"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.settings.OAuth, s.settings.MTLS = false, false
			u := s.create(demoCluster(hashedVersion, spec))
			s.startHead("head", spec)
			s.reconcileUntilIdle(u)
			n := raycluster.View(u.Object).Names()
			if s.exists(&rbacv1.ClusterRoleBinding{}, "", n.ClusterRoleBinding) || s.exists(&corev1.ServiceAccount{}, "team1", n.ServiceAccount) ||
				s.exists(&corev1.Service{}, "team1", n.ProxyService) || s.exists(&corev1.Secret{}, "team1", n.CookieSecret) {
				t.Errorf("objects were created for a sidecar of the user: %q", s.managedNames())
			}
			if s.refresh(u); len(u.GetFinalizers()) > 0 {
				t.Errorf("unexpected finalizers %v", u.GetFinalizers())
			}
		})
	}
}
