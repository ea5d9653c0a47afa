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
		env.Fatal("ns has no etcd Secret")
	}
	return s
}

// [M30] The copy contains the connection and the referenced keys of the source, and follows its changes.
func TestEtcdSecretIsCopied(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.reconcileUntilStable("ns")
	if got := string(env.copiedEtcdSecret().Data["etcd_connection"]); !strings.Contains(got, `"root_prefix":"models/mm_ns/ns"`) || !strings.Contains(got, "http://etcd.own:2379") {
		t.Errorf("etcd connection %s, want the prefix of ns and the qualified host", got)
	}
	source := &corev1.Secret{}
	env.get(source, "own", "model-serving-etcd")
	source.Data = map[string][]byte{
		"etcd_connection": []byte(`{"endpoints":"https://etcd.example.com:2379","root_prefix":"x","certificate_file":"ca"}`), "ca": []byte("PEM"), "more": []byte("no"),
	}
	env.must(env.api.Update(t.Context(), source))
	env.expect("writes", env.reconcileUntilStable("ns"), []string{"apply Secret ns/model-serving-etcd"})
	data := env.copiedEtcdSecret().Data
	if string(data["ca"]) != "PEM" || len(data["more"]) > 0 || !strings.Contains(string(data["etcd_connection"]), "https://etcd.example.com:2379") {
		t.Errorf("data %q, want the new connection and its CA", data)
	}
	if string(env.mesh.data["ca"]) != "PEM" {
		t.Error("the etcd watcher did not receive the new data")
	}
	source.Data = map[string][]byte{"etcd_connection": []byte("{")}
	env.must(env.api.Update(t.Context(), source))
	env.expect("writes with an invalid Secret", env.reconcileUntilStable("ns"), nil)
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "Secret model-serving-etcd in namespace own cannot be used") {
		t.Errorf("events %s, want it to contain %q", emitted, "Secret model-serving-etcd in namespace own cannot be used")
	}
	env.must(env.api.Delete(t.Context(), source))
	env.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "Could not get the controller etcd secret") {
		t.Errorf("events %s, want it to contain %q", emitted, "Could not get the controller etcd secret")
	}
}

// [M30] A namespace with its own etcd Secret does not need the Secret of the operator, which is copied once the Secret of the namespace is deleted.
func TestNamespaceEtcdSecretTakesPrecedence(t *testing.T) {
	foreign := newEtcdSecret("ns")
	env := newTestEnv(t, newServingRuntime("r", "onnx"), foreign)
	env.settings.AllowNamespaceEtcd = true
	env.must(env.api.Delete(t.Context(), newEtcdSecret("own")))
	env.reconcileUntilStable("ns")
	if emitted := strings.Join(recordedEvents(env.events), "\n"); strings.Contains(emitted, "controller etcd secret") {
		t.Errorf("events %s, want none about the operator's Secret", emitted)
	}
	if len(env.mesh.ownData["ns"]) == 0 {
		t.Error("the etcd watcher did not receive the Secret of the namespace")
	}
	env.mesh.connectOwnErr = errors.New("invalid")
	env.reconcileOnce("ns")
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "Secret model-serving-etcd in namespace ns cannot be used: invalid") {
		t.Errorf("events %s, want it to contain %q", emitted, "Secret model-serving-etcd in namespace ns cannot be used: invalid")
	}
	env.mesh.connectOwnErr = nil
	env.must(env.api.Delete(t.Context(), foreign))
	env.create(newEtcdSecret("own"))
	env.reconcileUntilStable("ns")
	if env.mesh.ownData["ns"] != nil || env.mesh.data == nil || !isManaged(env.copiedEtcdSecret()) {
		t.Errorf("the etcd watcher received %q and %q, want only the operator's Secret", env.mesh.ownData, env.mesh.data)
	}
}

