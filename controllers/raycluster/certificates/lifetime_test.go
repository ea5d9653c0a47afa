package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// peer is a Ray process or client, which reads its certificate and CAs only at start.
type peer struct {
	name    string
	leaf    *x509.Certificate
	trusted *x509.CertPool
	endsAt  time.Time
}

// verify verifies the certificate of another peer, and returns the first expiry in its chain.
func (p peer) verify(other peer, now time.Time) (time.Time, error) {
	options := x509.VerifyOptions{Roots: p.trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	chains, err := other.leaf.Verify(options)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s does not trust %s: %w", p.name, other.name, err)
	}
	return slices.MinFunc(chains[0], func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter, nil
}

// trustPair identifies a verification: the trusted CAs of one peer and the certificate of another.
type trustPair struct {
	roots *x509.CertPool
	leaf  *x509.Certificate
}

// simulation simulates a RayCluster over years. The operator reconciles at the requested times and after random events.
type simulation struct {
	*fixture
	random      *rand.Rand
	cluster     *unstructured.Unstructured
	mode        raycluster.Mode
	peers       []peer
	requeueTime time.Time
	created     int
	// verified caches verified pairs until the given time, since verification is slow.
	verified map[trustPair]time.Time
	// signers are the keys that have signed, to count rotations.
	signers map[string]bool
	// minValidity is the minimum validity of a certificate at the start of a peer.
	minValidity time.Duration
}

func (s *simulation) names() raycluster.Names { return raycluster.View(s.cluster.Object).Names() }

// reconcileDue reconciles until no reconcile is due within a minute.
func (s *simulation) reconcileDue() {
	s.t.Helper()
	for range 5 {
		after := s.mustReconcile(s.cluster, s.mode)
		if after > time.Minute || after == 0 {
			s.requeueTime = s.clock.Now().Add(after)
			s.signers[string(certificateOf(s.t, s.secret(s.names().CASecret).Data["ca.crt"]).RawSubjectPublicKeyInfo)] = true
			return
		}
		s.clock.Step(after)
	}
	s.t.Fatal("the reconciler does not reach the steady state")
}

func certPool(t *testing.T, bundle []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(bundle) {
		t.Fatal("ca.crt contains no certificate")
	}
	return p
}

// startPod starts a pod with an address, which reads the certificate of its role.
func (s *simulation) startPod() {
	s.created++
	role, secret := raycluster.NodeTypeWorker, s.names().WorkerTLS
	if s.random.IntN(3) == 0 {
		role, secret = raycluster.NodeTypeHead, s.names().HeadTLS
	}
	ip := fmt.Sprintf("10.%d.%d.7", s.created/250, s.created%250)
	name := fmt.Sprintf("p%d", s.created)
	s.create(pendingPod(name, role, ip))
	s.clock.Step(addressBatchWindow)
	s.reconcileDue()
	data := s.secret(secret).Data
	leaf := certificateOf(s.t, data["tls.crt"])
	if err := leaf.VerifyHostname(ip); err != nil {
		s.t.Fatalf("%s has a certificate without its address: %v", name, err)
	}
	s.addPeer(peer{name: name, leaf: leaf, trusted: certPool(s.t, data["ca.crt"])})
}

// startClient starts a client that issues its own certificate with the CA in the Secret, as the SDK and pods with IssuerPod do.
func (s *simulation) startClient() {
	s.created++
	data := s.secret(s.names().CASecret).Data
	pair, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	if err != nil {
		s.t.Fatalf("the key does not belong to the first certificate: %v", err)
	}
	signer := certificateOf(s.t, data["ca.crt"])
	if signer.Subject.String() != "CN=root-ca" || len(signer.SubjectKeyId) == 0 || !signer.IsCA {
		s.t.Fatalf("the CA has subject %s, IsCA %t, want CN=root-ca with a subject key ID", signer.Subject, signer.IsCA)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(s.created)), Subject: pkix.Name{CommonName: "local"}, DNSNames: []string{"localhost"},
		NotBefore: s.clock.Now().Add(-time.Minute), NotAfter: s.clock.Now().Add(365 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, signer, key.Public(), pair.PrivateKey.(crypto.Signer))
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addPeer(peer{name: fmt.Sprintf("c%d", s.created), leaf: leaf, trusted: certPool(s.t, data["ca.crt"])})
}

// addPeer adds a peer, which ends before its certificate expires.
func (s *simulation) addPeer(p peer) {
	s.t.Helper()
	remaining := p.leaf.NotAfter.Sub(s.clock.Now())
	if uses := p.leaf.ExtKeyUsage; remaining < s.minValidity || !slices.Contains(uses, x509.ExtKeyUsageServerAuth) || !slices.Contains(uses, x509.ExtKeyUsageClientAuth) {
		s.t.Fatalf("%s starts with a certificate that is valid for %s and has the usages %v", p.name, remaining, uses)
	}
	p.endsAt = s.clock.Now().Add(time.Duration(1 + s.random.Int64N(int64(remaining)-1)))
	s.peers = append(s.peers, p)
}

// verifyAll verifies the certificates of all peers with each other, after it removes peers that have ended.
func (s *simulation) verifyAll() {
	s.t.Helper()
	now := s.clock.Now()
	s.peers = slices.DeleteFunc(s.peers, func(p peer) bool {
		ended := now.After(p.endsAt)
		if ended && p.name[0] == 'p' {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = "team", p.name
			if err := client.IgnoreNotFound(s.server.Delete(s.t.Context(), pod)); err != nil {
				s.t.Fatal(err)
			}
		}
		return ended
	})
	for _, a := range s.peers {
		for _, b := range s.peers {
			pair := trustPair{a.trusted, b.leaf}
			if !now.After(s.verified[pair]) {
				continue
			}
			until, err := a.verify(b, now)
			if err != nil {
				s.t.Fatalf("at %s: %v", now.Format(time.DateOnly), err)
			}
			s.verified[pair] = until
		}
	}
}

// expectNothingDue reconciles at a time at which nothing is due.
func (s *simulation) expectNothingDue() {
	s.t.Helper()
	reads, writes, patches := s.reads, s.writes, s.patches
	s.mustReconcile(s.cluster, s.mode)
	if s.reads != reads || s.writes != writes || s.patches != patches {
		s.t.Fatalf("at %s: got %d reads, %d writes and %d patches, want none, because nothing is due",
			s.clock.Now().Format(time.DateOnly), s.reads-reads, s.writes-writes, s.patches-patches)
	}
}

// step advances the clock to the next requested reconcile, or to an earlier random event.
func (s *simulation) step() {
	interval := time.Duration(1+s.random.IntN(24*45)) * time.Hour
	if due := s.requeueTime.Sub(s.clock.Now()); due > 0 && due <= interval {
		s.clock.Step(due)
		s.reconcileDue()
		s.verifyAll()
		return
	}
	s.clock.Step(interval)
	s.verifyAll()
	switch s.random.IntN(4) {
	case 0, 1:
		if s.mode.Issuer == raycluster.IssuerPod {
			s.startClient()
		} else {
			s.startPod()
		}
	case 2:
		s.startClient()
	default: // a new leader, which has no state
		writes := s.writes
		s.memory = Memory{}
		s.reconcileDue()
		if s.writes != writes {
			s.t.Fatalf("the new leader sent %d writes, want none", s.writes-writes)
		}
	}
	s.verifyAll()
	s.expectNothingDue()
}

// [R11] Over ten years with several rotations, all running pods and clients that issue their own certificates trust each other. No request
// is sent while nothing is due.
func TestRenewalOverTenYears(t *testing.T) {
	const years = 10
	legacy := func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }
	for name, tc := range map[string]struct {
		mode      raycluster.Mode
		algorithm string
		change    func(*unstructured.Unstructured)
		seeds     uint64
	}{
		"issued by the operator":  {byOperator, "ECDSA", func(*unstructured.Unstructured) {}, 1},
		"issued by the pods":      {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, "ECDSA", func(*unstructured.Unstructured) {}, 1},
		"issued by the pods, RSA": {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, "RSA", legacy, 1},
	} {
		for seed := range tc.seeds {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				s := &simulation{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 7)), cluster: demo(t), mode: tc.mode, signers: map[string]bool{}, verified: map[trustPair]time.Time{}}
				s.minValidity = leafLifetime*2/3 - 24*time.Hour
				s.settings.CertificateKeyAlgorithm = tc.algorithm
				tc.change(s.cluster)
				s.reconcileDue()
				maxPeers := 0
				for start := s.clock.Now(); s.clock.Since(start) < years*leafLifetime; {
					s.step()
					maxPeers = max(maxPeers, len(s.peers))
					s.drainEvents()
				}
				if len(s.signers) < 4 || maxPeers < 3 {
					t.Errorf("got %d CAs and at most %d concurrent peers, want at least 4 and 3", len(s.signers), maxPeers)
				}
			})
		}
	}
}

