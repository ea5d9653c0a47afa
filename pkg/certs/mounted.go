package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// IsMounted reports whether dir contains both tls.crt and tls.key.
func IsMounted(dir string) bool {
	for _, name := range []string{dataKeyCert, dataKeyPrivateKey} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// NewMounted returns a watcher of tls.crt and tls.key in dir, which another program renews. The watcher must run on every replica. NewMounted
// returns an error if the files are missing or do not match.
func NewMounted(dir string) (*certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(filepath.Join(dir, dataKeyCert), filepath.Join(dir, dataKeyPrivateKey))
	if err != nil {
		return nil, fmt.Errorf("reading the mounted webhook certificate in %s: %w", dir, err)
	}
	watcher.RegisterCallback(func(c tls.Certificate) {
		expiryGauge.WithLabelValues(servingCertificateLabel).Set(float64(c.Leaf.NotAfter.Unix()))
	})
	return watcher, nil
}
