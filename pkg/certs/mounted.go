package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// IsMounted reports whether dir holds both tls.crt and tls.key.
func IsMounted(dir string) bool {
	for _, name := range []string{secretKeyCert, secretKeyPrivateKey} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// NewMounted returns a Runnable for every replica that follows tls.crt and tls.key in dir, which another program renews. It returns an
// error when they are missing or do not belong together.
func NewMounted(dir string) (*certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, secretKeyCert), filepath.Join(dir, secretKeyPrivateKey))
	if err != nil {
		return nil, fmt.Errorf("reading the mounted webhook certificate in %s: %w", dir, err)
	}
	watcher.RegisterCallback(func(c tls.Certificate) {
		expiryGauge.WithLabelValues(servingCertificateLabel).Set(float64(c.Leaf.NotAfter.Unix()))
	})
	return watcher, nil
}
