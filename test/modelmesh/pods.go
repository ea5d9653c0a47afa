package modelmesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// serviceLabel is on the pods of all runtimes; its value is the name of their Service.
	serviceLabel       = "modelmesh-service"
	meshContainer      = "mm"
	constraintsName    = "tc-config"
	constraintsKey     = "type_constraints"
	etcdVolume         = "etcd-config"
	certificatesVolume = "tls-certs"
	grpcPort           = "grpc"
	clientAuthRequired = "require"
)

// container returns the container mm of a pod; nil without one.
func container(pod *corev1.Pod) *corev1.Container {
	index := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == meshContainer })
	if index < 0 {
		return nil
	}
	return &pod.Spec.Containers[index]
}

func variable(c *corev1.Container, name string) string {
	for _, v := range slices.Backward(c.Env) {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// secretOf returns the name of the Secret in a volume.
func secretOf(pod *corev1.Pod, volume string) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

// isReady reports whether a pod has the routing layer, is ready and is not being deleted.
func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && container(pod) != nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

// instanceOf returns the instance of a pod.
func instanceOf(pod *corev1.Pod) Instance {
	labels := strings.FieldsFunc(variable(container(pod), "MM_LABELS"), func(r rune) bool { return r == ',' })
	return Instance{ID: InstanceID(pod.Name), Labels: labels}
}

// grpcPortOf returns the gRPC port of a pod; 0 without one.
func grpcPortOf(pod *corev1.Pod) int32 {
	for _, port := range container(pod).Ports {
		if port.Name == grpcPort {
			return port.ContainerPort
		}
	}
	return 0
}

// serverTLS returns the TLS configuration of the gRPC port of a pod; nil without TLS.
func serverTLS(ctx context.Context, reader client.Reader, pod *corev1.Pod) (*tls.Config, error) {
	mm := container(pod)
	if variable(mm, "MM_TLS_KEY_CERT_PATH") == "" {
		return nil, nil
	}
	var secret corev1.Secret
	if err := reader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: secretOf(pod, certificatesVolume)}, &secret); err != nil {
		return nil, fmt.Errorf("reading the certificate of pod %s: %w", pod.Name, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of pod %s: %w", pod.Name, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if auth := variable(mm, "MM_TLS_CLIENT_AUTH"); auth != "" {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(secret.Data[corev1.TLSCertKey])
		config.ClientCAs.AppendCertsFromPEM(secret.Data["ca.crt"])
		config.ClientAuth = tls.VerifyClientCertIfGiven
		if auth == clientAuthRequired {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return config, nil
}
