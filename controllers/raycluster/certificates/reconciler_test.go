package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

const (
	caSecretPrefix     = "demo-ca-secret-"
	headSecretPrefix   = "demo-head-tls-"
	workerSecretPrefix = "demo-worker-tls-"
)

// demoSecrets returns the names of the Secrets of demo.
func demoSecrets(t *testing.T) (ca, head, worker string) {
	t.Helper()
	n := raycluster.View(demo(t).Object).Names()
	if !strings.HasPrefix(n.CASecret, caSecretPrefix) || !strings.HasPrefix(n.HeadTLS, headSecretPrefix) || !strings.HasPrefix(n.WorkerTLS, workerSecretPrefix) {
		t.Fatalf("the names %+v do not have the prefixes that these tests expect", n)
	}
	return n.CASecret, n.HeadTLS, n.WorkerTLS
}

func certificateOf(t *testing.T, raw []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(raw)
	if block == nil {
		t.Fatal("the Secret contains no PEM block")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func expectHosts(t *testing.T, secret *corev1.Secret, hosts ...string) {
	t.Helper()
	c := certificateOf(t, secret.Data["tls.crt"])
	for _, host := range hosts {
		if err := c.VerifyHostname(host); err != nil {
			t.Errorf("%s: unexpected error: %v", secret.Name, err)
		}
	}
}

// One reconcile creates the CA and both certificates of a new cluster.
func TestReconcileIssuesCertificates(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	if after := f.mustReconcile(cluster, byOperator); after < 300*24*time.Hour/3 {
		t.Errorf("next reconcile after %s, want at least 100 days", after)
	}
	if f.writes != 3 {
		t.Errorf("%d writes, want one for each of the three Secrets", f.writes)
	}
	f.expectIdle(cluster, byOperator)
	authority := f.secret(ca)
	if len(authority.Data) != 2 || authority.Data["ca.crt"] == nil || authority.Data["ca.key"] == nil || authority.Type != corev1.SecretTypeOpaque && authority.Type != "" {
		t.Errorf("the CA Secret has type %s and %d keys, want Opaque with ca.crt and ca.key", authority.Type, len(authority.Data))
	}
	for _, secret := range []*corev1.Secret{authority, f.secret(head), f.secret(worker)} {
		owner := metav1.GetControllerOf(secret)
		if owner == nil || owner.UID != "u" || secret.Labels[raycluster.LabelClusterName] != "demo" || !apply.HasComponentLabels(secret, raycluster.ComponentName) {
			t.Errorf("%s: owner %v, labels %v", secret.Name, owner, secret.Labels)
		}
	}
	for _, name := range []string{head, worker} {
		secret := f.secret(name)
		if len(secret.Data) != 3 || secret.Type != corev1.SecretTypeTLS || !bytes.Equal(secret.Data["ca.crt"], authority.Data["ca.crt"]) {
			t.Errorf("Secret %s has type %s and %d keys, want %s with 3 keys and the ca.crt of the CA", name, secret.Type, len(secret.Data), corev1.SecretTypeTLS)
		}
		if err := certificateOf(t, secret.Data["tls.crt"]).CheckSignatureFrom(certificateOf(t, authority.Data["ca.crt"])); err != nil {
			t.Error(err)
		}
	}
	if eventText := f.drainEvents(); !strings.Contains(eventText, "Normal CertificateAuthority CA Created") || strings.Count(eventText, "\n") > 0 {
		t.Errorf("unexpected Events:\n%s", eventText)
	}
	for _, role := range []string{roleAuthority, roleHead, roleWorker} {
		if !expiryMetric(role).After(f.clock.Now().Add(364 * 24 * time.Hour)) {
			t.Errorf("expiry metric of role %s is %s, want at least 364 days from now", role, expiryMetric(role))
		}
	}
}

// [R12] [R13] Addresses of new pods are added to the certificate of their role, with at most one write per second, and not removed while
// the pods exist.
func TestAddressesFollowPods(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	_, head, worker := demoSecrets(t)
	f.mustReconcile(cluster, byOperator)
	f.clock.Step(addressBatchWindow)
	f.create(pendingPod("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pendingPod("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	writes := f.writes
	f.mustReconcile(cluster, byOperator)
	if f.writes != writes+2 {
		t.Errorf("%d writes for a head and a worker, want 2", f.writes-writes)
	}
	expectHosts(t, f.secret(head), "10.0.0.1", "[fd00::1]", "127.0.0.1", "localhost", "demo-head-svc.team.svc")
	expectHosts(t, f.secret(worker), "10.0.0.2")
	f.expectIdle(cluster, byOperator)

	// The addresses of many pods within the batch window are added in one write.
	f.clock.Step(addressBatchWindow / 10)
	f.create(pendingPod("b", raycluster.NodeTypeWorker, "10.0.0.3"))
	writes = f.writes
	if after := f.mustReconcile(cluster, byOperator); f.writes != writes || after > addressBatchWindow {
		t.Errorf("got %d writes and a reconcile after %s, want no write and a reconcile within %s", f.writes-writes, after, addressBatchWindow)
	}
	f.create(pendingPod("c", raycluster.NodeTypeWorker, "10.0.0.4"), pendingPod("d", raycluster.NodeTypeWorker, "10.0.0.5"))
	f.clock.Step(addressBatchWindow)
	f.mustReconcile(cluster, byOperator)
	if f.writes != writes+1 {
		t.Errorf("%d writes for three pods, want 1", f.writes-writes)
	}
	expectHosts(t, f.secret(worker), "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5")

	// Deleted pods cause no write; their addresses are removed with the next new pod.
	for _, name := range []string{"a", "b"} {
		if err := f.server.Delete(t.Context(), raytest.Pod(name, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	f.expectIdle(cluster, byOperator)
	f.clock.Step(addressBatchWindow)
	f.create(pendingPod("e", raycluster.NodeTypeWorker, "10.0.0.6"))
	f.mustReconcile(cluster, byOperator)
	expectHosts(t, f.secret(worker), "10.0.0.4", "10.0.0.5", "10.0.0.6")
	if c := certificateOf(t, f.secret(worker).Data["tls.crt"]); c.VerifyHostname("10.0.0.2") == nil {
		t.Error("the certificate still has the address of a deleted pod")
	}
}

// A waiting pod is annotated once, when the certificate contains its address.
func TestAnnotatePods(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	f.mustReconcile(cluster, byOperator)
	running := raytest.Pod("r", raycluster.NodeTypeWorker, "u", "10.0.0.9")
	running.Status.Phase = corev1.PodRunning
	withoutAddress := pendingPod("no-address", raycluster.NodeTypeWorker)
	f.create(pendingPod("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pendingPod("a", raycluster.NodeTypeWorker, "10.0.0.2"), running, withoutAddress)
	f.clock.Step(addressBatchWindow)
	f.mustReconcile(cluster, byOperator)
	if f.patches != 2 {
		t.Errorf("%d pods were annotated, want 2", f.patches)
	}
	pod := &corev1.Pod{}
	if err := f.server.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "h"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Annotations[pods.AnnotationCertificateFor] != "10.0.0.1,fd00::1" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	f.expectIdle(cluster, byOperator)
	newLeader := newFixture(t)
	newLeader.Reconciler, newLeader.server = f.Reconciler, f.server // the memory of the new leader is empty
	if _, err := newLeader.reconcile(t.Context(), cluster, byOperator); err != nil {
		t.Fatal(err)
	}
	if f.patches != 2 {
		t.Errorf("%d pods were annotated after a restart, want none", f.patches-2)
	}
}

// A kubelet that is notified before its watch delivers the Secret would read the previous version.
func TestAnnotatePodsWaitsForCache(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	f.mustReconcile(cluster, byOperator)
	f.clock.Step(addressBatchWindow)
	f.create(pendingPod("h", raycluster.NodeTypeHead, "10.0.0.1"))
	f.hidden[head] = true
	f.mustReconcile(cluster, byOperator)
	if f.patches != 0 {
		t.Error("a pod was annotated before the cache contained its certificate")
	}
	expectHosts(t, f.secret(head), "10.0.0.1")
	f.hidden[head] = false
	f.mustReconcile(cluster, byOperator)
	if f.patches != 1 {
		t.Errorf("%d pods were annotated, want 1", f.patches)
	}
	f.expectIdle(cluster, byOperator)
}

// [R11] Invalid certificates are replaced, which an Event reports, and deleted ones are recreated.
func TestBrokenCertificates(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	for name, tc := range map[string]struct {
		change func(f *fixture)
		event  string
		writes int
	}{
		"missing key of the CA": {func(f *fixture) {
			s := f.secret(ca)
			delete(s.Data, "ca.key")
			f.update(s)
		}, "Warning CertificateAuthority a new CA replaces the previous one, because reading ca.key", 3},
		"invalid CA": {func(f *fixture) {
			s := f.secret(ca)
			s.Data["ca.crt"] = []byte("noise")
			f.update(s)
		}, "Warning CertificateAuthority a new CA replaces the previous one, because reading ca.crt", 3},
		"deleted Secret of the CA": {func(f *fixture) {
			if err := f.server.Delete(t.Context(), f.secret(ca)); err != nil {
				t.Fatal(err)
			}
		}, "Warning CertificateAuthority a new CA replaces the previous one", 3},
		"signing CA is not the first": {func(f *fixture) {
			other, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "other", Lifetime: time.Hour}, f.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			s := f.secret(ca)
			s.Data["ca.crt"] = append(other.Data["ca.crt"], s.Data["ca.crt"]...)
			f.update(s)
		}, "Normal CertificateAuthority CA Reordered, because the signing CA was not the first in ca.crt", 3},
		"invalid key of the head": {func(f *fixture) {
			s := f.secret(head)
			s.Data["tls.key"] = []byte("noise")
			f.update(s)
		}, "Normal CertificateRenewed the certificate of role head was renewed, because reading tls.crt and tls.key: tls: failed to find any PEM data in key input", 1},
		"deleted Secret of the workers": {func(f *fixture) {
			if err := f.server.Delete(t.Context(), f.secret(worker)); err != nil {
				t.Fatal(err)
			}
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, cluster := newFixture(t), demo(t)
			f.mustReconcile(cluster, byOperator)
			trusted := f.secret(ca).Data["ca.crt"]
			f.drainEvents()
			f.clock.Step(time.Minute)
			writes := f.writes
			tc.change(f)
			f.mustReconcile(cluster, byOperator)
			if f.writes != writes+tc.writes {
				t.Errorf("%d writes, want %d", f.writes-writes, tc.writes)
			}
			if eventText := f.drainEvents(); !strings.Contains(eventText, tc.event) || tc.event == "" && eventText != "" {
				t.Errorf("unexpected Events:\n%s", eventText)
			}
			root := f.secret(ca).Data["ca.crt"]
			if name != "invalid CA" && !bytes.Contains(root, trusted) {
				t.Error("the CA that running pods trust was removed from ca.crt")
			}
			for _, leaf := range []string{head, worker} {
				s := f.secret(leaf)
				if err := certificateOf(t, s.Data["tls.crt"]).CheckSignatureFrom(certificateOf(t, root)); err != nil || !bytes.Equal(s.Data["ca.crt"], root) {
					t.Errorf("%s: unexpected error: %v", leaf, err)
				}
			}
			f.expectIdle(cluster, byOperator)
		})
	}
}

// Each renewal happens at the requested time, with few reconciles, and is reported.
func TestCertificatesAreRenewed(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, head, _ := demoSecrets(t)
	start, signers, eventText := f.clock.Now(), map[string]bool{}, ""
	reconciles := 0
	for f.clock.Since(start) < 4*365*24*time.Hour {
		after := f.mustReconcile(cluster, byOperator)
		if after <= 0 {
			t.Fatal("want a requeue for the renewal")
		}
		reconciles++
		signers[string(certificateOf(t, f.secret(ca).Data["ca.crt"]).Raw)] = true
		if remaining := certificateOf(t, f.secret(head).Data["tls.crt"]).NotAfter.Sub(f.clock.Now()); remaining < 240*24*time.Hour {
			t.Errorf("a pod that starts now has a certificate for %s, want at least 240 days", remaining)
		}
		eventText += f.drainEvents() + "\n"
		f.clock.Step(after)
	}
	if reconciles > 40 || len(signers) != 3 {
		t.Errorf("got %d reconciles and %d CAs, want at most 40 and 3", reconciles, len(signers))
	}
	for _, want := range []string{"the CA is rotated at ", "the CA was rotated", "the certificate of role head was renewed, because a third of its lifetime has passed"} {
		if !strings.Contains(eventText, want) {
			t.Errorf("missing Event %q in:\n%s", want, eventText)
		}
	}
}

// The CA of the CodeFlare operator is adopted unchanged: RSA, without labels of this operator, controlled by the RayCluster.
func TestLegacyCAIsAdopted(t *testing.T) {
	ca, _, _ := demoSecrets(t)
	now := time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)
	root, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "root-ca", Lifetime: 365 * 24 * time.Hour, Algorithm: certs.RSA}, now)
	if err != nil {
		t.Fatal(err)
	}
	legacy := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: ca, Labels: map[string]string{raycluster.LabelClusterName: "demo"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: "u", Controller: new(true)}},
	}, Data: root.Data}
	f, cluster := newFixture(t, legacy), demo(t)
	f.mustReconcile(cluster, raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod})
	got := f.secret(ca)
	if !equalData(got.Data, root.Data) || !apply.HasComponentLabels(got, raycluster.ComponentName) || f.writes != 1 {
		t.Errorf("got %d writes, labels %v, data unchanged: %t, want 1, the component labels and true", f.writes, got.Labels, equalData(got.Data, root.Data))
	}
	if eventText := f.drainEvents(); eventText != "" {
		t.Errorf("unexpected Events:\n%s", eventText)
	}
	f.expectIdle(cluster, raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod})
}

