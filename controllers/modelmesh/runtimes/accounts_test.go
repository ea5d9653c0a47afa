package runtimes

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// newEtcdSecretWithRoot returns the etcd Secret of the operator's namespace for the user root.
func newEtcdSecretWithRoot() *corev1.Secret {
	s := newEtcdSecret("own")
	s.Data = map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://etcd.own:2379","root_prefix":"models","userid":"root","password":"secret"}`)}
	return s
}

// Pods use the etcd user of their namespace. It is verified every minute, because an etcd without a volume loses it.
func TestEtcdUserPerNamespace(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.must(env.api.Update(t.Context(), newEtcdSecretWithRoot()))
	env.settings.EtcdUserPerNamespace = true
	env.reconcileUntilStable("ns")
	if got := string(env.copiedEtcdSecret().Data["etcd_connection"]); !strings.Contains(got, `"userid":"modelmesh-ns"`) || strings.Contains(got, "secret") {
		t.Errorf("etcd connection %s, want the user of the namespace", got)
	}
	if len(env.mesh.granted) != 1 || env.mesh.granted[0].Prefix != "models/mm_ns/ns" {
		t.Errorf("granted %+v, want one account", env.mesh.granted)
	}
	env.clock.Step(time.Minute)
	env.mesh.grantErr = errors.New("etcd is down")
	env.reconcileOnce("ns")
	if len(env.mesh.granted) != 2 {
		t.Errorf("granted %+v, want it verified again", env.mesh.granted)
	}
}

// If the etcd user cannot be created, neither its Secret nor a Deployment is applied: the pods could not start.
func TestNoDeploymentWithoutEtcdUser(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.must(env.api.Update(t.Context(), newEtcdSecretWithRoot()))
	env.settings.EtcdUserPerNamespace, env.mesh.grantErr = true, errors.New("etcd is down")
	if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "creating the etcd user of namespace ns: etcd is down") {
		t.Errorf("error %v", err)
	}
	for _, write := range env.writes {
		if strings.Contains(write, "Secret") || strings.Contains(write, "Deployment") {
			t.Error(write)
		}
	}
}

// A connection without userid and password is reported and not copied.
func TestEtcdUserPerNamespaceRequiresRootUser(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.settings.EtcdUserPerNamespace = true
	env.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "userid or password is empty: set those of the user root") {
		t.Errorf("events %s", emitted)
	}
	if err := env.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "model-serving-etcd"}, &corev1.Secret{}); err == nil {
		t.Error("the etcd Secret was copied into the namespace")
	}
}
