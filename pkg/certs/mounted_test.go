package certs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate as in a mounted volume, and returns its expiry.
func writeCertificate(t *testing.T, dir string) time.Time {
	t.Helper()
	p, err := ensurePair(nil, []string{serviceName}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dataKeyCert, dataKeyPrivateKey} {
		if err := os.WriteFile(filepath.Join(dir, name), p.data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p.leaf.Expires
}

func TestMountedCertificate(t *testing.T) {
	dir := t.TempDir()
	if IsMounted(dir) || IsMounted(filepath.Join(dir, "none")) {
		t.Error("IsMounted reports true without certificate files")
	}
	if _, err := NewMounted(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got error %v, want one that names the directory", err)
	}
	first := writeCertificate(t, dir)
	if !IsMounted(dir) {
		t.Error("IsMounted reports false, although both files exist")
	}
	m, err := NewMounted(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := metric(t, servingCertificateLabel); got != float64(first.Unix()) {
		t.Errorf("got metric %v, want %v", got, first.Unix())
	}
	served, err := m.GetCertificate(nil)
	if err != nil || served.Leaf.DNSNames[0] != serviceName {
		t.Errorf("got certificate %v, error %v, want the mounted certificate", served, err)
	}
	m.WithWatchInterval(10 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	writeCertificate(t, dir)
	waitFor(t, func() bool {
		current, err := m.GetCertificate(nil)
		return err == nil && current.Leaf.SerialNumber.Cmp(served.Leaf.SerialNumber) != 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the watcher stopped with %v", err)
	}
	if m.NeedLeaderElection() || (&Authority{}).NeedLeaderElection() {
		t.Error("NeedLeaderElection reports true, although every replica serves webhooks")
	}
}

func TestIsMountedNeedsBothFiles(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir)
	if err := os.Remove(filepath.Join(dir, dataKeyPrivateKey)); err != nil {
		t.Fatal(err)
	}
	if IsMounted(dir) {
		t.Error("IsMounted reports true without the key")
	}
	if err := os.Mkdir(filepath.Join(dir, dataKeyPrivateKey), 0o700); err != nil {
		t.Fatal(err)
	}
	if IsMounted(dir) {
		t.Error("IsMounted reports true for a directory named as the key")
	}
}