// Secrets of users are used but never written.
func TestSecretsOfUsersAreNotWritten(t *testing.T) {
	ca, head, _ := demoSecrets(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	userCA, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "mine", Lifetime: 10 * 24 * time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	user := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: data}
	}
	t.Run("valid CA", func(t *testing.T) {
		f, cluster := newFixture(t, user(ca, userCA.Data)), demo(t)
		f.mustReconcile(cluster, byOperator)
		if c := certificateOf(t, f.secret(head).Data["tls.crt"]); c.Issuer.CommonName != "mine" {
			t.Errorf("issued by %s", c.Issuer)
		}
		if got := f.secret(ca); !equalData(got.Data, userCA.Data) || len(got.Labels) > 0 || len(got.OwnerReferences) > 0 {
			t.Errorf("the Secret was changed: %v", got.ObjectMeta)
		}
		if eventText := f.drainEvents(); !strings.Contains(eventText, "Warning CertificateExpiring the CA in Secret "+ca) {
			t.Errorf("unexpected Events:\n%s, want it to contain %q", eventText, "Warning CertificateExpiring the CA in Secret "+ca)
		}
		f.expectIdle(cluster, byOperator)
		f.clock.Step(foreignRecheck)
		f.mustReconcile(cluster, byOperator)
		if eventText := f.drainEvents(); eventText != "" {
			t.Errorf("Events were repeated:\n%s", eventText)
		}
	})
	t.Run("valid CA that nears its expiry", func(t *testing.T) {
		longer, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "mine", Lifetime: expiryWarning + 24*time.Hour}, now)
		if err != nil {
			t.Fatal(err)
		}
		f, cluster := newFixture(t, user(ca, longer.Data)), demo(t)
		for day, want := range []int{0, 0, 1, 0} {
			f.mustReconcile(cluster, byOperator)
			if eventText := f.drainEvents(); strings.Count(eventText, "Warning CertificateExpiring the CA in Secret "+ca) != want {
				t.Errorf("day %d: got Events %q, want %d warnings about the CA", day, eventText, want)
			}
			f.clock.Step(24 * time.Hour)
		}
	})
	t.Run("invalid CA", func(t *testing.T) {
		f, cluster := newFixture(t, user(ca, map[string][]byte{"ca.crt": []byte("noise")})), demo(t)
		if after := f.mustReconcile(cluster, byOperator); after > foreignRecheck || after <= 0 || f.writes > 0 {
			t.Errorf("%d writes, next reconcile after %s", f.writes, after)
		}
		f.mustReconcile(cluster, byOperator)
		if eventText := f.drainEvents(); strings.Count(eventText, "Warning CertificateNotUsable Secret "+ca) != 1 || !strings.Contains(eventText, "delete it so that the operator creates one") {
			t.Errorf("unexpected Events:\n%s", eventText)
		}
	})
	t.Run("certificate", func(t *testing.T) {
		f, cluster := newFixture(t, user(head, map[string][]byte{"tls.crt": []byte("mine")})), demo(t)
		f.mustReconcile(cluster, byOperator)
		if got := f.secret(head); string(got.Data["tls.crt"]) != "mine" || len(got.Labels) > 0 {
			t.Error("the Secret of the user was changed")
		}
		f.expectIdle(cluster, byOperator)
	})
}

