package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

const (
	validityDays = 365
	serialBits   = 120
	adminGroup   = "system:masters"
	frontProxy   = "front-proxy-client"
)

// authority signs the certificates of one instance.
type authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

// subject is the subject of a certificate. With hosts, it is a server certificate.
type subject struct {
	file, name, group string
	hosts             []string
}

// newAuthority creates the CA and the service-account key pair of an instance in dir.
func newAuthority(dir string, now time.Time) (*authority, error) {
	a, err := selfSigned(dir, subject{file: "ca", name: "testcluster"}, now)
	if err != nil {
		return nil, err
	}
	return a, a.writeSigningKey()
}

func selfSigned(dir string, s subject, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of %s: %w", s.file, err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: s.name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a := &authority{dir: dir, certificate: template, key: key, now: now}
	return a, a.write(s, template, key)
}

// issueFrontProxy writes the certificate with which the API server forwards requests to aggregated API servers, and its CA. The CA signs
// no other certificate, because these servers trust any user name in the requests of a client with a certificate of this CA.
func issueFrontProxy(dir string, now time.Time) error {
	ca, err := selfSigned(dir, subject{file: "front-proxy-ca", name: "testcluster-front-proxy"}, now)
	if err != nil {
		return err
	}
	return ca.issue(subject{file: "front-proxy", name: frontProxy})
}

// issue writes <file>.crt and <file>.key.
func (a *authority) issue(s subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of %s: %w", s.file, err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: s.name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if s.group != "" {
		template.Subject.Organization = []string{s.group}
	}
	for _, host := range s.hosts {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.write(s, template, key)
}

func (a *authority) write(s subject, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return fmt.Errorf("generating a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = a.now.Add(-time.Hour), a.now.AddDate(0, 0, validityDays)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("signing the certificate of %s: %w", s.file, err)
	}
	if template.IsCA { // parse the generated key identifier: Python clients require it in the certificates that the CA signs
		if a.certificate, err = x509.ParseCertificate(der); err != nil {
			return fmt.Errorf("reading the certificate of %s: %w", s.file, err)
		}
	}
	if err := a.writePEM(s.file+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return a.writeKey(s.file+".key", key)
}

// writeSigningKey writes the key pair for service-account tokens.
func (a *authority) writeSigningKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the service-account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the service-account key: %w", err)
	}
	if err := a.writePEM("sa.pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return a.writeKey("sa.key", key)
}

func (a *authority) writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", file, err)
	}
	return a.writePEM(file, "EC PRIVATE KEY", der)
}

func (a *authority) writePEM(file, kind string, der []byte) error {
	return writeFile(filepath.Join(a.dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
