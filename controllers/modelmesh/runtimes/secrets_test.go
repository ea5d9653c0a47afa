package runtimes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

// copiedEtcdSecret returns the etcd Secret in ns.
func (env *testEnv) copiedEtcdSecret() *corev1.Secret {
	env.Helper()
	s := &corev1.Secret{}
	if !env.get(s, "ns", "model-serving-etcd") {
		env.Fatal("no etcd Secret")
	}
	return s
}

// [M30] The copy follows the source with its referenced keys, and keeps metadata of other clients.
func TestEtcdSecretIsCopied(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.reconcileUntilStable("ns")
	if got := string(w.copiedEtcdSecret().Data["etcd_connection"]); !strings.Contains(got, `"root_prefix":"models/mm_ns/ns"`) || !strings.Contains(got, "http://etcd.own:2379") {
		t.Errorf("copy %s", got)
	}
	source := &corev1.Secret{}
	w.get(source, "own", "model-serving-etcd")
	source.Data = map[string][]byte{
		"etcd_connection": []byte(`{"endpoints":"https://etcd.example.com:2379","root_prefix":"x","certificate_file":"ca"}`), "ca": []byte("PEM"), "more": []byte("no"),
	}
	w.must(w.api.Update(t.Context(), source))
	w.expect("writes", w.reconcileUntilStable("ns"), []string{"apply Secret ns/model-serving-etcd"})
	data := w.copiedEtcdSecret().Data
	if string(data["ca"]) != "PEM" || len(data["more"]) > 0 || !strings.Contains(string(data["etcd_connection"]), "https://etcd.example.com:2379") {
		t.Errorf("copy %q", data)
	}
	if string(w.mesh.data["ca"]) != "PEM" {
		t.Error("the etcd watcher does not have it")
	}
	source.Data = map[string][]byte{"etcd_connection": []byte("{")}
	w.must(w.api.Update(t.Context(), source))
	w.expect("a Secret that is no good", w.reconcileUntilStable("ns"), nil)
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "Secret model-serving-etcd in namespace own cannot be used") {
		t.Errorf("events %s, want it to contain %q", emitted, "Secret model-serving-etcd in namespace own cannot be used")
	}
	w.must(w.api.Delete(t.Context(), source))
	w.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "Could not get the controller etcd secret") {
		t.Errorf("events %s, want it to contain %q", emitted, "Could not get the controller etcd secret")
	}
}

// [M30] A foreign etcd Secret in a namespace is kept; one of the legacy controller is adopted.
func TestEtcdSecretAdoption(t *testing.T) {
	foreign := etcdSecret("ns")
	w := newTestEnv(t, localRuntime("r", "onnx"), foreign)
	w.settings.AllowNamespaceEtcd = true
	for _, write := range w.reconcileUntilStable("ns") {
		if strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	if len(w.mesh.own["ns"]["etcd_connection"]) == 0 || w.mesh.own["own"] != nil {
		t.Errorf("the etcd watcher got %q: it listens to what the pods use", w.mesh.own)
	}
	w.reads = nil
	w.reconcileOnce("ns")
	w.expect("live reads at rest", w.reads, nil)

	left := etcdSecret("ns")
	left.Labels = map[string]string{"app.kubernetes.io/managed-by": "modelmesh-controller"}
	w = newTestEnv(t, localRuntime("r", "onnx"), left)
	w.reconcileUntilStable("ns")
	if got := w.copiedEtcdSecret(); !isManaged(got) || !strings.Contains(string(got.Data["etcd_connection"]), "mm_ns/ns") {
		t.Errorf("unexpected labels %v or data %q of the copied Secret", got.Labels, got.Data)
	}
	if len(w.mesh.own) != 0 {
		t.Errorf("the etcd watcher got %q", w.mesh.own)
	}
}

// [M30] A namespace with its own etcd Secret does not need that of the operator, which is copied when its own is deleted.
func TestNamespaceEtcdSecretTakesPrecedence(t *testing.T) {
	foreign := etcdSecret("ns")
	w := newTestEnv(t, localRuntime("r", "onnx"), foreign)
	w.settings.AllowNamespaceEtcd = true
	w.must(w.api.Delete(t.Context(), etcdSecret("own")))
	w.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(w.events), "\n"); strings.Contains(emitted, "controller etcd secret") {
		t.Errorf("events %s", emitted)
	}
	if len(w.mesh.own["ns"]) == 0 {
		t.Error("the etcd watcher does not have it")
	}
	w.mesh.failOwn = errors.New("no good")
	w.reconcileOnce("ns")
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "Secret model-serving-etcd in namespace ns cannot be used: no good") {
		t.Errorf("events %s, want it to contain %q", emitted, "Secret model-serving-etcd in namespace ns cannot be used: no good")
	}
	w.mesh.failOwn = nil
	w.must(w.api.Delete(t.Context(), foreign))
	w.create(etcdSecret("own"))
	w.reconcileUntilStable("ns")
	if w.mesh.own["ns"] != nil || w.mesh.data == nil || !isManaged(w.copiedEtcdSecret()) {
		t.Errorf("the etcd watcher got %q and %q", w.mesh.own, w.mesh.data)
	}
}