// With IssuerPod only the CA has a Secret, and without mutual TLS no Secret is created.
func TestIssuerDeterminesSecrets(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	for name, tc := range map[string]struct {
		mode raycluster.Mode
		want []string
	}{
		"operator":                    {byOperator, []string{ca, head, worker}},
		"pod":                         {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, []string{ca}},
		"mTLS disabled":               {raycluster.Mode{}, nil},
		"skipped":                     {raycluster.Mode{Skip: "managed elsewhere", MTLS: true, Issuer: raycluster.IssuerOperator}, nil},
		"cert-manager, not installed": {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerCertManager}, []string{ca, head, worker}},
	} {
		t.Run(name, func(t *testing.T) {
			f, cluster := newFixture(t), demo(t)
			f.mustReconcile(cluster, tc.mode)
			list := &corev1.SecretList{}
			if err := f.server.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if desired := Desired(raycluster.View(cluster.Object), f.inputs(tc.mode)); len(desired) != len(tc.want) {
				t.Errorf("got %d desired objects, want %d", len(desired), len(tc.want))
			}
		})
	}
}

// Disabling mutual TLS deletes the metrics, and Forget deletes the state and the metrics of a deleted cluster.
func TestMemoryForget(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	f.mustReconcile(cluster, byOperator)
	if after := f.mustReconcile(cluster, raycluster.Mode{}); after != 0 || !expiryMetric(roleHead).Equal(time.Unix(0, 0).UTC()) {
		t.Errorf("next reconcile after %s, metric %s", after, expiryMetric(roleHead))
	}
	f.mustReconcile(cluster, byOperator)
	f.memory.Forget()
	if len(f.memory.secrets) != 0 || !expiryMetric(roleAuthority).Equal(time.Unix(0, 0).UTC()) {
		t.Error("the state or the metric of the deleted cluster was kept")
	}
}

