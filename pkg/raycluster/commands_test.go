package raycluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// [raycluster-24] The command equals that of the CodeFlare operator.
func TestSignCommand(t *testing.T) {
	const want = `cd /home/ray/workspace/tls && openssl req -nodes -newkey rsa:2048 -keyout server.key -out server.csr -subj '/CN=ray-head' && ` +
		`printf "authorityKeyIdentifier=keyid,issuer\nbasicConstraints=CA:FALSE\nsubjectAltName = @alt_names\n[alt_names]\n` +
		`DNS.1 = 127.0.0.1\nDNS.2 = localhost\nDNS.3 = ${FQ_RAY_IP}\nDNS.4 = $(awk 'END{print $1}' /etc/hosts)\n` +
		`DNS.5 = rayclient-c-ns.\nDNS.6 = c-head-svc.ns.svc">./domain.ext && ` +
		`cp /home/ray/workspace/ca/* . && ` +
		`openssl x509 -req -CA ca.crt -CAkey ca.key -in server.csr -out server.crt -days 365 -CAcreateserial -extfile domain.ext`
	c := clusterOf(t, "metadata: {name: c, namespace: ns}")
	if diff := cmp.Diff([]string{"sh", "-c", want}, SignCommand(c.ClientDNSName(""), c.HeadDNSName())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	worker := SignCommand()[2]
	if bytes.Contains([]byte(worker), []byte("DNS.5")) || !bytes.Contains([]byte(worker), []byte(`/etc/hosts)">./domain.ext`)) {
		t.Errorf("unexpected command of a worker: %s", worker)
	}
}

// [R12] [R13] The command succeeds once the certificate is valid, signed by the mounted CA, and contains the address of the pod, and
// always in the pod that cleans up Redis.
func TestWaitCommand(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed; the image of the init container contains it")
	}
	authority, foreign := newAuthority(t), newAuthority(t)
	valid := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		trusted, issuer *testAuthority
		addresses       []net.IP
		expiry          time.Time
		pod, nodeType   string
		succeeds        bool
	}{
		"address of the pod": {authority, authority, []net.IP{{10, 0, 0, 1}, {10, 0, 0, 2}}, valid, "10.0.0.2", "head", true},
		"IPv6 address":       {authority, authority, []net.IP{net.ParseIP("fd00::7")}, valid, "fd00::7", "worker", true},
		"other address":      {authority, authority, []net.IP{{10, 0, 0, 1}}, valid, "10.0.0.2", "head", false},
		"no address":         {authority, authority, nil, valid, "10.0.0.2", "head", false},
		"other CA":           {authority, foreign, []net.IP{{10, 0, 0, 2}}, valid, "10.0.0.2", "head", false},
		"expired":            {authority, authority, []net.IP{{10, 0, 0, 2}}, time.Now().Add(-time.Minute), "10.0.0.2", "head", false},
		"cleanup of Redis":   {authority, authority, nil, valid, "10.0.0.2", "redis-cleanup", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writePEM(t, filepath.Join(dir, "ca.crt"), test.trusted.der)
			writePEM(t, filepath.Join(dir, "server.crt"), test.issuer.issue(t, test.addresses, test.expiry))
			// The first output of the script stops it.
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			command := WaitCommand()
			run := exec.CommandContext(ctx, command[0], command[1:]...)
			run.Env = append(os.Environ(), "MY_POD_IP="+test.pod, "RAY_NODE_TYPE="+test.nodeType, "RAY_TLS_SERVER_CERT="+filepath.Join(dir, "server.crt"), "RAY_TLS_CA_CERT="+filepath.Join(dir, "ca.crt"))
			output := &stopOnOutput{stop: stop}
			run.Stdout = output
			err := run.Run()
			if succeeded := err == nil; succeeded != test.succeeds || output.written == test.succeeds {
				t.Errorf("succeeded: %t, want %t: %v", succeeded, test.succeeds, err)
			}
		})
	}
}

// stopOnOutput stops a command at its first output.
type stopOnOutput struct {
	stop    context.CancelFunc
	written bool
}

func (o *stopOnOutput) Write(p []byte) (int, error) {
	o.written = true
	o.stop()
	return len(p), nil
}

type testAuthority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	der         []byte
}

func newAuthority(t *testing.T) *testAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &testAuthority{key, template, der}
}

func (a *testAuthority) issue(t *testing.T, addresses []net.IP, expiry time.Time) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "ray-head"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: expiry,
		DNSNames: []string{"localhost"}, IPAddresses: addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func writePEM(t *testing.T, path string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
