package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// servingCertificate supplies the TLS Secret of a Service, which on OpenShift the platform makes.
func servingCertificate(service, secret string) supplier {
	return func(namespace string, now time.Time) (*corev1.Secret, string, error) {
		certificate, key, err := cluster.SelfSigned(service, namespace, now)
		if err != nil {
			return nil, "", fmt.Errorf("making the certificate for Secret %s: %w", secret, err)
		}
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		}, "a self-signed certificate of Service " + service + ", which on plain Kubernetes the user supplies", nil
	}
}