// Unless the administrator allows it, neither the operator nor pods connect to the etcd of a namespace.
func TestNamespaceEtcdMustBeAllowed(t *testing.T) {
	foreign := newEtcdSecret("ns")
	env := newTestEnv(t, newServingRuntime("r", "onnx"), foreign)
	env.settings.ScaleToZero.Enabled = false
	env.reconcileUntilStable("ns")
	const want = "the Secret model-serving-etcd in namespace ns was not created by the operator, so the Deployments of the namespace " +
		"do not change: delete the Secret, or ask an administrator to set allowNamespaceEtcd: true"
	if emitted := strings.Join(recordedEvents(env.events), "\n"); strings.Count(emitted, want) != 1 {
		t.Errorf("events %s, want one with %q", emitted, want)
	}
	if len(env.mesh.ownData["ns"]) != 0 || env.hasDeployment("r") {
		t.Errorf("the etcd watcher received %q, Deployment %t, want neither", env.mesh.ownData, env.hasDeployment("r"))
	}
	env.settings.AllowNamespaceEtcd = true
	if env.reconcileUntilStable("ns"); !env.hasDeployment("r") {
		t.Error("there is no Deployment although the Secret is allowed")
	}
	env.settings.AllowNamespaceEtcd, env.settings.PodsPerRuntime = false, 7
	env.expect("writes with existing pods", env.reconcileUntilStable("ns"), nil)
	env.must(env.api.Delete(t.Context(), foreign))
	if env.reconcileUntilStable("ns"); env.replicasOf("r") != 7 || !isManaged(env.copiedEtcdSecret()) {
		t.Error("the Deployment or the Secret was not applied after the Secret of the user was deleted")
	}
}

func TestForeignSecretData(t *testing.T) {
	legacy := newEtcdSecret("ns")
	legacy.Labels = map[string]string{"app.kubernetes.io/managed-by": "modelmesh-controller"}
	if got := foreignSecretData(legacy); got != nil {
		t.Errorf("legacy Secret: foreignSecretData returned %q, want nil", got)
	}
	if got := foreignSecretData(&corev1.Secret{}); got == nil || len(got) != 0 {
		t.Errorf("empty Secret: foreignSecretData returned %q, want an empty map", got)
	}
	if got := foreignSecretData(newEtcdSecret("ns")); len(got["etcd_connection"]) == 0 {
		t.Errorf("foreignSecretData returned %q, want the key etcd_connection", got)
	}
}

// The operator's namespace uses the source Secret, and a namespace without runtimes needs no copy.
func TestNoEtcdSecretCopy(t *testing.T) {
	env := newTestEnv(t, newClusterServingRuntime("c", "onnx"))
	for _, write := range env.reconcileUntilStable("own") {
		if strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	r := newServingRuntime("r", "onnx")
	env = newTestEnv(t, r)
	env.reconcileUntilStable("ns")
	env.must(env.api.Delete(t.Context(), r))
	env.expect("writes after the last runtime was deleted", env.reconcileUntilStable("ns"), []string{
		"delete ConfigMap ns/tc-config", "delete Deployment ns/modelmesh-serving-r", "delete Secret ns/model-serving-etcd",
		"delete NetworkPolicy ns/modelmesh-runtimes",
	})
}

// newTLSSecret returns a Secret with a valid key pair.
func newTLSSecret(t *testing.T, namespace, name string, more map[string][]byte) *corev1.Secret {
	t.Helper()
	generated, err := certs.EnsureServing(nil, certs.ServingOptions{
		CACommonName: "test", DNSNames: []string{"modelmesh-serving.ns"}, Lifetime: time.Hour, Algorithm: certs.ECDSA,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: generated.Data}
	for k, v := range more {
		s.Data[k] = v
	}
	return s
}

// [M31] Pods use the TLS Secret of the namespace. The operator uses it too, or else the one in its own namespace.
func TestTLSSecretOfNamespace(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.settings.TLS.SecretName = "mesh-tls"
	env.reconcileUntilStable("ns")
	emitted := strings.Join(recordedEvents(env.events), "\n")
	if env.hasDeployment("r") || !strings.Contains(emitted, "unable to access TLS secret 'mesh-tls'") {
		t.Errorf("events %s, want the missing Secret and no Deployment", emitted)
	}
	if _, connected := env.mesh.targets["ns"]; connected || !strings.Contains(emitted, "models cannot be managed") {
		t.Errorf("connected without a certificate; events %s", emitted)
	}
	operatorSecret := newTLSSecret(t, "own", "mesh-tls", nil)
	env.create(operatorSecret)
	env.reconcileUntilStable("ns")
	if pair := env.mesh.targets["ns"].TLS; env.hasDeployment("r") || pair == nil || string(pair.Certificate) != string(operatorSecret.Data["tls.crt"]) {
		t.Errorf("key pair %v, want that of the operator's namespace and no Deployment", pair)
	}
	namespaceSecret := newTLSSecret(t, "ns", "mesh-tls", nil)
	env.create(namespaceSecret)
	env.reconcileUntilStable("ns")
	if pair := env.mesh.targets["ns"].TLS; !env.hasDeployment("r") || string(pair.Certificate) != string(namespaceSecret.Data["tls.crt"]) {
		t.Errorf("key pair %v, want that of the namespace and a Deployment", pair)
	}
	namespaceSecret.Data["tls.crt"] = []byte("invalid")
	env.must(env.api.Update(t.Context(), namespaceSecret))
	env.reconcileUntilStable("ns")
	if pair := env.mesh.targets["ns"].TLS; string(pair.Certificate) != string(operatorSecret.Data["tls.crt"]) {
		t.Error("an invalid certificate replaced the valid one")
	}
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "TLS secret 'mesh-tls': could not load client key pair: ") ||
		!strings.Contains(emitted, "in namespace ns: correct it") || strings.Contains(emitted, "models cannot be managed") {
		t.Errorf("events %s", emitted)
	}
}

// [M31] Each invalid TLS Secret is reported once, with the message of the legacy controller.
func TestInvalidTLSSecretsAreReported(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.settings.TLS.SecretName = "mesh-tls"
	for _, namespace := range []string{"own", "ns"} {
		env.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mesh-tls"}, Data: map[string][]byte{"ca.crt": []byte("x")}})
	}
	env.reconcileUntilStable("ns")
	emitted := strings.Join(recordedEvents(env.events), "\n")
	for _, want := range []string{
		"TLS secret 'mesh-tls' missing tls.crt and/or tls.key, in namespace ns: correct it",
		"TLS secret 'mesh-tls' missing tls.crt and/or tls.key, in namespace own: correct it", "models cannot be managed",
	} {
		if !strings.Contains(emitted, want) {
			t.Errorf("events %s, want %q", emitted, want)
		}
	}
	env.reconcileUntilStable("ns")
	if repeated := recordedEvents(env.events); len(repeated) > 0 {
		t.Errorf("events were repeated: %v", repeated)
	}
}

// newClaim returns a PersistentVolumeClaim in ns.
func newClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// mountedClaims returns the claims that the pods of a runtime mount, and whether they are read-only.
func (env *testEnv) mountedClaims(runtime string) map[string]bool {
	env.Helper()
	claims := map[string]bool{}
	for _, v := range env.deploymentOf(runtime).Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims[v.PersistentVolumeClaim.ClaimName] = v.PersistentVolumeClaim.ReadOnly
		}
	}
	return claims
}

