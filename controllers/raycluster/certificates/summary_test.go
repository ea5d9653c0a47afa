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

// restart makes the fixture a process that remembers nothing and is younger than the cluster.
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

// A restart neither reads nor writes the Secrets of a cluster, and everything is renewed when it is due.
func TestARestartReadsNoSecret(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	w.mustReconcile(cluster, withProxy)
	w.clock.Step(addressBatchWindow)
	w.create(pending("h", raycluster.NodeTypeHead, "10.0.0.1", "fd00::1"), pending("a", raycluster.NodeTypeWorker, "10.0.0.2"))
	due := w.mustReconcile(cluster, withProxy)
	stored, expiry := w.contents(), expires(roleHead)
	for range 2 {
		w.restart(cluster)
		if after := w.mustReconcile(cluster, withProxy); after != due || w.reads != 0 || w.writes != 0 || w.patches != 2 || !expires(roleHead).Equal(expiry) {
			t.Errorf("%d reads, %d writes, %d patches of pods, next reconcile after %s instead of %s", w.reads, w.writes, w.patches, after, due)
		}
	}
	w.clock.Step(due)
	w.restart(cluster)
	w.mustReconcile(cluster, withProxy)
	if w.reads == 0 || w.writes == 0 || maps.Equal(stored, w.contents()) {
		t.Errorf("%d reads and %d writes when the renewal is due", w.reads, w.writes)
	}
	w.restart(cluster)
	if w.mustReconcile(cluster, withProxy); w.reads != 0 || w.writes != 0 {
		t.Errorf("%d reads and %d writes after the renewal", w.reads, w.writes)
	}
}

// Changes while no process ran are noticed.
func TestChangesBeforeARestart(t *testing.T) {
	ca, head, worker := demoSecrets(t)
	proxy := raycluster.View(demo(t).Object).Names().ProxyTLS
	for name, tc := range map[string]struct {
		change        func(w *fixture)
		reads, writes int
		kept          bool
	}{
		"a pod ended": {func(w *fixture) {
			if err := w.server.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("team"), client.MatchingLabels{"ray.io/node-type": "worker"}); err != nil {
				t.Fatal(err)
			}
		}, 2, 0, true}, // the CA is read to check a certificate
		"a pod started": {func(w *fixture) { w.create(pending("b", raycluster.NodeTypeWorker, "10.0.0.3")) }, 2, 1, false},
		"a Secret was lost": {func(w *fixture) {
			if err := w.server.Delete(t.Context(), w.secret(head)); err != nil {
				t.Fatal(err)
			}
		}, 3, 1, false},
		"another certificate, with the annotation": {func(w *fixture) {
			s := w.secret(head)
			s.Data["tls.crt"] = w.secret(proxy).Data["tls.crt"]
			w.update(s)
		}, 2, 1, false},
		"a forged annotation for another certificate": {func(w *fixture) {
			s := w.secret(head)
			s.Data["tls.crt"], s.Annotations[AnnotationSummary] = w.secret(proxy).Data["tls.crt"], w.secret(proxy).Annotations[AnnotationSummary]
			w.update(s)
		}, 2, 1, false},
		"another CA in a certificate": {func(w *fixture) {
			s := w.secret(worker)
			s.Data["ca.crt"] = w.secret(proxy).Data["ca.crt"]
			w.update(s)
		}, 2, 1, true},
		"a forged annotation": {func(w *fixture) {
			s := w.secret(ca)
			s.Annotations[AnnotationSummary] = strings.Replace(s.Annotations[AnnotationSummary], " 1", " 2", 1)
			w.update(s)
		}, 1, 1, true},
		"no annotation, as by earlier versions": {func(w *fixture) {
			for _, name := range []string{ca, head, worker, proxy} {
				w.withoutAnnotation(name)
			}
		}, 4, 4, true},
		"an annotation of another client": {func(w *fixture) {
			s := w.secret(ca)
			s.Annotations["touched"] = "yes"
			w.update(s)
		}, 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, cluster := newFixture(t), demo(t)
			w.mustReconcile(cluster, withProxy)
			w.clock.Step(addressBatchWindow)
			w.create(pending("h", raycluster.NodeTypeHead, "10.0.0.1"), pending("a", raycluster.NodeTypeWorker, "10.0.0.2"))
			w.mustReconcile(cluster, withProxy)
			w.clock.Step(time.Minute)
			stored := w.contents()
			tc.change(w)
			w.restart(cluster)
			w.mustReconcile(cluster, withProxy)
			if w.reads != tc.reads || w.writes != tc.writes {
				t.Errorf("%d reads and %d writes, want %d and %d", w.reads, w.writes, tc.reads, tc.writes)
			}
			if kept := maps.Equal(stored, w.contents()); kept != tc.kept {
				t.Errorf("the content is the same: %t, want %t", kept, tc.kept)
			}
			w.expectIdle(cluster, withProxy)
			certificate := certificateOf(t, w.secret(head).Data["tls.crt"])
			if err := certificate.CheckSignatureFrom(certificateOf(t, w.secret(ca).Data["ca.crt"])); err != nil || certificate.VerifyHostname("10.0.0.1") != nil {
				t.Errorf("the certificate of the head: %v", err)
			}
			writes := w.writes
			w.restart(cluster)
			if w.mustReconcile(cluster, withProxy); w.writes != 0 {
				t.Errorf("%d writes, then %d after another restart", writes, w.writes)
			}
		})
	}
}

// withoutAnnotation applies a Secret as a version without the annotation did.
func (f *fixture) withoutAnnotation(name string) {
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

// The CA is read where it is published, also when that begins after a restart.
func TestAPublishedAuthorityIsRead(t *testing.T) {
	w, cluster := newFixture(t), demo(t)
	w.mustReconcile(cluster, withProxy)
	name := raycluster.View(cluster.Object).Names().ProxyTLS
	w.restart(cluster)
	w.mustReconcile(cluster, withProxy)
	w.publishes = true
	w.mustReconcile(cluster, withProxy)
	if authority, known := w.memory.Authority(name, w.clock.Now()); !known || !bytes.Equal(authority, w.secret(name).Data["ca.crt"]) || w.reads != 1 || w.writes != 0 {
		t.Errorf("%d reads, %d writes, known: %t\n%s", w.reads, w.writes, known, authority)
	}
	w.expectIdle(cluster, withProxy)
}
