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

// etcdSecretWithRoot returns the etcd Secret of the operator's namespace with the user root.
func etcdSecretWithRoot() *corev1.Secret {
	s := etcdSecret("own")
	s.Data = map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://etcd.own:2379","root_prefix":"models","userid":"root","password":"secret"}`)}
	return s
}

// Pods get the user of their namespace, which is verified every minute, because an etcd without a volume loses it.
func TestEtcdUserPerNamespace(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.must(w.api.Update(t.Context(), etcdSecretWithRoot()))
	w.settings.EtcdUserPerNamespace = true
	w.reconcileUntilStable("ns")
	if got := string(w.copiedEtcdSecret().Data["etcd_connection"]); !strings.Contains(got, `"userid":"modelmesh-ns"`) || strings.Contains(got, "secret") {
		t.Errorf("the pods have %s", got)
	}
	if len(w.mesh.granted) != 1 || w.mesh.granted[0].Prefix != "models/mm_ns/ns" {
		t.Errorf("granted %+v", w.mesh.granted)
	}
	w.clock.Step(time.Minute)
	w.mesh.failGrant = errors.New("etcd is away")
	w.reconcileOnce("ns")
	if len(w.mesh.granted) != 2 {
		t.Errorf("granted %+v", w.mesh.granted)
	}
}

// Without the user neither its Secret nor a Deployment is created, because pods could not start.
func TestNoDeploymentWithoutEtcdUser(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.must(w.api.Update(t.Context(), etcdSecretWithRoot()))
	w.settings.EtcdUserPerNamespace, w.mesh.failGrant = true, errors.New("etcd is away")
	if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "creating the user of namespace ns: etcd is away") {
		t.Errorf("error %v", err)
	}
	for _, write := range w.writes {
		if strings.Contains(write, "Secret") || strings.Contains(write, "Deployment") {
			t.Error(write)
		}
	}
}

// A connection without root user is reported and not copied.
func TestEtcdUserPerNamespaceNeedsRootUser(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.settings.EtcdUserPerNamespace = true
	w.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "userid or password is empty: set those of the user root") {
		t.Errorf("events %s", emitted)
	}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "model-serving-etcd"}, &corev1.Secret{}); err == nil {
		t.Error("the etcd Secret was copied into the namespace")
	}
}
