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

func marshalJSON(config runtime.ApplyConfiguration) ([]byte, error) { return json.Marshal(config) }

// issue issues a Certificate as cert-manager does.
func (f *fixture) issue(root *certs.Root, name string) {
	f.t.Helper()
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(capability.Certificate)
	if err := f.server.Get(f.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, certificate); err != nil {
		f.t.Fatal(err)
	}
	dns, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	ips, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "ipAddresses")
	labels, _, _ := unstructured.NestedStringMap(certificate.Object, "spec", "secretTemplate", "labels")
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
	f, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	f.served = capability.NewSet(capability.Certificate)
	f.settings.CertManagerIssuer.Name = "team-ca"
	company, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "company", Lifetime: authorityLifetime}, f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.mustReconcile(cluster, byCertManager)
	if f.writes != 2 {
		t.Errorf("%d writes, want the two Certificates", f.writes)
	}
	f.issue(&company, head)
	f.issue(&company, worker)
	f.mustReconcile(cluster, byCertManager)
	f.expectIdle(cluster, byCertManager)
	if got := f.secret(ca); !bytes.Equal(got.Data["ca.crt"], company.Data["ca.crt"]) || len(got.Data) != 1 {
		t.Errorf("the CA Secret has %d keys, want only the ca.crt of cert-manager", len(got.Data))
	}
	for _, name := range []string{head, worker} {
		secret := f.secret(name)
		owner := metav1.GetControllerOf(secret)
		if owner == nil || owner.UID != "u" || len(secret.Data) != 3 || secret.Labels[names.ComponentLabel] != raycluster.ComponentName {
			t.Errorf("%s: owner %v, labels %v, %d keys", name, owner, secret.Labels, len(secret.Data))
		}
	}
	f.create(pendingPod("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	f.mustReconcile(cluster, byCertManager)
	if f.patches != 0 {
		t.Error("a pod was annotated with a certificate that is not issued yet")
	}
	f.issue(&company, worker)
	f.mustReconcile(cluster, byCertManager)
	expectAddresses(t, f.secret(worker), "10.0.0.2")
	if f.patches != 1 {
		t.Errorf("%d pods were annotated, want 1", f.patches)
	}
	f.expectIdle(cluster, byCertManager)
	if desired := Desired(raycluster.View(cluster.Object), f.inputs(byCertManager)); len(desired) != 5 {
		t.Errorf("got %d desired objects, want 5", len(desired))
	}
}

// If cert-manager is not installed, the operator issues the certificates and records one Event.
func TestCertManagerIsMissing(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	f.mustReconcile(cluster, byCertManager)
	if c := certificateOf(t, f.secret(head).Data["tls.crt"]); c.Issuer.CommonName != authorityName {
		t.Errorf("issued by %s", c.Issuer)
	}
	if eventText := f.drainEvents(); strings.Count(eventText, "Warning CertificateIssuerMissing") != 1 {
		t.Errorf("unexpected Events:\n%s", eventText)
	}
	f.expectIdle(cluster, byCertManager)
	if eventText := f.drainEvents(); eventText != "" {
		t.Errorf("Events were repeated:\n%s", eventText)
	}
	// After the installation, certificates of the operator do not count as issued by cert-manager.
	f.served = capability.NewSet(capability.Certificate)
	before := f.secret(head)
	f.mustReconcile(cluster, byCertManager)
	if !equalData(before.Data, f.secret(head).Data) {
		t.Error("the previous certificate was replaced before the next one was issued")
	}
}
