package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
)

// Target is the address of the mesh of a namespace and the credentials of its client.
type Target struct {
	// Service is the name of the Service of the runtime pods.
	Service string
	// Port is the gRPC port of the Service. RESTPort is its HTTP port, 0 without the REST proxy.
	Port, RESTPort int32
	// Endpoint is a gRPC target (`host:port`, `dns:///host:port`) to call instead of the Service. It is meant for development and does not change
	// URLs.
	Endpoint string
	// TLS is the key pair of the client; nil for plain text.
	TLS *KeyPair
}

// KeyPair is the content of a TLS Secret. The client presents the certificate and trusts it, because the servers use the same certificate. It
// also trusts the CAs of the system and the CA, if set, because some pods still use the previous certificate after a rotation.
type KeyPair struct {
	// Secret is the name of the Secret for error messages.
	Secret string
	// Certificate, Key and CA are PEM-encoded.
	Certificate, Key, CA []byte
}

// ParseKeyPair returns the key pair in the data of a Secret. Its errors name the Secret.
func ParseKeyPair(name string, data map[string][]byte) (*KeyPair, error) {
	pair := &KeyPair{Secret: name, Certificate: data["tls.crt"], Key: data["tls.key"], CA: data["ca.crt"]}
	if len(pair.Certificate) == 0 || len(pair.Key) == 0 {
		return nil, fmt.Errorf("TLS secret '%s' missing tls.crt and/or tls.key", name)
	}
	if _, err := pair.tlsConfig(""); err != nil {
		return nil, err
	}
	return pair, nil
}

// tlsConfig returns the client configuration for a server of the given name.
func (p *KeyPair) tlsConfig(server string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS secret '%s': could not load client key pair: %w", p.Secret, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(p.Certificate) || len(p.CA) > 0 && !roots.AppendCertsFromPEM(p.CA) {
		return nil, fmt.Errorf("TLS secret '%s': failed to append ca certs: put a PEM certificate into ca.crt, or remove the key", p.Secret)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: server, MinVersion: tls.VersionTLS12}, nil
}

// URLs returns the URLs for inference requests in a namespace.
func (t Target) URLs(namespace string) (grpc, http string) {
	host := t.authority(namespace)
	grpc = "grpc://" + host + ":" + strconv.Itoa(int(t.Port))
	if t.RESTPort == 0 {
		return grpc, ""
	}
	scheme := "http://"
	if t.TLS != nil {
		scheme = "https://"
	}
	return grpc, scheme + host + ":" + strconv.Itoa(int(t.RESTPort))
}

// authority returns the name that the server certificate must contain.
func (t Target) authority(namespace string) string { return t.Service + "." + namespace }