// The operator connects to the etcd of a namespace only if the administrator allows it.
func TestNamespaceEtcdMustBeAllowed(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), etcdSecret("ns"))
	w.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "allowNamespaceEtcd") || len(w.mesh.own["ns"]) != 0 {
		t.Errorf("the etcd watcher got %q, events %s", w.mesh.own, emitted)
	}
}

func TestForeignSecretData(t *testing.T) {
	left := etcdSecret("ns")
	left.Labels = map[string]string{"app.kubernetes.io/managed-by": "modelmesh-controller"}
	if got := foreignSecretData(left); got != nil {
		t.Errorf("%q is of the original", got)
	}
	if got := foreignSecretData(&corev1.Secret{}); got == nil || len(got) != 0 {
		t.Errorf("%q: an empty Secret of a user is one all the same", got)
	}
	if got := foreignSecretData(etcdSecret("ns")); len(got["etcd_connection"]) == 0 {
		t.Errorf("foreignSecretData returned %q, want the key etcd_connection", got)
	}
}

// The operator's namespace uses the source Secret, and a namespace without runtimes needs no copy.
func TestNoEtcdSecretCopy(t *testing.T) {
	w := newTestEnv(t, clusterRuntime("c", "onnx"))
	for _, write := range w.reconcileUntilStable("own") {
		if strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	r := localRuntime("r", "onnx")
	w = newTestEnv(t, r)
	w.reconcileUntilStable("ns")
	w.must(w.api.Delete(t.Context(), r))
	w.expect("the last runtime goes", w.reconcileUntilStable("ns"), []string{
		"delete ConfigMap ns/tc-config", "delete Deployment ns/modelmesh-serving-r", "delete Secret ns/model-serving-etcd",
		"delete NetworkPolicy ns/modelmesh-runtimes",
	})
}

// tlsSecret returns a Secret with a valid key pair.
func tlsSecret(t *testing.T, namespace, name string, more map[string][]byte) *corev1.Secret {
	t.Helper()
	made, err := certs.EnsureServing(nil, certs.ServingOptions{
		CACommonName: "test", DNSNames: []string{"modelmesh-serving.ns"}, Lifetime: time.Hour, Algorithm: certs.ECDSA,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: made.Data}
	for k, v := range more {
		s.Data[k] = v
	}
	return s
}

// [M31] Pods and operator use the TLS Secret of the namespace; for the operator that of its own namespace is the fallback.
func TestTLSSecretOfNamespace(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.settings.TLS.SecretName = "mesh-tls"
	w.reconcileUntilStable("ns")
	emitted := strings.Join(recordedEvents(w.events), "\n")
	if w.hasDeployment("r") || !strings.Contains(emitted, "unable to access TLS secret 'mesh-tls'") {
		t.Errorf("events %s", emitted)
	}
	if _, connected := w.mesh.targets["ns"]; connected || !strings.Contains(emitted, "models cannot be managed") {
		t.Errorf("connected without a certificate; events %s", emitted)
	}
	own := tlsSecret(t, "own", "mesh-tls", nil)
	w.create(own)
	w.reconcileUntilStable("ns")
	if pair := w.mesh.targets["ns"].TLS; w.hasDeployment("r") || pair == nil || string(pair.Certificate) != string(own.Data["tls.crt"]) {
		t.Errorf("pair %v", pair)
	}
	here := tlsSecret(t, "ns", "mesh-tls", nil)
	w.create(here)
	w.reconcileUntilStable("ns")
	if pair := w.mesh.targets["ns"].TLS; !w.hasDeployment("r") || string(pair.Certificate) != string(here.Data["tls.crt"]) {
		t.Errorf("pair %v", pair)
	}
	here.Data["tls.crt"] = []byte("nothing")
	w.must(w.api.Update(t.Context(), here))
	w.reconcileUntilStable("ns")
	if pair := w.mesh.targets["ns"].TLS; string(pair.Certificate) != string(own.Data["tls.crt"]) {
		t.Error("an invalid certificate replaced the valid one")
	}
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "TLS secret 'mesh-tls': could not load client key pair: ") ||
		!strings.Contains(emitted, "in namespace ns: correct it") || strings.Contains(emitted, "models cannot be managed") {
		t.Errorf("events %s", emitted)
	}
}

// [M31] Each invalid TLS Secret is reported once, with the message of the legacy controller.
func TestInvalidTLSSecretsAreReported(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.settings.TLS.SecretName = "mesh-tls"
	for _, namespace := range []string{"own", "ns"} {
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mesh-tls"}, Data: map[string][]byte{"ca.crt": []byte("x")}})
	}
	w.reconcileUntilStable("ns")
	emitted := strings.Join(recordedEvents(w.events), "\n")
	for _, want := range []string{
		"TLS secret 'mesh-tls' missing tls.crt and/or tls.key, in namespace ns: correct it",
		"TLS secret 'mesh-tls' missing tls.crt and/or tls.key, in namespace own: correct it", "models cannot be managed",
	} {
		if !strings.Contains(emitted, want) {
			t.Errorf("%q is not in %s", want, emitted)
		}
	}
	w.reconcileUntilStable("ns")
	if again := recordedEvents(w.events); len(again) > 0 {
		t.Errorf("reported again: %v", again)
	}
}

// claim returns a PersistentVolumeClaim in ns.
func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// mountedClaims returns the claims that the pods of a runtime mount, and whether they are read-only.
func (env *testEnv) mountedClaims(runtime string) map[string]bool {
	env.Helper()
	out := map[string]bool{}
	for _, v := range env.deploymentOf(runtime).Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out[v.PersistentVolumeClaim.ClaimName] = v.PersistentVolumeClaim.ReadOnly
		}
	}
	return out
}

