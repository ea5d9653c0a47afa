package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Mounted serves a certificate from files that somebody else renews. It is a manager Runnable for every replica.
type Mounted struct {
	watcher *certwatcher.CertWatcher
}

// IsMounted tells whether dir holds both tls.crt and tls.key.
func IsMounted(dir string) bool {
	for _, name := range []string{keyLeafCert, keyLeafKey} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// NewMounted reads tls.crt and tls.key in dir. It returns an error when they are missing or do not fit together.
func NewMounted(dir string) (*Mounted, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, keyLeafCert), filepath.Join(dir, keyLeafKey))
	if err != nil {
		return nil, fmt.Errorf("reading the mounted webhook certificate in %s: %w", dir, err)
	}
	watcher.RegisterCallback(func(c tls.Certificate) {
		if leaf, err := x509.ParseCertificate(c.Certificate[0]); err == nil {
			expiry.WithLabelValues(servingLabel).Set(float64(leaf.NotAfter.Unix()))
		}
	})
	return &Mounted{watcher: watcher}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (m *Mounted) NeedLeaderElection() bool { return false }

// GetCertificate fits tls.Config.
func (m *Mounted) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.watcher.GetCertificate(hello)
}

// Start implements manager.Runnable: it follows the files until ctx ends.
func (m *Mounted) Start(ctx context.Context) error {
	if err := m.watcher.Start(ctx); err != nil {
		return fmt.Errorf("following the mounted webhook certificate: %w", err)
	}
	return nil
}
