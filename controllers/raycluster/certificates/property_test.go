package certificates

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// scenario is a RayCluster with random events.
type scenario struct {
	*fixture
	cluster *unstructured.Unstructured
	pods    []string
	created int
}

// runStep runs one random event.
func (s *scenario) runStep(t *rapid.T, steps []string) {
	ca, head, worker := demoSecrets(s.t)
	secrets := []string{ca, head, worker}
	switch step := rapid.SampledFrom(steps).Draw(t, "step"); step {
	case "create a pod":
		s.created++
		name := fmt.Sprintf("p%d", s.created)
		role := rapid.SampledFrom([]string{raycluster.NodeTypeHead, raycluster.NodeTypeWorker}).Draw(t, "role")
		pod := pendingPod(name, role)
		s.create(pod)
		s.pods = append(s.pods, name)
	case "assign addresses":
		if pod := s.drawPod(t); pod != nil && pod.Status.PodIP == "" {
			pod.Status.PodIP = fmt.Sprintf("10.1.0.%d", s.created)
			pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}, {IP: fmt.Sprintf("fd00::%d", s.created)}}
			s.update(pod)
		}
	case "start a pod":
		if pod := s.drawPod(t); pod != nil && pod.Status.PodIP != "" {
			pod.Status.Phase = corev1.PodRunning
			s.update(pod)
		}
	case "delete a pod":
		if pod := s.drawPod(t); pod != nil {
			if err := s.server.Delete(s.t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			s.pods = slices.DeleteFunc(s.pods, func(name string) bool { return name == pod.Name })
		}
	case "advance the clock":
		s.clock.Step(time.Duration(rapid.IntRange(1, 24*200).Draw(t, "hours")) * time.Hour)
	case "delete a Secret":
		name := rapid.SampledFrom(secrets).Draw(t, "secret")
		err := s.server.Delete(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		s.clock.Step(cacheLag)
	case "corrupt a Secret":
		secret := &corev1.Secret{}
		name := rapid.SampledFrom(secrets).Draw(t, "secret")
		if err := s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, secret); err != nil {
			return
		}
		for key := range secret.Data {
			if rapid.Bool().Draw(t, key) {
				secret.Data[key] = []byte("noise")
			}
		}
		s.update(secret)
	case "restart the manager":
		s.memory = Memory{}
	case "change the domain":
		s.domain = rapid.SampledFrom([]string{"", "apps.example.org", "other.example.org"}).Draw(t, "domain")
	}
}

func (s *scenario) drawPod(t *rapid.T) *corev1.Pod {
	if len(s.pods) == 0 {
		return nil
	}
	pod := &corev1.Pod{}
	name := rapid.SampledFrom(s.pods).Draw(t, "pod")
	if err := s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// reconcileUntilIdle reconciles until no requeue is due within a minute, as the work queue does.
func (s *scenario) reconcileUntilIdle(t *rapid.T) {
	for range 5 {
		after, err := s.reconcile(s.t.Context(), s.cluster, byOperator)
		if err != nil {
			t.Fatal(err)
		}
		if after > time.Minute {
			return
		}
		s.clock.Step(after)
	}
	t.Fatal("the reconciler does not reach the steady state")
}

// verifyCertificates verifies the certificates that new pods would read.
func (s *scenario) verifyCertificates(t *rapid.T) {
	ca, head, worker := demoSecrets(s.t)
	root := s.secret(ca)
	signer := certificateOf(s.t, root.Data["ca.crt"])
	for _, name := range []string{head, worker} {
		secret := s.secret(name)
		leaf := certificateOf(s.t, secret.Data["tls.crt"])
		if err := leaf.CheckSignatureFrom(signer); err != nil || string(secret.Data["ca.crt"]) != string(root.Data["ca.crt"]) {
			t.Fatalf("%s: unexpected error: %v", name, err)
		}
		if remaining := leaf.NotAfter.Sub(s.clock.Now()); remaining < leafLifetime/2 {
			t.Fatalf("Secret %s expires in %s, want at least half of its lifetime", name, remaining)
		}
	}
	for _, name := range s.pods {
		pod := &corev1.Pod{}
		if err := s.server.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, pod); err != nil {
			t.Fatal(err)
		}
		secret := worker
		if pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeHead {
			secret = head
		}
		leaf := certificateOf(s.t, s.secret(secret).Data["tls.crt"])
		for _, a := range pods.Addresses(pod) {
			host := a.String()
			if a.Is6() {
				host = "[" + host + "]"
			}
			if err := leaf.VerifyHostname(host); err != nil {
				t.Fatalf("pod %s: %v", name, err)
			}
		}
	}
}

// After any changes of pods, Secrets, time and the operator, each pod has a certificate with its addresses that is valid for half a year,
// and reconciles in the steady state send no requests.
func TestPodsHaveCertificatesAfterAnyEvents(t *testing.T) {
	steps := []string{
		"create a pod", "create a pod", "assign addresses", "assign addresses", "start a pod", "delete a pod", "advance the clock",
		"delete a Secret", "corrupt a Secret", "restart the manager", "change the domain",
	}
	rapid.Check(t, func(r *rapid.T) {
		s := &scenario{fixture: newFixture(t), cluster: demo(t)}
		s.reconcileUntilIdle(r)
		for range rapid.IntRange(1, 8).Draw(r, "number of steps") {
			s.runStep(r, steps)
			if rapid.Bool().Draw(r, "reconcile after the step") {
				s.reconcileUntilIdle(r)
			}
		}
		s.reconcileUntilIdle(r)
		s.verifyCertificates(r)
		reads, writes, patches := s.reads, s.writes, s.patches
		s.reconcileUntilIdle(r)
		if s.reads != reads || s.writes != writes || s.patches != patches {
			r.Fatalf("%d reads, %d writes, %d patches in the steady state", s.reads-reads, s.writes-writes, s.patches-patches)
		}
	})
}