// [modelmesh-93] [modelmesh-94] [modelmesh-95] [modelmesh-96] [M39] Only existing claims are mounted: a missing claim would block the pods.
func TestMountedClaims(t *testing.T) {
	storageSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "storage-config"}, Data: map[string][]byte{
		"one": []byte(`{"type":"pvc","name":"listed"}`), "two": []byte(`{"type":"pvc","name":"absent"}`), "three": []byte(`not JSON`),
	}}
	model := newPredictor("m", "onnx")
	model.Spec.Storage = &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": "named"}}
	modelOfMissingClaim := newPredictor("n", "onnx")
	modelOfMissingClaim.Spec.Storage = &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": "missing"}}
	env := newTestEnv(t, newServingRuntime("r", "onnx"), storageSecret, newClaim("listed"), newClaim("named"), model, modelOfMissingClaim)
	env.reconcileUntilStable("ns")
	if got := env.mountedClaims("r"); len(got) != 1 || !got["listed"] {
		t.Errorf("mounted claims %v, want only the one in the storage Secret", got)
	}
	if emitted := strings.Join(recordedEvents(env.events), "\n"); !strings.Contains(emitted, "PersistentVolumeClaim absent does not exist") || !strings.Contains(emitted, "three") {
		t.Errorf("events %s", emitted)
	}
	env.settings.AllowAnyPVC = true
	env.reconcileUntilStable("ns")
	if got := env.mountedClaims("r"); len(got) != 2 || !got["named"] {
		t.Errorf("mounted claims %v, want that of the model too", got)
	}
	env.create(newClaim("absent"))
	env.reconcileUntilStable("ns")
	if got := env.mountedClaims("r"); len(got) != 3 {
		t.Errorf("mounted claims %v, want the created claim too", got)
	}
}

// [modelmesh-97] The volume of the storage Secret is optional.
func TestStorageSecretIsOptional(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.reconcileUntilStable("ns")
	volumes := env.deploymentOf("r").Spec.Template.Spec.Volumes
	index := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "storage-config" })
	if index < 0 || volumes[index].Secret == nil || volumes[index].Secret.Optional == nil || !*volumes[index].Secret.Optional {
		t.Errorf("volumes %v", volumes)
	}
}