// A changed Secret is read once, and its labels are reverted.
func TestChangedSecretsAreCheckedOnce(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	f.mustReconcile(cluster, byOperator)
	for _, name := range []string{ca, head, worker} {
		s := f.secret(name)
		s.Annotations["touched"] = "yes"
		f.update(s)
	}
	writes, before := f.writes, f.secret(head).Data
	f.mustReconcile(cluster, byOperator)
	if f.writes != writes || !equalData(before, f.secret(head).Data) {
		t.Errorf("%d writes for annotations", f.writes-writes)
	}
	f.expectIdle(cluster, byOperator)
	s := f.secret(head)
	delete(s.Labels, raycluster.LabelClusterName)
	f.update(s)
	f.mustReconcile(cluster, byOperator)
	if s := f.secret(head); s.Labels[raycluster.LabelClusterName] != "demo" || !equalData(before, s.Data) {
		t.Errorf("labels %v", s.Labels)
	}
	f.expectIdle(cluster, byOperator)
}

// While the cache may lag behind a write, no Secret is read, and the next reconcile checks again.
func TestStaleCache(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	f.mustReconcile(cluster, byOperator)
	for _, name := range []string{ca, head, worker} {
		f.hidden[name] = true
	}
	reads := f.reads
	if after := f.mustReconcile(cluster, byOperator); f.reads != reads || after > cacheLag {
		t.Errorf("got %d reads and a reconcile after %s, want no read and a reconcile within %s", f.reads-reads, after, cacheLag)
	}
	f.clock.Step(cacheLag)
	if f.mustReconcile(cluster, byOperator); f.reads == reads {
		t.Error("want a live read after cacheLag")
	}
}

