package modelregistry

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// readyPod returns a ready pod of the server.
func (w *testEnv) readyPod(m *v1beta1.ModelRegistry, name string, containers ...string) *corev1.Pod {
	w.Helper()
	pod := podWith(name)
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, readyContainer(container))
	}
	pod.Namespace, pod.Labels = m.Namespace, resources.ServerSelector(m)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.requireNoError(w.server.Create(w.Context(), &pod))
	return &pod
}

func (w *testEnv) servicePort() int32 {
	w.Helper()
	s := &corev1.Service{}
	if !w.get(s, "ns", "demo") || len(s.Spec.Ports) != 1 {
		w.Fatalf("ports %v", s.Spec.Ports)
	}
	return s.Spec.Ports[0].Port
}

// A running registry that gets a proxy remains reachable: without the certificate no pod is replaced, and the Service targets the ready
// pods.
func TestServiceFollowsThePods(t *testing.T) {
	w := newTestEnv(t, nil, newSecret("ns", "pg-login"))
	m := newRegistry("demo")
	w.requireWait(w.reconcile(m), "available")
	w.setRunning(m)
	w.requireNoError(w.server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-pod"}}))
	old := w.readyPod(m, "old", "rest-container")
	registrytest.Proxied(&m.Spec) // with a certificate of the user's, which is not there yet
	w.requireWait(w.reconcile(m), "available")
	d, policy := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}
	if w.get(d, "ns", "demo"); len(d.Spec.Template.Spec.Containers) != 1 || w.servicePort() != 8080 {
		t.Errorf("%d containers, port %d", len(d.Spec.Template.Spec.Containers), w.servicePort())
	}
	if !w.get(policy, "ns", "demo-ingress") || len(policy.Spec.Ingress) != 2 {
		t.Errorf("the policy shuts out the port that serves: %v", policy.Spec.Ingress)
	}
	if c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); !strings.Contains(c.Message, "Secret team-a-kube-rbac-proxy does not exist") {
		t.Errorf("message %q", c.Message)
	}
	w.requireNoError(w.server.Create(t.Context(), newSecret("ns", "team-a-kube-rbac-proxy")))
	w.requireWait(w.reconcile(m), "available")
	if w.get(d, "ns", "demo"); len(d.Spec.Template.Spec.Containers) != 2 || w.servicePort() != 8080 {
		t.Errorf("%d containers, port %d", len(d.Spec.Template.Spec.Containers), w.servicePort())
	}
	w.readyPod(m, "next", "rest-container", "kube-rbac-proxy")
	w.requireNoError(w.server.Delete(t.Context(), old))
	w.requireNoError(w.reconcile(m))
	if w.get(policy, "ns", "demo-ingress"); w.servicePort() != 8443 || len(policy.Spec.Ingress) != 1 {
		t.Errorf("port %d, policy %v", w.servicePort(), policy.Spec.Ingress)
	}
	m.Spec.KubeRBACProxy = nil // and back
	_ = w.reconcile(m)
	if w.servicePort() != 8443 || !w.get(policy, "ns", "demo-ingress") {
		t.Errorf("port %d", w.servicePort())
	}
}

// On OpenShift the Service requests the certificate while it still targets pods without a proxy.
func TestServiceRequestsTheCertificate(t *testing.T) {
	w := newTestEnv(t, everything, newSecret("ns", "pg-login"))
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	w.readyPod(m, "old", "rest-container")
	w.requireWait(w.reconcile(m), "available")
	s := &corev1.Service{}
	w.get(s, "ns", "demo")
	if s.Annotations[servers.AnnotationServingCert] != "demo-kube-rbac-proxy" || s.Spec.Ports[0].Port != 8080 || w.get(&appsv1.Deployment{}, "ns", "demo") {
		t.Errorf("unexpected annotations %v or ports %v of the Service", s.Annotations, s.Spec.Ports)
	}
}

// Without a platform that issues certificates, the operator issues that of the proxy, once.
func TestServingCertificate(t *testing.T) {
	for name, test := range map[string]struct {
		served []schema.GroupVersionKind
		proxy  *v1beta1.ProxyConfig
		there  *corev1.Secret
		issued bool
	}{
		"plain Kubernetes":        {nil, &v1beta1.ProxyConfig{}, nil, true},
		"OpenShift":               {everything, &v1beta1.ProxyConfig{}, nil, false},
		"no proxy":                {nil, nil, nil, false},
		"certificate of the user": {nil, &v1beta1.ProxyConfig{TLSCertificateSecret: &v1beta1.SecretKeyValue{Name: "own", Key: "crt"}, TLSKeySecret: &v1beta1.SecretKeyValue{Name: "own", Key: "key"}}, nil, false},
		"a Secret of that name":   {nil, &v1beta1.ProxyConfig{}, newSecret("ns", "demo-kube-rbac-proxy"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, test.served)
			if test.there != nil {
				w.requireNoError(w.server.Create(t.Context(), test.there))
			}
			m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = test.proxy })
			_ = w.reconcile(m)
			if got := strings.Contains(w.takeWrites(), "apply Secret demo-kube-rbac-proxy"); got != test.issued {
				t.Errorf("issued %t", got)
			}
			secret := &corev1.Secret{}
			if w.get(secret, "ns", "demo-kube-rbac-proxy") && test.issued && (len(secret.Data["tls.crt"]) == 0 || len(secret.Data["ca.crt"]) == 0) {
				t.Errorf("keys %v", secret.Data)
			}
			_ = w.reconcile(m)
			if got := w.takeWrites(); strings.Contains(got, "Secret") {
				t.Errorf("wrote again\n%s", got)
			}
		})
	}
}
