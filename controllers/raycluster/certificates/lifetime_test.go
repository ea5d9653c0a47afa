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

// reader is a Ray process or client, which reads its certificate and CAs only at start.
type reader struct {
	name    string
	leaf    *x509.Certificate
	trusted *x509.CertPool
	ends    time.Time
}

// verifyPeer fails unless both accept the certificate of the other. It returns the first expiry in the chain.
func (r reader) verifyPeer(other reader, now time.Time) (time.Time, error) {
	options := x509.VerifyOptions{Roots: r.trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	chains, err := other.leaf.Verify(options)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s does not trust %s: %w", r.name, other.name, err)
	}
	return slices.MinFunc(chains[0], func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter, nil
}

// trust is a pair of readers.
type trust struct {
	roots *x509.CertPool
	leaf  *x509.Certificate
}

// life simulates a cluster over years. The operator reconciles at the requested times, and when a pod is created or deleted.
type life struct {
	*fixture
	dice    *rand.Rand
	cluster *unstructured.Unstructured
	mode    raycluster.Mode
	readers []reader
	wakes   time.Time
	made    int
	// trusted caches verified pairs until the given time, since verification is slow.
	trusted map[trust]time.Time
	// signers are the keys that have signed, to count rotations.
	signers map[string]bool
	// least is the minimum validity of a certificate at the start of a reader.
	least time.Duration
}

func (l *life) names() raycluster.Names { return raycluster.View(l.cluster.Object).Names() }

// reconcileDue reconciles until nothing is due.
func (l *life) reconcileDue() {
	l.t.Helper()
	for range 5 {
		after := l.mustReconcile(l.cluster, l.mode)
		if after > time.Minute || after == 0 {
			l.wakes = l.clock.Now().Add(after)
			l.signers[string(certificateOf(l.t, l.secret(l.names().CASecret).Data["ca.crt"]).RawSubjectPublicKeyInfo)] = true
			return
		}
		l.clock.Step(after)
	}
	l.t.Fatal("the reconciler does not reach the steady state")
}

func pool(t *testing.T, bundle []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(bundle) {
		t.Fatal("no certificate in ca.crt")
	}
	return p
}

// pod starts a pod with an address, which reads the certificate of its role.
func (l *life) pod() {
	l.made++
	role, secret := raycluster.NodeTypeWorker, l.names().WorkerTLS
	if l.dice.IntN(3) == 0 {
		role, secret = raycluster.NodeTypeHead, l.names().HeadTLS
	}
	ip := fmt.Sprintf("10.%d.%d.7", l.made/250, l.made%250)
	name := fmt.Sprintf("p%d", l.made)
	l.create(pending(name, role, ip))
	l.clock.Step(addressBatchWindow)
	l.reconcileDue()
	data := l.secret(secret).Data
	leaf := certificateOf(l.t, data["tls.crt"])
	if err := leaf.VerifyHostname(ip); err != nil {
		l.t.Fatalf("%s has a certificate without its address: %v", name, err)
	}
	l.starts(reader{name: name, leaf: leaf, trusted: pool(l.t, data["ca.crt"])})
}

// client issues its own certificate with the CA in the Secret, as the SDK and pods with IssuerPod do.
func (l *life) client() {
	l.made++
	data := l.secret(l.names().CASecret).Data
	pair, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	if err != nil {
		l.t.Fatalf("the key does not belong to the first certificate: %v", err)
	}
	signer := certificateOf(l.t, data["ca.crt"])
	if signer.Subject.String() != "CN=root-ca" || len(signer.SubjectKeyId) == 0 || !signer.IsCA {
		l.t.Fatalf("clients know the issuer by its name and its key: %+v", signer.Subject)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(l.made)), Subject: pkix.Name{CommonName: "local"}, DNSNames: []string{"localhost"},
		NotBefore: l.clock.Now().Add(-time.Minute), NotAfter: l.clock.Now().Add(365 * 24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, signer, key.Public(), pair.PrivateKey.(crypto.Signer))
	if err != nil {
		l.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		l.t.Fatal(err)
	}
	l.starts(reader{name: fmt.Sprintf("c%d", l.made), leaf: leaf, trusted: pool(l.t, data["ca.crt"])})
}

// starts limits the life of a reader to that of its certificate.
func (l *life) starts(r reader) {
	l.t.Helper()
	left := r.leaf.NotAfter.Sub(l.clock.Now())
	if uses := r.leaf.ExtKeyUsage; left < l.least || !slices.Contains(uses, x509.ExtKeyUsageServerAuth) || !slices.Contains(uses, x509.ExtKeyUsageClientAuth) {
		l.t.Fatalf("%s starts with a certificate that is good for %s and for %v", r.name, left, uses)
	}
	r.ends = l.clock.Now().Add(time.Duration(1 + l.dice.Int64N(int64(left)-1)))
	l.readers = append(l.readers, r)
}

// check connects all pairs, and removes readers at the end of their life.
func (l *life) check() {
	l.t.Helper()
	now := l.clock.Now()
	l.readers = slices.DeleteFunc(l.readers, func(r reader) bool {
		over := now.After(r.ends)
		if over && r.name[0] == 'p' {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = "team", r.name
			if err := client.IgnoreNotFound(l.server.Delete(l.t.Context(), pod)); err != nil {
				l.t.Fatal(err)
			}
		}
		return over
	})
	for _, a := range l.readers {
		for _, b := range l.readers {
			pair := trust{a.trusted, b.leaf}
			if !now.After(l.trusted[pair]) {
				continue
			}
			until, err := a.verifyPeer(b, now)
			if err != nil {
				l.t.Fatalf("at %s: %v", now.Format(time.DateOnly), err)
			}
			l.trusted[pair] = until
		}
	}
}

// expectNothingDue reconciles at a time at which nothing is due.
func (l *life) expectNothingDue() {
	l.t.Helper()
	reads, writes, patches := l.reads, l.writes, l.patches
	l.mustReconcile(l.cluster, l.mode)
	if l.reads != reads || l.writes != writes || l.patches != patches {
		l.t.Fatalf("at %s %d reads, %d writes and %d patches though nothing was due",
			l.clock.Now().Format(time.DateOnly), l.reads-reads, l.writes-writes, l.patches-patches)
	}
}

// step advances the clock to the requested time of the operator, or to an earlier random event.
func (l *life) step() {
	quiet := time.Duration(1+l.dice.IntN(24*45)) * time.Hour
	if due := l.wakes.Sub(l.clock.Now()); due > 0 && due <= quiet {
		l.clock.Step(due)
		l.reconcileDue()
		l.check()
		return
	}
	l.clock.Step(quiet)
	l.check()
	switch l.dice.IntN(4) {
	case 0, 1:
		if l.mode.Issuer == raycluster.IssuerPod {
			l.client()
		} else {
			l.pod()
		}
	case 2:
		l.client()
	default: // a new leader with an empty cache reads, and has nothing to write
		writes := l.writes
		l.memory = Memory{}
		l.reconcileDue()
		if l.writes != writes {
			l.t.Fatalf("another leader wrote %d times", l.writes-writes)
		}
	}
	l.check()
	l.expectNothingDue()
}

// [R11] Over ten years with several rotations, all pods and clients that issue their own certificates trust each other whenever they
// started, and nothing is written while nothing is due.
func TestRenewalOverTenYears(t *testing.T) {
	const years = 10
	legacy := func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }
	for name, tc := range map[string]struct {
		mode      raycluster.Mode
		algorithm string
		change    func(*unstructured.Unstructured)
		seeds     uint64
	}{
		"of the operator":  {byOperator, "ECDSA", func(*unstructured.Unstructured) {}, 1},
		"of the pods":      {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, "ECDSA", func(*unstructured.Unstructured) {}, 1},
		"of the pods, RSA": {raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerPod}, "RSA", legacy, 1},
	} {
		for seed := range tc.seeds {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				l := &life{fixture: newFixture(t), dice: rand.New(rand.NewPCG(seed, 7)), cluster: demo(t), mode: tc.mode, signers: map[string]bool{}, trusted: map[trust]time.Time{}}
				l.least = leafLifetime*2/3 - 24*time.Hour
				l.settings.CertificateKeyAlgorithm = tc.algorithm
				tc.change(l.cluster)
				l.reconcileDue()
				maxRotations := 0
				for start := l.clock.Now(); l.clock.Since(start) < years*leafLifetime; {
					l.step()
					maxRotations = max(maxRotations, len(l.readers))
					l.eventsSince()
				}
				if len(l.signers) < 4 || maxRotations < 3 {
					t.Errorf("%d CAs signed and at most %d talked: the story is too quiet", len(l.signers), maxRotations)
				}
			})
		}
	}
}