// A new cluster costs no live read of a Secret. Certificates that another process has created are not replaced while the cache lags.
func TestNewClusterCostsNoReads(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	if f.mustReconcile(cluster, byOperator); f.reads != 0 {
		t.Errorf("%d live reads, want none", f.reads)
	}
	created := f.secret(ca).Data
	for _, name := range []string{ca, head, worker} {
		f.hidden[name] = true
	}
	f.memory = Memory{}
	f.Applier = apply.New(f.Applier.Options)
	if _, err := f.reconcile(t.Context(), cluster, byOperator); !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a conflict", err)
	}
	clear(f.hidden)
	f.mustReconcile(cluster, byOperator)
	if !equalData(created, f.secret(ca).Data) {
		t.Error("the CA was replaced")
	}
	f.expectIdle(cluster, byOperator)
}

// A Secret that disappears from the cache counts as deleted, even right after a write.
func TestDeletionRightAfterWriteIsDetected(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	f.mustReconcile(cluster, byOperator)
	f.expectIdle(cluster, byOperator)
	f.hidden[head] = true
	reads := f.reads
	if f.mustReconcile(cluster, byOperator); f.reads == reads {
		t.Error("want a live read without waiting for the cache")
	}
}

// Errors name the Secret, and the next reconcile succeeds.
func TestReconcileErrorNamesObjectAndIsRetried(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	ca, _, _ := demoSecrets(t)
	f.requestErr = errors.New("unavailable")
	if _, err := f.reconcile(t.Context(), cluster, byOperator); err == nil || !strings.Contains(err.Error(), ca) {
		t.Errorf("got error %v, want one that names the Secret %s", err, ca)
	}
	f.requestErr = nil
	f.mustReconcile(cluster, byOperator)
	f.expectIdle(cluster, byOperator)
}

