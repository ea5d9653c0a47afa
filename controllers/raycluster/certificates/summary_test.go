package certificates

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// withProxy is byOperator with the certificate of the proxy.
var withProxy = raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerOperator, Auth: raycluster.AuthProxy}

// restart clears the state, as a new process does, and sets a creation time of the RayCluster before the start of the process. It resets
// the counts of reads and writes.
func (f *fixture) restart(cluster *unstructured.Unstructured) {
	cluster.SetCreationTimestamp(metav1.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	f.memory.Forget()
	f.memory = Memory{}
	f.Applier = apply.New(f.Applier.Options)
	f.reads, f.writes = 0, 0
}

// contents returns the data of all Secrets by name and key.
func (f *fixture) contents() map[string]string {
	list := &corev1.SecretList{}
	if err := f.server.List(f.t.Context(), list); err != nil {
		f.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		for key, value := range list.Items[i].Data {
			out[list.Items[i].Name+"/"+key] = string(value)
		}
	}
	return out
}

// After a restart the Secrets of a RayCluster are neither read nor written, and certificates are renewed when they are due.
func TestRestartReadsNoSecrets(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	f.mustReconcile(cluster, withProxy)
	f.clock.Step(addressBatchWindow)
	f.create(pendingPod("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pendingPod("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	due := f.mustReconcile(cluster, withProxy)
	stored, expiry := f.contents(), expiryMetric(roleHead)
	for range 2 {
		f.restart(cluster)
		if after := f.mustReconcile(cluster, withProxy); after != due || f.reads != 0 || f.writes != 0 || f.patches != 2 || !expiryMetric(roleHead).Equal(expiry) {
			t.Errorf("got %d reads, %d writes, %d patches of pods and a reconcile after %s, want 0, 0, 2 and %s", f.reads, f.writes, f.patches, after, due)
		}
	}
	f.clock.Step(due)
	f.restart(cluster)
	f.mustReconcile(cluster, withProxy)
	if f.reads == 0 || f.writes == 0 || maps.Equal(stored, f.contents()) {
		t.Errorf("%d reads and %d writes when the renewal is due", f.reads, f.writes)
	}
	f.restart(cluster)
	if f.mustReconcile(cluster, withProxy); f.reads != 0 || f.writes != 0 {
		t.Errorf("%d reads and %d writes after the renewal", f.reads, f.writes)
	}
}

// Changes during downtime of the operator are detected.
func TestChangesDuringDowntimeAreDetected(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	proxy := raycluster.View(demo(t).Object).Names().ProxyTLS
	for name, tc := range map[string]struct {
		change        func(f *fixture)
		reads, writes int
		kept          bool
	}{
		"pod deleted": {func(f *fixture) {
			if err := f.server.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("team"), client.MatchingLabels{"ray.io/node-type": "worker"}); err != nil {
				t.Fatal(err)
			}
		}, 2, 0, true}, // the CA is read to check a certificate
		"pod created": {func(f *fixture) { f.create(pendingPod("b", raycluster.NodeTypeWorker, "10.0.0.3")) }, 2, 1, false},
		"Secret deleted": {func(f *fixture) {
			if err := f.server.Delete(t.Context(), f.secret(head)); err != nil {
				t.Fatal(err)
			}
		}, 3, 1, false},
		"other certificate, same annotation": {func(f *fixture) {
			s := f.secret(head)
			s.Data["tls.crt"] = f.secret(proxy).Data["tls.crt"]
			f.update(s)
		}, 2, 1, false},
		"other certificate and forged annotation": {func(f *fixture) {
			s := f.secret(head)
			s.Data["tls.crt"], s.Annotations[AnnotationSummary] = f.secret(proxy).Data["tls.crt"], f.secret(proxy).Annotations[AnnotationSummary]
			f.update(s)
		}, 2, 1, false},
		"other CA in the Secret of a certificate": {func(f *fixture) {
			s := f.secret(worker)
			s.Data["ca.crt"] = f.secret(proxy).Data["ca.crt"]
			f.update(s)
		}, 2, 1, true},
		"forged annotation": {func(f *fixture) {
			s := f.secret(ca)
			s.Annotations[AnnotationSummary] = strings.Replace(s.Annotations[AnnotationSummary], " 1", " 2", 1)
			f.update(s)
		}, 1, 1, true},
		"no annotation, as in earlier versions": {func(f *fixture) {
			for _, name := range []string{ca, head, worker, proxy} {
				f.removeSummary(name)
			}
		}, 4, 4, true},
		"annotation of another client": {func(f *fixture) {
			s := f.secret(ca)
			s.Annotations["touched"] = "yes"
			f.update(s)
		}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, cluster := newFixture(t), demo(t)
			f.mustReconcile(cluster, withProxy)
			f.clock.Step(addressBatchWindow)
			f.create(pendingPod("h", raycluster.NodeTypeHead, "10.0.0.1"), pendingPod("a", raycluster.NodeTypeWorker, "10.0.0.2"))
			f.mustReconcile(cluster, withProxy)
			f.clock.Step(time.Minute)
			stored := f.contents()
			tc.change(f)
			f.restart(cluster)
			f.mustReconcile(cluster, withProxy)
			if f.reads != tc.reads || f.writes != tc.writes {
				t.Errorf("%d reads and %d writes, want %d and %d", f.reads, f.writes, tc.reads, tc.writes)
			}
			if kept := maps.Equal(stored, f.contents()); kept != tc.kept {
				t.Errorf("data unchanged: %t, want %t", kept, tc.kept)
			}
			f.expectIdle(cluster, withProxy)
			certificate := certificateOf(t, f.secret(head).Data["tls.crt"])
			if err := certificate.CheckSignatureFrom(certificateOf(t, f.secret(ca).Data["ca.crt"])); err != nil || certificate.VerifyHostname("10.0.0.1") != nil {
				t.Errorf("the certificate of the head has another CA or lacks the address of its pod: %v", err)
			}
			writes := f.writes
			f.restart(cluster)
			if f.mustReconcile(cluster, withProxy); f.writes != 0 {
				t.Errorf("got %d writes after the first restart and %d after the second, want none after the second", writes, f.writes)
			}
		})
	}
}

// removeSummary applies a Secret without the annotation, as earlier versions did.
func (f *fixture) removeSummary(name string) {
	s := f.secret(name)
	owner := s.OwnerReferences[0]
	config := corev1ac.Secret(name, s.Namespace).WithLabels(s.Labels).WithData(s.Data)
	if s.Type != "" && s.Type != corev1.SecretTypeOpaque {
		config.WithType(s.Type)
	}
	config.WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).
		WithUID(owner.UID).WithController(true).WithBlockOwnerDeletion(true))
	if err := f.server.Apply(f.t.Context(), config, client.FieldOwner(raycluster.FieldOwner), client.ForceOwnership); err != nil {
		f.t.Fatal(err)
	}
	if got := f.secret(name); got.Annotations[AnnotationSummary] != "" {
		f.t.Fatal("the annotation was not removed")
	}
}

// The CA of the proxy is read when its publication is enabled, even after a restart.
func TestPublishedCAIsRead(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	f.mustReconcile(cluster, withProxy)
	name := raycluster.View(cluster.Object).Names().ProxyTLS
	f.restart(cluster)
	f.mustReconcile(cluster, withProxy)
	f.publishes = true
	f.mustReconcile(cluster, withProxy)
	if authority, known := f.memory.Authority(name, f.clock.Now()); !known || !bytes.Equal(authority, f.secret(name).Data["ca.crt"]) || f.reads != 1 || f.writes != 0 {
		t.Errorf("got %d reads and %d writes, want 1 and 0; CA known: %t\n%s", f.reads, f.writes, known, authority)
	}
	f.expectIdle(cluster, withProxy)
}
