package certificates

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
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

// newCertManagerFixture returns a fixture with cert-manager, its CA, and a RayCluster whose Certificates exist and are not issued yet.
func newCertManagerFixture(t *testing.T, existing ...client.Object) (*fixture, *unstructured.Unstructured, *certs.Root) {
	t.Helper()
	f, cluster := newFixture(t, existing...), demo(t)
	f.served = capability.NewSet(capability.Certificate)
	f.settings.CertManagerIssuer.Name = "team-ca"
	company, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "company", Lifetime: authorityLifetime}, f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.mustReconcile(cluster, byCertManager)
	return f, cluster, &company
}

// The operator applies Certificates and publishes cert-manager's CA in the CA Secret. A pod is annotated once the certificate with its
// address is issued.
func TestCertManagerIssues(t *testing.T) {
	f, cluster, company := newCertManagerFixture(t)
	ca, head, worker := demoSecrets(t)
	if f.writes != 2 {
		t.Errorf("%d writes, want the two Certificates", f.writes)
	}
	f.issue(company, head)
	f.issue(company, worker)
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
	f.issue(company, worker)
	f.mustReconcile(cluster, byCertManager)
	expectHosts(t, f.secret(worker), "10.0.0.2")
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

// The CA Secret is written again after it was deleted or changed, and after its first write failed.
func TestCertManagerCAIsRepaired(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	for name, damage := range map[string]func(f *fixture, cluster *unstructured.Unstructured){
		"first write failed": func(f *fixture, cluster *unstructured.Unstructured) {
			if err := f.server.Delete(t.Context(), f.secret(ca)); err != nil {
				t.Fatal(err)
			}
			f.memory, f.applyErr = Memory{}, map[string]error{ca: errors.New("unavailable")}
			f.Applier = apply.New(f.Applier.Options)
			if _, err := f.reconcile(t.Context(), cluster, byCertManager); err == nil {
				t.Error("want the error of the write")
			}
			f.applyErr = nil
		},
		"deleted": func(f *fixture, _ *unstructured.Unstructured) {
			if err := f.server.Delete(t.Context(), f.secret(ca)); err != nil {
				t.Fatal(err)
			}
		},
		"emptied": func(f *fixture, _ *unstructured.Unstructured) {
			s := f.secret(ca)
			s.Data = nil
			f.update(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, cluster, company := newCertManagerFixture(t)
			f.issue(company, head)
			f.issue(company, worker)
			f.mustReconcile(cluster, byCertManager)
			f.clock.Step(time.Minute)
			damage(f, cluster)
			f.mustReconcile(cluster, byCertManager)
			if got := f.secret(ca); !bytes.Equal(got.Data["ca.crt"], company.Data["ca.crt"]) {
				t.Errorf("the CA Secret has %d keys, want the ca.crt of cert-manager", len(got.Data))
			}
			f.expectIdle(cluster, byCertManager)
			if eventText := f.drainEvents(); eventText != "" {
				t.Errorf("unexpected Events:\n%s", eventText)
			}
		})
	}
}

// One Event reports that pods wait for a CA, because the issuer returns none or another client created the CA Secret without ca.crt.
func TestMissingCAOfCertManagerIsReported(t *testing.T) {
	ca, head, _ := demoSecrets(t)
	for name, tc := range map[string]struct {
		existing []client.Object
		noCA     bool
	}{
		"issuer without a CA": {noCA: true},
		"foreign CA Secret":   {existing: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: ca}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, cluster, company := newCertManagerFixture(t, tc.existing...)
			f.issue(company, head)
			if secret := f.secret(head); tc.noCA {
				delete(secret.Data, "ca.crt")
				f.update(secret)
			}
			for range 3 {
				f.mustReconcile(cluster, byCertManager)
				f.clock.Step(foreignRecheck)
			}
			if eventText := f.drainEvents(); strings.Count(eventText, "Warning CertificateNotUsable Secret "+ca+" has no ca.crt") != 1 {
				t.Errorf("unexpected Events:\n%s, want one about the missing ca.crt", eventText)
			}
		})
	}
}

// A certificate that cert-manager does not renew is checked every minute, and one Event for each role reports its expiry.
func TestExpiredCertificateOfCertManagerIsReportedOnce(t *testing.T) {
	f, cluster, company := newCertManagerFixture(t)
	_, head, worker := demoSecrets(t)
	f.issue(company, head)
	f.issue(company, worker)
	f.mustReconcile(cluster, byCertManager)
	f.clock.Step(leafLifetime)
	for range 3 {
		if after := f.mustReconcile(cluster, byCertManager); after != reconciler.RequeueBlocked {
			t.Errorf("next reconcile after %s, want %s", after, reconciler.RequeueBlocked)
		}
		f.clock.Step(time.Minute)
	}
	eventText := f.drainEvents()
	if strings.Count(eventText, "Warning CertificateNotUsable the certificate of role head expired at") != 1 || strings.Count(eventText, "\n") != 1 {
		t.Errorf("unexpected Events:\n%s, want one for each role", eventText)
	}
	f.issue(company, head)
	f.issue(company, worker)
	if after := f.mustReconcile(cluster, byCertManager); after < 24*time.Hour {
		t.Errorf("next reconcile after %s, want none before the renewed certificate expires", after)
	}
}