// Outside OpenShift the operator issues a certificate for the Service of the proxy, even without mutual TLS.
func TestProxyCertificate(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	mode := raycluster.Mode{Auth: raycluster.AuthProxy}
	name := raycluster.View(cluster.Object).Names().ProxyTLS
	f.mustReconcile(cluster, mode)
	secret := f.secret(name)
	expectHosts(t, secret, raycluster.View(cluster.Object).Names().ProxyService+".team.svc", "localhost")
	if _, found := secret.Data["ca.key"]; found || f.writes != 1 {
		t.Errorf("%d writes, the Secret contains ca.key: %t", f.writes, found)
	}
	f.expectIdle(cluster, mode)
	if authority, known := f.memory.Authority(name, f.clock.Now()); !known || !bytes.Equal(authority, secret.Data["ca.crt"]) {
		t.Errorf("CA known: %t, got\n%s", known, authority)
	}
	f.clock.Step(leafLifetime * 3 / 4)
	f.mustReconcile(cluster, mode)
	if equalData(secret.Data, f.secret(name).Data) {
		t.Error("the certificate of the proxy was not renewed")
	}
	if authority, _ := f.memory.Authority(name, f.clock.Now()); !bytes.Equal(authority, f.secret(name).Data["ca.crt"]) {
		t.Error("the published CA is not that of the renewed certificate")
	}
	f.expectIdle(cluster, mode)
	renewed := f.secret(name)
	if err := f.server.Delete(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(time.Minute)
	after := f.mustReconcile(cluster, mode)
	signer, _ := pem.Decode(renewed.Data["ca.crt"])
	both := slices.Concat(f.secret(name).Data["ca.crt"], pem.EncodeToMemory(signer))
	if authority, _ := f.memory.Authority(name, f.clock.Now()); !bytes.Equal(authority, both) || after > time.Hour {
		t.Errorf("next reconcile after %s, want both CAs after the Secret was deleted, got\n%s", after, authority)
	}
	f.clock.Step(after)
	f.mustReconcile(cluster, mode)
	if authority, _ := f.memory.Authority(name, f.clock.Now()); !bytes.Equal(authority, f.secret(name).Data["ca.crt"]) {
		t.Errorf("want only the new CA, got\n%s", authority)
	}

	foreign := newFixture(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{"tls.crt": []byte("mine")}})
	foreign.mustReconcile(cluster, mode)
	if foreign.writes != 0 {
		t.Error("the certificate of a user was overwritten")
	}
	if authority, known := foreign.memory.Authority(name, foreign.clock.Now()); !known || len(authority) > 0 {
		t.Errorf("user certificate without a CA: known: %t, got\n%s", known, authority)
	}
	foreign.expectIdle(cluster, mode)
}
