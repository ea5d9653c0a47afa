package certificates

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

var byCertManager = raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerCertManager}

func jsonOf(config runtime.ApplyConfiguration) ([]byte, error) { return json.Marshal(config) }

// issue acts as cert-manager for a Certificate.
func (f *fixture) issue(root *certs.Root, name string) {
	f.t.Helper()
	asked := &unstructured.Unstructured{}
	asked.SetGroupVersionKind(capability.Certificate)
	if err := f.server.Get(f.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, asked); err != nil {
		f.t.Fatal(err)
	}
	dns, _, _ := unstructured.NestedStringSlice(asked.Object, "spec", "dnsNames")
	ips, _, _ := unstructured.NestedStringSlice(asked.Object, "spec", "ipAddresses")
	labels, _, _ := unstructured.NestedStringMap(asked.Object, "spec", "secretTemplate", "labels")
	o := certs.LeafOptions{CommonName: "x", DNSNames: dns, Lifetime: leafLifetime}
	for _, ip := range ips {
		o.Addresses = append(o.Addresses, netip.MustParseAddr(ip))
	}
	leaf, err := root.EnsureLeaf(nil, o, f.clock.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	err = f.server.Get(f.t.Context(), client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	missing := err != nil
	secret.Type, secret.Data = corev1.SecretTypeTLS, leaf.Data
	secret.Annotations = map[string]string{annotationIssued: name}
	secret.Labels = labels
	if missing {
		f.create(secret)
	} else {
		f.update(secret)
	}
}

// Certificates have the names that the operator would issue, and pods and clients trust cert-manager's CA.
func TestCertManagerIssues(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	w.served = capability.NewSet(capability.Certificate)
	w.settings.CertManagerIssuer.Name = "team-ca"
	company, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "company", Lifetime: authorityLifetime}, w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(cluster, byCertManager)
	if w.writes != 2 {
		t.Errorf("%d writes, want the two Certificates", w.writes)
	}
	w.issue(&company, head)
	w.issue(&company, worker)
	w.mustReconcile(cluster, byCertManager)
	w.expectIdle(cluster, byCertManager)
	if got := w.secret(ca); !bytes.Equal(got.Data["ca.crt"], company.Data["ca.crt"]) || len(got.Data) != 1 {
		t.Errorf("the Secret of the CA has %d keys", len(got.Data))
	}
	for _, name := range []string{head, worker} {
		secret := w.secret(name)
		owner := metav1.GetControllerOf(secret)
		if owner == nil || owner.UID != "u" || len(secret.Data) != 3 || secret.Labels[names.ComponentLabel] != raycluster.ComponentName {
			t.Errorf("%s: owner %v, labels %v, %d keys", name, owner, secret.Labels, len(secret.Data))
		}
	}
	w.create(pending("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	w.mustReconcile(cluster, byCertManager)
	if w.patches != 0 {
		t.Error("a pod was annotated with a certificate that is not issued yet")
	}
	w.issue(&company, worker)
	w.mustReconcile(cluster, byCertManager)
	mustBeFor(t, w.secret(worker), "10.0.0.2")
	if w.patches != 1 {
		t.Errorf("%d pods were marked", w.patches)
	}
	w.expectIdle(cluster, byCertManager)
	if wanted := Desired(raycluster.View(cluster.Object), w.inputs(byCertManager)); len(wanted) != 5 {
		t.Errorf("%d objects are kept", len(wanted))
	}
}

// If cert-manager is not installed, the operator issues the certificates and reports that once.
func TestCertManagerIsMissing(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	w.mustReconcile(cluster, byCertManager)
	if c := certificateOf(t, w.secret(head).Data["tls.crt"]); c.Issuer.CommonName != authorityName {
		t.Errorf("issued by %s", c.Issuer)
	}
	if reported := w.eventsSince(); strings.Count(reported, "Warning CertificateIssuerMissing") != 1 {
		t.Errorf("reported:\n%s", reported)
	}
	w.expectIdle(cluster, byCertManager)
	if reported := w.eventsSince(); reported != "" {
		t.Errorf("reported again:\n%s", reported)
	}
	// After the installation, certificates of the operator do not count as issued by cert-manager.
	w.served = capability.NewSet(capability.Certificate)
	before := w.secret(head)
	w.mustReconcile(cluster, byCertManager)
	if !equalData(before.Data, w.secret(head).Data) {
		t.Error("the previous certificate was replaced before the next one was issued")
	}
}
