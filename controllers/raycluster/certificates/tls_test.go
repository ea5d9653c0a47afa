package certificates

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Loopback addresses.
const headIP, workerIP, lateIP = "127.0.0.2", "127.0.0.3", "127.0.0.4"

// [R12] [R13] With the mounted files, after the init container ended, head and worker connect by address and by name.
func TestHeadAndWorkerTalk(t *testing.T) {
	needsOpenSSL(t)
	for _, algorithm := range []string{"ECDSA", "RSA"} {
		t.Run(algorithm, func(t *testing.T) {
			w := newFixture(t).atPresent().withPods(headIP, workerIP)
			w.settings.CertificateKeyAlgorithm = algorithm
			w.mustReconcile(demo(t), byOperator)
			head, worker := w.machine(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator), w.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator)
			head.start()
			worker.start()
			for dir, want := range map[string]string{"ca": "ca.crt", "tls": "ca.crt,server.crt,server.key"} {
				if got := strings.Join(keysIn(t, filepath.Join(head.dir, dir)), ","); got != want {
					t.Errorf("folder %s of the head: %s, want %s", dir, got, want)
				}
			}
			now := w.clock.Now()
			for _, name := range []string{
				headIP, "demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "rayclient-demo-team.apps.example.org", "localhost",
			} {
				if err := head.process().dial(worker.process().client(name, now), now); err != nil {
					t.Errorf("the worker asks the head as %s: %v", name, err)
				}
			}
			if err := worker.process().dial(head.process().client(workerIP, now), now); err != nil {
				t.Errorf("the head asks the worker: %v", err)
			}
			if err := worker.process().dial(head.process().client("demo-head-svc.team.svc", now), now); err == nil {
				t.Error("the certificate of a worker was accepted as that of the head")
			}
		})
	}
}

func TestPeersThatAreRefused(t *testing.T) {
	w := newFixture(t).withPods(headIP, workerIP)
	w.mustReconcile(demo(t), byOperator)
	now := w.clock.Now()
	head, worker := w.machine(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator), w.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator)
	other := newFixture(t).withPods(headIP, workerIP) // another cluster of the same name
	other.mustReconcile(demo(t), byOperator)
	foreign := other.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process()

	bare := worker.process().client(headIP, now)
	bare.Certificates = nil
	if err := head.process().dial(bare, now); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a peer without certificate: %v", err)
	}
	if err := foreign.dial(worker.process().client(workerIP, now), now); err == nil {
		t.Error("a server of another cluster was accepted")
	}
	trusting := foreign.client(headIP, now)
	trusting.RootCAs = head.process().trusted // it may know whom to trust, it is not trusted
	if err := head.process().dial(trusting, now); err == nil {
		t.Error("a client of another cluster was accepted")
	}
	end := now.Add(leafLifetime + time.Hour)
	old := head.process()
	w.clock.SetTime(end)
	w.mustReconcile(demo(t), byOperator)
	fresh := w.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process()
	if err := head.process().dial(worker.process().client(headIP, end), end); err == nil {
		t.Error("want an error, because both certificates have expired")
	}
	if err := old.dial(fresh.client(headIP, end), end); err == nil {
		t.Error("want an error, because the certificate of the server has expired")
	}
	if err := fresh.dial(old.client(workerIP, end), end); err == nil {
		t.Error("want an error, because the certificate of the client has expired")
	}
}

// A later pod waits until the certificate contains its address.
func TestAPodWaitsForItsAddress(t *testing.T) {
	needsOpenSSL(t)
	w := newFixture(t).atPresent().withPods(headIP, workerIP)
	w.mustReconcile(demo(t), byOperator)
	late := w.machine(raycluster.NodeTypeWorker, lateIP, raycluster.IssuerOperator)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := late.command(ctx)
	out, err := waits.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	if message, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(message, "waiting for a certificate for "+lateIP) {
		t.Fatalf("response %q, error %v", message, err)
	}
	w.create(pending("late", raycluster.NodeTypeWorker, lateIP))
	w.clock.Step(addressBatchWindow)
	w.mustReconcile(demo(t), byOperator)
	late.mount()
	if err := waits.Wait(); err != nil {
		t.Fatalf("the init container waits although the certificate contains its address: %v", err)
	}
	now := w.clock.Now()
	head := w.machine(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator)
	if err := late.process().dial(head.process().client(lateIP, now), now); err != nil {
		t.Error(err)
	}
}

