//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// getCAs returns the CA certificates in a Secret of the cluster. The first one signs certificates.
func (d *rayDemo) getCAs(ctx context.Context, secret string) []*x509.Certificate {
	GinkgoHelper()
	bundle, err := certutil.ParseCertsPEM(d.secret(ctx, secret).Data[raycluster.KeyCACert])
	Expect(err).NotTo(HaveOccurred())
	return bundle
}

// shiftValidity moves the validity of the CAs to the past by a third of their lifetime. Keys and names remain.
func (d *rayDemo) shiftValidity(ctx context.Context) {
	GinkgoHelper()
	secret := d.secret(ctx, d.names.CASecret)
	keys := [][]byte{secret.Data[raycluster.KeyCAKey], secret.Data["ca-next.key"]}
	var shifted bytes.Buffer
	bundle, err := certutil.ParseCertsPEM(secret.Data[raycluster.KeyCACert])
	Expect(err).NotTo(HaveOccurred())
	for i, ca := range bundle {
		key, err := keyutil.ParsePrivateKeyPEM(keys[i])
		Expect(err).NotTo(HaveOccurred())
		signer := key.(crypto.Signer)
		third := ca.NotAfter.Sub(ca.NotBefore)/3 + time.Hour
		ca.NotBefore, ca.NotAfter = ca.NotBefore.Add(-third), ca.NotAfter.Add(-third)
		der, err := x509.CreateCertificate(rand.Reader, ca, ca, signer.Public(), signer)
		Expect(err).NotTo(HaveOccurred())
		Expect(pem.Encode(&shifted, &pem.Block{Type: "CERTIFICATE", Bytes: der})).To(Succeed())
	}
	secret.Data[raycluster.KeyCACert] = shifted.Bytes()
	Expect(env.Admin.Update(ctx, secret)).To(Succeed())
}

// publishNextCA shifts the validity of the CA by a third, and waits until the Secrets of pods also contain the next CA.
func (d *rayDemo) publishNextCA(ctx context.Context) {
	GinkgoHelper()
	Expect(d.getCAs(ctx, d.names.CASecret)).To(HaveLen(1))
	d.shiftValidity(ctx)
	for _, secret := range []string{d.names.CASecret, d.names.HeadTLS, d.names.WorkerTLS} {
		Eventually(ctx, d.getCAs, podTimeout).WithArguments(secret).Should(HaveLen(2), secret)
	}
}

// replaceCA shifts the validity of the CA by another third, and waits until the next CA has signed the certificates of head and workers.
func (d *rayDemo) replaceCA(ctx context.Context) {
	GinkgoHelper()
	next := d.getCAs(ctx, d.names.CASecret)[1].SubjectKeyId
	Expect(next).NotTo(BeEmpty())
	d.shiftValidity(ctx)
	for _, secret := range []string{d.names.HeadTLS, d.names.WorkerTLS} {
		Eventually(ctx, func(ctx context.Context) []byte {
			chain, err := certutil.ParseCertsPEM(d.secret(ctx, secret).Data[corev1.TLSCertKey])
			Expect(err).NotTo(HaveOccurred())
			return chain[0].AuthorityKeyId
		}, podTimeout).Should(Equal(next), secret)
	}
}
