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

// createReadyPod creates and returns a ready pod of the server.
func (env *testEnv) createReadyPod(m *v1beta1.ModelRegistry, name string, containers ...string) *corev1.Pod {
	env.Helper()
	pod := podWith(name)
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, readyContainer(container))
	}
	pod.Namespace, pod.Labels = m.Namespace, resources.ServerSelector(m)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	env.requireNoError(env.server.Create(env.Context(), &pod))
	return &pod
}

func (env *testEnv) servicePort() int32 {
	env.Helper()
	s := &corev1.Service{}
	if !env.get(s, "ns", "demo") || len(s.Spec.Ports) != 1 {
		env.Fatalf("got ports %v of the Service, want one", s.Spec.Ports)
	}
	return s.Spec.Ports[0].Port
}

// A running registry remains reachable when its spec gets a proxy: no pod is replaced before the certificate exists, and the Service
// targets the ready pods.
func TestServiceTargetsReadyPods(t *testing.T) {
	env := newTestEnv(t, nil, newSecret("ns", "pg-login"))
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	env.requireNoError(env.server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-pod"}}))
	old := env.createReadyPod(m, "old", "rest-container")
	registrytest.AddProxy(&m.Spec) // the Secret with the certificate does not exist yet
	env.requireWait(env.reconcile(m), "available")
	d, policy := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}
	if env.get(d, "ns", "demo"); len(d.Spec.Template.Spec.Containers) != 1 || env.servicePort() != 8080 {
		t.Errorf("without the certificate: got %d containers and port %d, want 1 container and port 8080", len(d.Spec.Template.Spec.Containers), env.servicePort())
	}
	if !env.get(policy, "ns", "demo-ingress") || len(policy.Spec.Ingress) != 2 {
		t.Errorf("the NetworkPolicy does not allow the port of the ready pods: %v", policy.Spec.Ingress)
	}
	if c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); !strings.Contains(c.Message, "Secret team-a-kube-rbac-proxy does not exist") {
		t.Errorf("got message %q, want the missing Secret", c.Message)
	}
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "team-a-kube-rbac-proxy")))
	env.requireWait(env.reconcile(m), "available")
	if env.get(d, "ns", "demo"); len(d.Spec.Template.Spec.Containers) != 2 || env.servicePort() != 8080 {
		t.Errorf("with the certificate: got %d containers and port %d, want 2 containers and port 8080", len(d.Spec.Template.Spec.Containers), env.servicePort())
	}
	env.createReadyPod(m, "next", "rest-container", "kube-rbac-proxy")
	env.requireNoError(env.server.Delete(t.Context(), old))
	env.requireNoError(env.reconcile(m))
	if env.get(policy, "ns", "demo-ingress"); env.servicePort() != 8443 || len(policy.Spec.Ingress) != 1 {
		t.Errorf("got port %d and ingress rules %v, want port 8443 and one rule", env.servicePort(), policy.Spec.Ingress)
	}
	// The Service keeps targeting the ready pods, which still have the proxy.
	m.Spec.KubeRBACProxy = nil
	_ = env.reconcile(m)
	if env.servicePort() != 8443 || !env.get(policy, "ns", "demo-ingress") {
		t.Errorf("got port %d, want port 8443 and the NetworkPolicy while the ready pods have the proxy", env.servicePort())
	}
}

// On OpenShift the Service requests the certificate while it still targets pods without a proxy.
func TestServiceRequestsTheCertificate(t *testing.T) {
	env := newTestEnv(t, optionalKinds, newSecret("ns", "pg-login"))
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{} })
	env.createReadyPod(m, "old", "rest-container")
	env.requireWait(env.reconcile(m), "available")
	s := &corev1.Service{}
	env.get(s, "ns", "demo")
	if s.Annotations[servers.AnnotationServingCert] != "demo-kube-rbac-proxy" || s.Spec.Ports[0].Port != 8080 || env.get(&appsv1.Deployment{}, "ns", "demo") {
		t.Errorf("unexpected annotations %v or ports %v of the Service", s.Annotations, s.Spec.Ports)
	}
}

// The operator issues the certificate of the proxy once, unless the platform or the user provides it.
func TestServingCertificate(t *testing.T) {
	for name, test := range map[string]struct {
		served   []schema.GroupVersionKind
		proxy    *v1beta1.ProxyConfig
		existing *corev1.Secret
		issued   bool
	}{
		"plain Kubernetes":        {nil, &v1beta1.ProxyConfig{}, nil, true},
		"OpenShift":               {optionalKinds, &v1beta1.ProxyConfig{}, nil, false},
		"no proxy":                {nil, nil, nil, false},
		"certificate of the user": {nil, &v1beta1.ProxyConfig{TLSCertificateSecret: &v1beta1.SecretKeyValue{Name: "own", Key: "crt"}, TLSKeySecret: &v1beta1.SecretKeyValue{Name: "own", Key: "key"}}, nil, false},
		"existing Secret":         {nil, &v1beta1.ProxyConfig{}, newSecret("ns", "demo-kube-rbac-proxy"), false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, test.served)
			if test.existing != nil {
				env.requireNoError(env.server.Create(t.Context(), test.existing))
			}
			m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = test.proxy })
			_ = env.reconcile(m)
			if got := strings.Contains(env.takeWrites(), "apply Secret demo-kube-rbac-proxy"); got != test.issued {
				t.Errorf("certificate issued: %t, want %t", got, test.issued)
			}
			secret := &corev1.Secret{}
			if env.get(secret, "ns", "demo-kube-rbac-proxy") && test.issued && (len(secret.Data["tls.crt"]) == 0 || len(secret.Data["ca.crt"]) == 0) {
				t.Errorf("the Secret lacks the certificate or its CA: %v", secret.Data)
			}
			_ = env.reconcile(m)
			if got := env.takeWrites(); strings.Contains(got, "Secret") {
				t.Errorf("wrote again\n%s", got)
			}
		})
	}
}
