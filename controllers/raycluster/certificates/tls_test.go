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

// Loopback addresses of pods.
const (
	headIP   = "127.0.0.2"
	workerIP = "127.0.0.3"
	lateIP   = "127.0.0.4"
)

// [R12] [R13] With the mounted files, after the init container ended, head and worker connect by address and by name.
func TestHeadAndWorkerConnect(t *testing.T) {
	requireOpenSSL(t)
	for _, algorithm := range []string{"ECDSA", "RSA"} {
		t.Run(algorithm, func(t *testing.T) {
			f := newFixture(t).atCurrentTime().withPods(headIP, workerIP)
			f.settings.CertificateKeyAlgorithm = algorithm
			f.mustReconcile(demo(t), byOperator)
			head, worker := f.newPodDir(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator), f.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator)
			head.runInitContainer()
			worker.runInitContainer()
			for dir, want := range map[string]string{"ca": "ca.crt", "tls": "ca.crt,server.crt,server.key"} {
				if got := strings.Join(fileNames(t, filepath.Join(head.dir, dir)), ","); got != want {
					t.Errorf("directory %s of the head contains %s, want %s", dir, got, want)
				}
			}
			now := f.clock.Now()
			for _, name := range []string{
				headIP, "demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "rayclient-demo-team.apps.example.org", "localhost",
			} {
				if err := head.process().accept(worker.process().client(name, now), now); err != nil {
					t.Errorf("the worker cannot connect to the head as %s: %v", name, err)
				}
			}
			if err := worker.process().accept(head.process().client(workerIP, now), now); err != nil {
				t.Errorf("the head cannot connect to the worker: %v", err)
			}
			if err := worker.process().accept(head.process().client("demo-head-svc.team.svc", now), now); err == nil {
				t.Error("the certificate of a worker was accepted as that of the head")
			}
		})
	}
}

func TestConnectRejectsOtherPeers(t *testing.T) {
	f := newFixture(t).withPods(headIP, workerIP)
	f.mustReconcile(demo(t), byOperator)
	now := f.clock.Now()
	head, worker := f.newPodDir(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator), f.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator)
	other := newFixture(t).withPods(headIP, workerIP) // another cluster of the same name
	other.mustReconcile(demo(t), byOperator)
	foreign := other.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process()

	anonymous := worker.process().client(headIP, now)
	anonymous.Certificates = nil
	if err := head.process().accept(anonymous, now); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("want an error about the missing client certificate, got %v", err)
	}
	if err := foreign.accept(worker.process().client(workerIP, now), now); err == nil {
		t.Error("a server of another cluster was accepted")
	}
	foreignClient := foreign.client(headIP, now)
	foreignClient.RootCAs = head.process().trusted // the client trusts the server, but the server does not trust the client
	if err := head.process().accept(foreignClient, now); err == nil {
		t.Error("a client of another cluster was accepted")
	}
	end := now.Add(leafLifetime + time.Hour)
	expired := head.process()
	f.clock.SetTime(end)
	f.mustReconcile(demo(t), byOperator)
	renewed := f.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process()
	if err := head.process().accept(worker.process().client(headIP, end), end); err == nil {
		t.Error("want an error, because both certificates have expired")
	}
	if err := expired.accept(renewed.client(headIP, end), end); err == nil {
		t.Error("want an error, because the certificate of the server has expired")
	}
	if err := renewed.accept(expired.client(workerIP, end), end); err == nil {
		t.Error("want an error, because the certificate of the client has expired")
	}
}

// The init container of a new pod waits until the certificate contains the address of the pod.
func TestInitContainerWaitsForAddress(t *testing.T) {
	requireOpenSSL(t)
	f := newFixture(t).atCurrentTime().withPods(headIP, workerIP)
	f.mustReconcile(demo(t), byOperator)
	late := f.newPodDir(raycluster.NodeTypeWorker, lateIP, raycluster.IssuerOperator)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	initContainer := late.command(ctx)
	out, err := initContainer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := initContainer.Start(); err != nil {
		t.Fatal(err)
	}
	if message, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(message, "waiting for a certificate for "+lateIP) {
		t.Fatalf("unexpected output %q, error %v", message, err)
	}
	f.create(pendingPod("late", raycluster.NodeTypeWorker, lateIP))
	f.clock.Step(addressBatchWindow)
	f.mustReconcile(demo(t), byOperator)
	late.mount()
	if err := initContainer.Wait(); err != nil {
		t.Fatalf("the init container did not succeed although the certificate contains its address: %v", err)
	}
	now := f.clock.Now()
	head := f.newPodDir(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator)
	if err := late.process().accept(head.process().client(lateIP, now), now); err != nil {
		t.Error(err)
	}
}