// After downtime of the operator, running processes and new ones trust each other until the certificate of the running ones expires, unless
// the downtime exceeds the time between publication of a CA and its first signature.
func TestRenewalAfterDowntime(t *testing.T) {
	for name, downtime := range map[string]time.Duration{"a month": 30 * 24 * time.Hour, "half a year": leafLifetime / 2, "eleven months": leafLifetime * 11 / 12} {
		t.Run(name, func(t *testing.T) {
			s := &simulation{fixture: newFixture(t), random: rand.New(rand.NewPCG(1, 1)), cluster: demo(t), mode: byOperator, signers: map[string]bool{}, verified: map[trustPair]time.Time{}}
			// If the next CA is announced late, the previous one signs until shortly before it expires, and no certificate outlives its CA.
			s.minValidity = leafLifetime / 4
			s.reconcileDue()
			for range 12 {
				s.startPod()
				before := s.peers[len(s.peers)-1]
				s.clock.Step(downtime)
				s.reconcileDue()
				s.startPod()
				s.startClient()
				now := s.clock.Now()
				for _, after := range s.peers[len(s.peers)-2:] {
					if now.After(before.leaf.NotAfter) {
						continue
					}
					for _, pair := range [][2]peer{{before, after}, {after, before}} {
						if _, err := pair[0].verify(pair[1], now); err != nil {
							t.Errorf("%s: unexpected error: %v", now.Format(time.DateOnly), err)
						}
					}
				}
				s.expectNothingDue()
			}
		})
	}
}
