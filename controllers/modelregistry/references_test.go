package modelregistry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func missingOf(m *v1beta1.ModelRegistry) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, reference.Condition); c != nil {
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return ""
}

// A missing Secret, ConfigMap or key of the spec is reported until it exists, and does not make a running server unavailable.
func TestMissingReferences(t *testing.T) {
	login := func() *corev1.Secret { return newSecret("ns", "pg-login") }
	env := newTestEnv(t, nil, login())
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) {
		s.Postgres.SSLRootCertificateConfigMap = &v1beta1.ConfigMapKeyValue{Name: "authority", Key: "ca.crt"}
	})
	expect := func(want string) {
		t.Helper()
		if got := missingOf(m); got != want {
			t.Errorf("condition %q, want %q", got, want)
		}
	}
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authority"}, Data: map[string]string{"ca.pem": "x"}}
	env.requireWait(env.reconcile(m), "available")
	expect("False ReferencesMissing: In namespace ns: ConfigMap authority does not exist; create it")
	env.setRunning(m)
	env.requireNoError(env.server.Create(t.Context(), authority))
	env.requireNoError(env.server.Delete(t.Context(), login()))
	env.requireNoError(env.reconcile(m))
	if reasonOf(m, ConditionAvailable) != serving.ReasonAvailable {
		t.Errorf("the running server became unavailable: %v", m.Status.Conditions)
	}
	expect("False ReferencesMissing: In namespace ns: ConfigMap authority has no key ca.crt; add it; Secret pg-login does not exist; create it")
	authority.Data = map[string]string{"ca.crt": "x"}
	env.requireNoError(env.server.Update(t.Context(), authority))
	env.requireNoError(env.server.Create(t.Context(), login()))
	env.requireNoError(env.reconcile(m))
	expect("")
}

// Missing objects that the operator or the platform creates are not reported. A missing certificate of the spec is reported.
func TestMissingReferencesOmitManagedObjects(t *testing.T) {
	env := newTestEnv(t, openShiftConfig)
	m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy = &v1beta1.ProxyConfig{Domain: "d"} })
	env.requireWait(env.reconcile(m), "available")
	if got := missingOf(m); got != "" {
		t.Errorf("condition %q", got)
	}
	m.Spec.KubeRBACProxy.TLSCertificateSecret = &v1beta1.SecretKeyValue{Name: "theirs", Key: "tls.crt"}
	m.Spec.KubeRBACProxy.TLSKeySecret = &v1beta1.SecretKeyValue{Name: "theirs", Key: "tls.key"}
	env.requireWait(env.reconcile(m), "available")
	if got := missingOf(m); got != "False ReferencesMissing: In namespace ns: Secret theirs does not exist; create it" {
		t.Errorf("condition %q", got)
	}
}

// A missing ConfigMap of a volume and a missing image pull Secret are reported, and their creation triggers a reconcile.
func TestMissingVolumes(t *testing.T) {
	env := newTestEnv(t, nil, newSecret("ns", "pg-login"), newSecret("ns", "client"))
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.Pods = registrytest.Placed() })
	env.requireWait(env.reconcile(m), "available")
	if got, want := missingOf(m), "False ReferencesMissing: In namespace ns: ConfigMap authorities does not exist; create it; Secret mirror does not exist; create it"; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
	if !usesConfigMap(m, "authorities") || !usesSecret(m, "mirror") || usesSecret(m, "authorities") {
		t.Error("want only ConfigMap authorities and Secret mirror to trigger a reconcile")
	}
	env.requireNoError(env.server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authorities"}}))
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "mirror")))
	env.requireWait(env.reconcile(m), "available")
	if got := missingOf(m); got != "" {
		t.Errorf("condition %q", got)
	}
}