// [R11] During rotations, running pods and new pods connect to each other.
func TestRotationKeepsPodsConnected(t *testing.T) {
	f := newFixture(t).withPods(headIP, workerIP)
	cluster := demo(t)
	type generation struct {
		startedAt    time.Time
		head, worker process
	}
	var all []generation
	caCounts := map[int]bool{}
	for start := f.clock.Now(); f.clock.Since(start) < 3*leafLifetime; f.clock.Step(60 * 24 * time.Hour) {
		f.mustReconcile(cluster, byOperator)
		now := f.clock.Now()
		all = append(all, generation{
			now, f.newPodDir(raycluster.NodeTypeHead, headIP, raycluster.IssuerOperator).process(), f.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerOperator).process(),
		})
		caCounts[strings.Count(string(f.dataOf(raycluster.View(cluster.Object).Names().CASecret)["ca.crt"]), "BEGIN")] = true
		newest := all[len(all)-1]
		for _, old := range all {
			if now.After(old.head.certificate.Leaf.NotAfter) {
				continue
			}
			err := errors.Join(
				old.head.accept(newest.worker.client(headIP, now), now), newest.head.accept(old.worker.client(headIP, now), now),
				old.worker.accept(newest.head.client(workerIP, now), now), newest.worker.accept(old.head.client(workerIP, now), now))
			if err != nil {
				t.Fatalf("at %s, pods started at %s and new pods cannot connect: %v", now, old.startedAt, err)
			}
		}
	}
	if !caCounts[1] || !caCounts[2] {
		t.Error("want rotations, during which ca.crt contains two CAs instead of one")
	}
}

// With IssuerPod, pods sign with the ECDSA or RSA key of the CA. They connect by the name of the Service, and by the address among the DNS
// names, which gRPC compares as strings.
func TestPodIssuedCertificatesVerify(t *testing.T) {
	requireOpenSSL(t)
	mode := raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}
	for name, prepare := range map[string]func(f *fixture){
		"ECDSA": func(*fixture) {},
		"RSA":   func(f *fixture) { f.settings.CertificateKeyAlgorithm = "RSA" },
		"two CAs": func(f *fixture) {
			f.clock.SetTime(time.Now().Add(-leafLifetime - 24*time.Hour))
			f.mustReconcile(demo(f.t), mode)
		},
		"rotated CA": func(f *fixture) { rotateCA(f, mode) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).atCurrentTime()
			prepare(f)
			f.clock.SetTime(time.Now())
			f.mustReconcile(demo(t), mode)
			head, worker := f.newPodDir(raycluster.NodeTypeHead, headIP, raycluster.IssuerPod), f.newPodDir(raycluster.NodeTypeWorker, workerIP, raycluster.IssuerPod)
			head.runInitContainer()
			worker.runInitContainer()
			now := time.Now()
			for _, name := range []string{"demo-head-svc.team.svc.cluster.local", "demo-head-svc.team.svc", "rayclient-demo-team.apps.example.org"} {
				if err := head.process().accept(worker.process().client(name, now), now); err != nil {
					t.Errorf("the worker cannot connect to the head as %s: %v", name, err)
				}
			}
			if err := head.process().accept(clientByDNSName(worker.process(), headIP, now), now); err != nil {
				t.Errorf("the worker cannot connect to the head by address: %v", err)
			}
			if err := worker.process().accept(clientByDNSName(head.process(), workerIP, now), now); err != nil {
				t.Errorf("the head cannot connect to the worker by address: %v", err)
			}
		})
	}
}

// rotateCA creates a CA and publishes the next one at times in the past, so that the next one signs from the current time on.
func rotateCA(f *fixture, mode raycluster.Mode) {
	for _, ago := range []time.Duration{2*leafLifetime + 24*time.Hour, leafLifetime} {
		f.clock.SetTime(time.Now().Add(-ago))
		f.mustReconcile(demo(f.t), mode)
	}
}

// clientByDNSName returns a client that verifies the chain, and requires the address among the DNS names, as in certificates of the
// CodeFlare operator.
func clientByDNSName(p process, address string, now time.Time) *tls.Config {
	config := p.client("", now)
	config.InsecureSkipVerify = true // VerifyConnection replaces the default verification
	config.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0]
		if !slices.Contains(leaf.DNSNames, address) {
			return errors.New("the certificate lacks the DNS name " + address)
		}
		_, err := leaf.Verify(x509.VerifyOptions{Roots: p.trusted, CurrentTime: now})
		return err
	}
	return config
}
