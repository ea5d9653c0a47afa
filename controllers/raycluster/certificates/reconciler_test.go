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
	caSecret     = "demo-ca-secret-"
	headSecret   = "demo-head-tls-"
	workerSecret = "demo-worker-tls-"
)

// demoSecrets returns the names of the Secrets of demo.
func demoSecrets(t *testing.T) (ca, head, worker string) {
	t.Helper()
	n := raycluster.View(demo(t).Object).Names()
	if !strings.HasPrefix(n.CASecret, caSecret) || !strings.HasPrefix(n.HeadTLS, headSecret) || !strings.HasPrefix(n.WorkerTLS, workerSecret) {
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

func mustBeFor(t *testing.T, secret *corev1.Secret, ips ...string) {
	t.Helper()
	c := certificateOf(t, secret.Data["tls.crt"])
	for _, ip := range ips {
		if err := c.VerifyHostname(ip); err != nil {
			t.Errorf("%s: unexpected error: %v", secret.Name, err)
		}
	}
}

// One reconcile creates the CA and both certificates of a new cluster.
func TestCertificatesOfANewCluster(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	if after := w.mustReconcile(cluster, byOperator); after < 300*24*time.Hour/3 {
		t.Errorf("due again after %s", after)
	}
	if w.writes != 3 {
		t.Errorf("%d writes", w.writes)
	}
	w.expectIdle(cluster, byOperator)
	authority := w.secret(ca)
	if len(authority.Data) != 2 || authority.Data["ca.crt"] == nil || authority.Data["ca.key"] == nil || authority.Type != corev1.SecretTypeOpaque && authority.Type != "" {
		t.Errorf("type %s, %d keys", authority.Type, len(authority.Data))
	}
	for _, secret := range []*corev1.Secret{authority, w.secret(head), w.secret(worker)} {
		owner := metav1.GetControllerOf(secret)
		if owner == nil || owner.UID != "u" || secret.Labels[raycluster.LabelClusterName] != "demo" || !apply.HasComponentLabels(secret, raycluster.ComponentName) {
			t.Errorf("%s: owner %v, labels %v", secret.Name, owner, secret.Labels)
		}
	}
	for _, name := range []string{head, worker} {
		secret := w.secret(name)
		if len(secret.Data) != 3 || secret.Type != corev1.SecretTypeTLS || !bytes.Equal(secret.Data["ca.crt"], authority.Data["ca.crt"]) {
			t.Errorf("%s of type %s with %d keys", name, secret.Type, len(secret.Data))
		}
		if err := certificateOf(t, secret.Data["tls.crt"]).CheckSignatureFrom(certificateOf(t, authority.Data["ca.crt"])); err != nil {
			t.Error(err)
		}
	}
	if reported := w.eventsSince(); !strings.Contains(reported, "Normal CertificateAuthority CA Created") || strings.Count(reported, "\n") > 0 {
		t.Errorf("reported:\n%s", reported)
	}
	for _, role := range []string{roleAuthority, roleHead, roleWorker} {
		if !expires(role).After(w.clock.Now().Add(364 * 24 * time.Hour)) {
			t.Errorf("metric of %s: %s", role, expires(role))
		}
	}
}

// [R12] [R13] Addresses of new pods are added to the certificate of their role, with one write per second, and stay while the pods exist.
func TestAddressesFollowPods(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	_, head, worker := demoSecrets(t)
	w.mustReconcile(cluster, byOperator)
	w.clock.Step(addressBatchWindow)
	w.create(pending("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pending("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	writes := w.writes
	w.mustReconcile(cluster, byOperator)
	if w.writes != writes+2 {
		t.Errorf("%d writes for a head and a worker", w.writes-writes)
	}
	mustBeFor(t, w.secret(head), "10.0.0.1", "[fd00::1]", "127.0.0.1", "localhost", "demo-head-svc.team.svc")
	mustBeFor(t, w.secret(worker), "10.0.0.2")
	w.expectIdle(cluster, byOperator)

	// The addresses of many pods within the batch window are added in one write.
	w.clock.Step(addressBatchWindow / 10)
	w.create(pending("b", raycluster.NodeTypeWorker, "10.0.0.3"))
	writes = w.writes
	if after := w.mustReconcile(cluster, byOperator); w.writes != writes || after > addressBatchWindow {
		t.Errorf("%d writes, next reconcile after %s", w.writes-writes, after)
	}
	w.create(pending("c", raycluster.NodeTypeWorker, "10.0.0.4"), pending("d", raycluster.NodeTypeWorker, "10.0.0.5"))
	w.clock.Step(addressBatchWindow)
	w.mustReconcile(cluster, byOperator)
	if w.writes != writes+1 {
		t.Errorf("%d writes for three pods", w.writes-writes)
	}
	mustBeFor(t, w.secret(worker), "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5")

	// Deleted pods cause no write; their addresses are removed with the next new pod.
	for _, name := range []string{"a", "b"} {
		if err := w.server.Delete(t.Context(), raytest.Pod(name, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	w.expectIdle(cluster, byOperator)
	w.clock.Step(addressBatchWindow)
	w.create(pending("e", raycluster.NodeTypeWorker, "10.0.0.6"))
	w.mustReconcile(cluster, byOperator)
	mustBeFor(t, w.secret(worker), "10.0.0.4", "10.0.0.5", "10.0.0.6")
	if c := certificateOf(t, w.secret(worker).Data["tls.crt"]); c.VerifyHostname("10.0.0.2") == nil {
		t.Error("the certificate still has the address of a deleted pod")
	}
}

// A waiting pod is annotated once, when the certificate contains its address.
func TestAnnotatePods(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	w.mustReconcile(cluster, byOperator)
	running := raytest.Pod("r", raycluster.NodeTypeWorker, "u", "10.0.0.9")
	running.Status.Phase = corev1.PodRunning
	bare := pending("bare", raycluster.NodeTypeWorker)
	w.create(pending("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pending("a", raycluster.NodeTypeWorker, "10.0.0.2"), running, bare)
	w.clock.Step(addressBatchWindow)
	w.mustReconcile(cluster, byOperator)
	if w.patches != 2 {
		t.Errorf("%d patches", w.patches)
	}
	pod := &corev1.Pod{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "h"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Annotations[pods.AnnotationCertificateFor] != "10.0.0.1,fd00::1" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	w.expectIdle(cluster, byOperator)
	again := newFixture(t)
	again.Reconciler, again.server = w.Reconciler, w.server // the next leader remembers nothing
	if _, err := again.reconcile(t.Context(), cluster, byOperator); err != nil {
		t.Fatal(err)
	}
	if w.patches != 2 {
		t.Errorf("%d patches after a restart", w.patches-2)
	}
}

// Kubelets that are notified before their watch delivers the Secret would read the previous one.
func TestAnnotatePodsWaitsForCache(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	w.mustReconcile(cluster, byOperator)
	w.clock.Step(addressBatchWindow)
	w.create(pending("h", raycluster.NodeTypeHead, "10.0.0.1"))
	w.hidden[head] = true
	w.mustReconcile(cluster, byOperator)
	if w.patches != 0 {
		t.Error("a pod was annotated with a certificate that the cache has not seen")
	}
	mustBeFor(t, w.secret(head), "10.0.0.1")
	w.hidden[head] = false
	w.mustReconcile(cluster, byOperator)
	if w.patches != 1 {
		t.Errorf("%d patches", w.patches)
	}
	w.expectIdle(cluster, byOperator)
}

// [R11] Invalid certificates are replaced with an Event, and deleted ones are recreated.
func TestBrokenCertificates(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	for name, tc := range map[string]struct {
		damage func(w *fixture)
		event  string
		writes int
	}{
		"no key of the CA": {func(w *fixture) {
			s := w.secret(ca)
			delete(s.Data, "ca.key")
			w.update(s)
		}, "Warning CertificateAuthority a new CA replaces the previous one, because reading ca.key", 3},
		"CA is noise": {func(w *fixture) {
			s := w.secret(ca)
			s.Data["ca.crt"] = []byte("noise")
			w.update(s)
		}, "Warning CertificateAuthority a new CA replaces the previous one, because reading ca.crt", 3},
		"Secret of the CA is deleted": {func(w *fixture) {
			if err := w.server.Delete(t.Context(), w.secret(ca)); err != nil {
				t.Fatal(err)
			}
		}, "Warning CertificateAuthority a new CA replaces the previous one", 3},
		"no key of the head": {func(w *fixture) {
			s := w.secret(head)
			s.Data["tls.key"] = []byte("noise")
			w.update(s)
		}, "Normal CertificateRenewed the certificate of role head was renewed, because reading tls.crt and tls.key: tls: failed to find any PEM data in key input", 1},
		"Secret of the workers is deleted": {func(w *fixture) {
			if err := w.server.Delete(t.Context(), w.secret(worker)); err != nil {
				t.Fatal(err)
			}
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, cluster := newFixture(t), demo(t)
			w.mustReconcile(cluster, byOperator)
			trusted := w.secret(ca).Data["ca.crt"]
			w.eventsSince()
			w.clock.Step(time.Minute)
			writes := w.writes
			tc.damage(w)
			w.mustReconcile(cluster, byOperator)
			if w.writes != writes+tc.writes {
				t.Errorf("%d writes, want %d", w.writes-writes, tc.writes)
			}
			if reported := w.eventsSince(); !strings.Contains(reported, tc.event) || tc.event == "" && reported != "" {
				t.Errorf("reported:\n%s", reported)
			}
			root := w.secret(ca).Data["ca.crt"]
			if name != "CA is noise" && !bytes.Contains(root, trusted) {
				t.Error("the CA of running pods was removed from the bundle")
			}
			for _, leaf := range []string{head, worker} {
				s := w.secret(leaf)
				if err := certificateOf(t, s.Data["tls.crt"]).CheckSignatureFrom(certificateOf(t, root)); err != nil || !bytes.Equal(s.Data["ca.crt"], root) {
					t.Errorf("%s: unexpected error: %v", leaf, err)
				}
			}
			w.expectIdle(cluster, byOperator)
		})
	}
}

// Each renewal happens at the requested time, with the minimum of requests, and is reported.
func TestCertificatesAreRenewed(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, _ := demoSecrets(t)
	start, signers, reported := w.clock.Now(), map[string]bool{}, ""
	reconciles := 0
	for w.clock.Since(start) < 4*365*24*time.Hour {
		after := w.mustReconcile(cluster, byOperator)
		if after <= 0 {
			t.Fatal("want a requeue for the renewal")
		}
		reconciles++
		signers[string(certificateOf(t, w.secret(ca).Data["ca.crt"]).Raw)] = true
		if left := certificateOf(t, w.secret(head).Data["tls.crt"]).NotAfter.Sub(w.clock.Now()); left < 240*24*time.Hour {
			t.Errorf("a pod that starts now has a certificate for %s", left)
		}
		reported += w.eventsSince() + "\n"
		w.clock.Step(after)
	}
	if reconciles > 40 || len(signers) != 3 {
		t.Errorf("%d reconciles, %d CAs", reconciles, len(signers))
	}
	for _, want := range []string{"the CA is rotated at ", "the CA was rotated", "the certificate of role head was renewed, because a third of its lifetime has passed"} {
		if !strings.Contains(reported, want) {
			t.Errorf("no event reports that %s:\n%s", want, reported)
		}
	}
}

// Secrets of the CodeFlare operator are adopted unchanged: RSA, without our labels, controlled by the cluster.
func TestAnExistingCAIsKept(t *testing.T) {
	ca, _, _ := demoSecrets(t)
	now := time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)
	root, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "root-ca", Lifetime: 365 * 24 * time.Hour, Algorithm: certs.RSA}, now)
	if err != nil {
		t.Fatal(err)
	}
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: ca, Labels: map[string]string{raycluster.LabelClusterName: "demo"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: "u", Controller: new(true)}},
	}, Data: root.Data}
	w, cluster := newFixture(t, old), demo(t)
	w.mustReconcile(cluster, raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod})
	got := w.secret(ca)
	if !equalData(got.Data, root.Data) || !apply.HasComponentLabels(got, raycluster.ComponentName) || w.writes != 1 {
		t.Errorf("%d writes, labels %v", w.writes, got.Labels)
	}
	if reported := w.eventsSince(); reported != "" {
		t.Errorf("reported:\n%s", reported)
	}
	w.expectIdle(cluster, raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod})
}

// Secrets of users are used but never written.
func TestSecretsOfUsers(t *testing.T) {
	ca, head, _ := demoSecrets(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	userCA, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "mine", Lifetime: 10 * 24 * time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	user := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: data}
	}
	t.Run("a CA", func(t *testing.T) {
		w, cluster := newFixture(t, user(ca, userCA.Data)), demo(t)
		w.mustReconcile(cluster, byOperator)
		if c := certificateOf(t, w.secret(head).Data["tls.crt"]); c.Issuer.CommonName != "mine" {
			t.Errorf("issued by %s", c.Issuer)
		}
		if got := w.secret(ca); !equalData(got.Data, userCA.Data) || len(got.Labels) > 0 || len(got.OwnerReferences) > 0 {
			t.Errorf("the Secret was changed: %v", got.ObjectMeta)
		}
		if reported := w.eventsSince(); !strings.Contains(reported, "Warning CertificateExpiring the CA in Secret "+ca) {
			t.Errorf("reported:\n%s, want it to contain %q", reported, "Warning CertificateExpiring the CA in Secret "+ca)
		}
		w.expectIdle(cluster, byOperator)
		w.clock.Step(foreignRecheck)
		w.mustReconcile(cluster, byOperator)
		if reported := w.eventsSince(); reported != "" {
			t.Errorf("reported again:\n%s", reported)
		}
	})
	t.Run("a CA of no use", func(t *testing.T) {
		w, cluster := newFixture(t, user(ca, map[string][]byte{"ca.crt": []byte("noise")})), demo(t)
		if after := w.mustReconcile(cluster, byOperator); after > foreignRecheck || after <= 0 || w.writes > 0 {
			t.Errorf("%d writes, next reconcile after %s", w.writes, after)
		}
		if reported := w.eventsSince(); !strings.Contains(reported, "Warning CertificateNotUsable Secret "+ca) || !strings.Contains(reported, "delete it so that the operator creates one") {
			t.Errorf("reported:\n%s", reported)
		}
	})
	t.Run("a certificate", func(t *testing.T) {
		w, cluster := newFixture(t, user(head, map[string][]byte{"tls.crt": []byte("mine")})), demo(t)
		w.mustReconcile(cluster, byOperator)
		if got := w.secret(head); string(got.Data["tls.crt"]) != "mine" || len(got.Labels) > 0 {
			t.Error("the Secret of the user was changed")
		}
		w.expectIdle(cluster, byOperator)
	})
}

// IssuerPod has only the CA, and without mutual TLS there is no Secret.
func TestIssuerDeterminesSecrets(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	for name, tc := range map[string]struct {
		mode raycluster.Mode
		want []string
	}{
		"operator":      {byOperator, []string{ca, head, worker}},
		"pod":           {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, []string{ca}},
		"mTLS disabled": {raycluster.Mode{}, nil},
		"step aside":    {raycluster.Mode{Skip: "managed elsewhere", MTLS: true, Issuer: raycluster.IssuerOperator}, nil},
		"cert-manager":  {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerCertManager}, []string{ca, head, worker}},
	} {
		t.Run(name, func(t *testing.T) {
			w, cluster := newFixture(t), demo(t)
			w.mustReconcile(cluster, tc.mode)
			list := &corev1.SecretList{}
			if err := w.server.List(t.Context(), list); err != nil {
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
			if wanted := Desired(raycluster.View(cluster.Object), w.inputs(tc.mode)); len(wanted) != len(tc.want) {
				t.Errorf("%d objects are kept, want %d", len(wanted), len(tc.want))
			}
		})
	}
}

// Disabling mutual TLS drops the state.
func TestMemoryForget(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	w.mustReconcile(cluster, byOperator)
	if after := w.mustReconcile(cluster, raycluster.Mode{}); after != 0 || !expires(roleHead).Equal(time.Unix(0, 0).UTC()) {
		t.Errorf("next reconcile after %s, metric %s", after, expires(roleHead))
	}
	w.mustReconcile(cluster, byOperator)
	w.memory.Forget()
	if len(w.memory.secrets) != 0 || !expires(roleAuthority).Equal(time.Unix(0, 0).UTC()) {
		t.Error("the state or the metric of the deleted cluster was kept")
	}
}

// A Secret that a user annotates is read once, and its labels and content are reverted.
func TestChangedSecretsAreCheckedOnce(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	w.mustReconcile(cluster, byOperator)
	for _, name := range []string{ca, head, worker} {
		s := w.secret(name)
		s.Annotations["touched"] = "yes"
		w.update(s)
	}
	writes, before := w.writes, w.secret(head).Data
	w.mustReconcile(cluster, byOperator)
	if w.writes != writes || !equalData(before, w.secret(head).Data) {
		t.Errorf("%d writes for annotations", w.writes-writes)
	}
	w.expectIdle(cluster, byOperator)
	s := w.secret(head)
	delete(s.Labels, raycluster.LabelClusterName)
	w.update(s)
	w.mustReconcile(cluster, byOperator)
	if s := w.secret(head); s.Labels[raycluster.LabelClusterName] != "demo" || !equalData(before, s.Data) {
		t.Errorf("labels %v", s.Labels)
	}
	w.expectIdle(cluster, byOperator)
}

// While the cache lags behind a write nothing is read, and the next reconcile checks again.
func TestStaleCache(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	w.mustReconcile(cluster, byOperator)
	for _, name := range []string{ca, head, worker} {
		w.hidden[name] = true
	}
	reads := w.reads
	if after := w.mustReconcile(cluster, byOperator); w.reads != reads || after > cacheLag {
		t.Errorf("%d reads, next reconcile after %s", w.reads-reads, after)
	}
	w.clock.Step(cacheLag)
	if w.mustReconcile(cluster, byOperator); w.reads == reads {
		t.Error("want a live read once the cache has had time to catch up")
	}
}

// A new cluster costs no read. Certificates that another process has created are not replaced while the cache lags.
func TestNothingIsReadForANewCluster(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, head, worker := demoSecrets(t)
	if w.mustReconcile(cluster, byOperator); w.reads != 0 {
		t.Errorf("%d reads", w.reads)
	}
	made := w.secret(ca).Data
	for _, name := range []string{ca, head, worker} {
		w.hidden[name] = true
	}
	w.memory = Memory{}
	w.Applier = apply.New(w.Applier.Options)
	if _, err := w.reconcile(t.Context(), cluster, byOperator); !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
	clear(w.hidden)
	w.mustReconcile(cluster, byOperator)
	if !equalData(made, w.secret(ca).Data) {
		t.Error("the CA was replaced")
	}
	w.expectIdle(cluster, byOperator)
}

// A Secret that the cache has shown and lacks now was deleted, even right after a write.
func TestDeletedJustAfterItWasWritten(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	_, head, _ := demoSecrets(t)
	w.mustReconcile(cluster, byOperator)
	w.expectIdle(cluster, byOperator)
	w.hidden[head] = true
	reads := w.reads
	if w.mustReconcile(cluster, byOperator); w.reads == reads {
		t.Error("want a live read without waiting for the cache")
	}
}

// Errors name the object, and the next reconcile repeats all steps.
func TestReconcileErrorNamesObjectAndIsRetried(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	ca, _, _ := demoSecrets(t)
	w.fail = errors.New("away")
	if _, err := w.reconcile(t.Context(), cluster, byOperator); err == nil || !strings.Contains(err.Error(), ca) {
		t.Errorf("got error %v, want one that names the Secret %s", err, ca)
	}
	w.fail = nil
	w.mustReconcile(cluster, byOperator)
	w.expectIdle(cluster, byOperator)
}

// On Kubernetes without OAuth the proxy gets a certificate for its Service, with or without mutual TLS.
func TestTheProxyHasACertificate(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	mode := raycluster.Mode{Auth: raycluster.AuthProxy}
	name := raycluster.View(cluster.Object).Names().ProxyTLS
	w.mustReconcile(cluster, mode)
	secret := w.secret(name)
	mustBeFor(t, secret, raycluster.View(cluster.Object).Names().ProxyService+".team.svc", "localhost")
	if _, leaks := secret.Data["ca.key"]; leaks || w.writes != 1 {
		t.Errorf("%d writes, the key of a CA is there: %t", w.writes, leaks)
	}
	w.expectIdle(cluster, mode)
	if authority, known := w.memory.Authority(name, w.clock.Now()); !known || !bytes.Equal(authority, secret.Data["ca.crt"]) {
		t.Errorf("the CA is known: %t, %s", known, authority)
	}
	w.clock.Step(leafLifetime * 3 / 4)
	w.mustReconcile(cluster, mode)
	if equalData(secret.Data, w.secret(name).Data) {
		t.Error("the certificate of the proxy was not renewed")
	}
	if authority, _ := w.memory.Authority(name, w.clock.Now()); !bytes.Equal(authority, w.secret(name).Data["ca.crt"]) {
		t.Error("the CA was not replaced")
	}
	w.expectIdle(cluster, mode)
	renewed := w.secret(name)
	if err := w.server.Delete(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(time.Minute)
	pause := w.mustReconcile(cluster, mode)
	signer, _ := pem.Decode(renewed.Data["ca.crt"])
	both := slices.Concat(w.secret(name).Data["ca.crt"], pem.EncodeToMemory(signer))
	if authority, _ := w.memory.Authority(name, w.clock.Now()); !bytes.Equal(authority, both) || pause > time.Hour {
		t.Errorf("for %s after its Secret was deleted are trusted\n%s", pause, authority)
	}
	w.clock.Step(pause)
	w.mustReconcile(cluster, mode)
	if authority, _ := w.memory.Authority(name, w.clock.Now()); !bytes.Equal(authority, w.secret(name).Data["ca.crt"]) {
		t.Errorf("later are trusted\n%s", authority)
	}

	foreign := newFixture(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{"tls.crt": []byte("mine")}})
	foreign.mustReconcile(cluster, mode)
	if foreign.writes != 0 {
		t.Error("the certificate of a user was overwritten")
	}
	if authority, known := foreign.memory.Authority(name, foreign.clock.Now()); !known || len(authority) > 0 {
		t.Errorf("the CA of a user is known: %t, %s", known, authority)
	}
	foreign.expectIdle(cluster, mode)
}