// After downtime of the operator, running processes trust new ones until their own certificate expires, unless the downtime exceeds the
// time between publication of a CA and its first signature.
func TestRenewalAfterDowntime(t *testing.T) {
	for name, downtime := range map[string]time.Duration{"a month": 30 * 24 * time.Hour, "half a year": leafLifetime / 2, "eleven months": leafLifetime * 11 / 12} {
		t.Run(name, func(t *testing.T) {
			l := &life{fixture: newFixture(t), dice: rand.New(rand.NewPCG(1, 1)), cluster: demo(t), mode: byOperator, signers: map[string]bool{}, trusted: map[trust]time.Time{}}
			l.least = leafLifetime / 4 // a CA that was announced late signs almost to its end, and no certificate outlives it
			l.reconcileDue()
			for range 12 {
				l.pod()
				before := l.readers[len(l.readers)-1]
				l.clock.Step(downtime)
				l.reconcileDue()
				l.pod()
				l.client()
				now := l.clock.Now()
				for _, after := range l.readers[len(l.readers)-2:] {
					if now.After(before.leaf.NotAfter) {
						continue
					}
					for _, pair := range [][2]reader{{before, after}, {after, before}} {
						if _, err := pair[0].verifyPeer(pair[1], now); err != nil {
							t.Errorf("%s: unexpected error: %v", now.Format(time.DateOnly), err)
						}
					}
				}
				l.expectNothingDue()
			}
		})
	}
}