// [R11] During a rotation, pods of any age connect to new pods.
func TestRotationKeepsPodsTalking(t *testing.T) {
	w := newFixture(t).withPods(headIP, workerIP)
	cluster := demo(t)
	type started struct {
		at           time.Time
		head, worker process
	}
	var all []started
	bundles := map[int]bool{}
	for start := w.clock.Now(); w.clock.Since(start) < 3*leafLifetime; w.clock.Step(60 * 24 * time.Hour) {
		w.mustReconcile(cluster, byOperator)
		now := w.clock.Now()
		all = append(all, started{
			now, w.machine(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator).process(), w.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process(),
		})
		bundles[strings.Count(string(w.dataOf(raycluster.View(cluster.Object).Names().CASecret)["ca.crt"]), "BEGIN")] = true
		newest := all[len(all)-1]
		for _, old := range all {
			if now.After(old.head.certificate.Leaf.NotAfter) {
				continue
			}
			err := errors.Join(
				old.head.dial(newest.worker.client(headIP, now), now), newest.head.dial(old.worker.client(headIP, now), now),
				old.worker.dial(newest.head.client(workerIP, now), now), newest.worker.dial(old.head.client(workerIP, now), now))
			if err != nil {
				t.Fatalf("at %s, pods of %s and new ones: %v", now, old.at, err)
			}
		}
	}
	if !bundles[1] || !bundles[2] {
		t.Error("want the CA rotated, so that the bundle has 1 and 2 CAs in turn")
	}
}

// With IssuerPod, pods sign with the key of the CA of any algorithm, and connect by the name of the Service and by address as text, as
// gRPC compares it.
func TestPodIssuedCertificatesVerify(t *testing.T) {
	needsOpenSSL(t)
	mode := raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}
	for name, prepare := range map[string]func(w *fixture){
		"ECDSA": func(*fixture) {},
		"RSA":   func(w *fixture) { w.settings.CertificateKeyAlgorithm = "RSA" },
		"two CAs": func(w *fixture) {
			w.clock.SetTime(time.Now().Add(-leafLifetime - 24*time.Hour))
			w.mustReconcile(demo(w.t), mode)
		},
		"the next signs": func(w *fixture) { original(w, mode) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).atPresent()
			prepare(w)
			w.clock.SetTime(time.Now())
			w.mustReconcile(demo(t), mode)
			head, worker := w.machine(raycluster.NodeTypeHead, headIP, raycluster.IssuerPod), w.machine(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerPod)
			head.start()
			worker.start()
			now := time.Now()
			for _, name := range []string{"demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "rayclient-demo-team.apps.example.org"} {
				if err := head.process().dial(worker.process().client(name, now), now); err != nil {
					t.Errorf("the worker asks the head as %s: %v", name, err)
				}
			}
			if err := head.process().dial(byText(worker.process(), headIP, now), now); err != nil {
				t.Errorf("the worker asks the head by address: %v", err)
			}
			if err := worker.process().dial(byText(head.process(), workerIP, now), now); err != nil {
				t.Errorf("the head asks the worker by address: %v", err)
			}
		})
	}
}

// original advances a CA until the next one signs.
func original(w *fixture, mode raycluster.Mode) {
	for _, ago := range []time.Duration{2*leafLifetime + 24*time.Hour, leafLifetime} {
		w.clock.SetTime(time.Now().Add(-ago))
		w.mustReconcile(demo(w.t), mode)
	}
}

// byText verifies the chain, and the address among the DNS names, as in certificates of the CodeFlare operator.
func byText(p process, address string, now time.Time) *tls.Config {
	config := p.client("", now)
	config.InsecureSkipVerify = true // VerifyConnection takes its place
	config.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0]
		if !slices.Contains(leaf.DNSNames, address) {
			return errors.New("no name " + address)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: p.trusted, CurrentTime: now})
		return err
	}
	return config
}