// [modelmesh-93] [modelmesh-94] [modelmesh-95] [modelmesh-96] [M39] A missing claim is not mounted, so that it blocks no pod.
func TestMountedClaims(t *testing.T) {
	listed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "storage-config"}, Data: map[string][]byte{
		"one": []byte(`{"type":"pvc","name":"listed"}`), "two": []byte(`{"type":"pvc","name":"absent"}`), "three": []byte(`no JSON`),
	}}
	model := predictorOf("m", "onnx")
	model.Spec.Storage = &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": "named"}}
	ghost := predictorOf("ghost", "onnx")
	ghost.Spec.Storage = &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": "missing"}}
	w := newTestEnv(t, localRuntime("r", "onnx"), listed, claim("listed"), claim("named"), model, ghost)
	w.reconcileUntilStable("ns")
	if got := w.mountedClaims("r"); len(got) != 1 || !got["listed"] {
		t.Errorf("mounted %v", got)
	}
	if emitted := strings.Join(recordedEvents(w.events), "\n"); !strings.Contains(emitted, "PersistentVolumeClaim absent does not exist") || !strings.Contains(emitted, "three") {
		t.Errorf("events %s", emitted)
	}
	w.settings.AllowAnyPVC = true
	w.reconcileUntilStable("ns")
	if got := w.mountedClaims("r"); len(got) != 2 || !got["named"] {
		t.Errorf("mounted %v", got)
	}
	w.create(claim("absent"))
	w.reconcileUntilStable("ns")
	if got := w.mountedClaims("r"); len(got) != 3 {
		t.Errorf("mounted %v", got)
	}
}

// [modelmesh-97]
func TestStorageSecretIsOptional(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.reconcileUntilStable("ns")
	volumes := w.deploymentOf("r").Spec.Template.Spec.Volumes
	at := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "storage-config" })
	if at < 0 || volumes[at].Secret == nil || volumes[at].Secret.Optional == nil || !*volumes[at].Secret.Optional {
		t.Errorf("volumes %v", volumes)
	}
}
