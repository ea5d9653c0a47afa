package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
)

// Target is what the client of a namespace talks to.
type Target struct {
	// Service before the runtime pods of the namespace.
	Service string
	// Port of the Service for gRPC, and RESTPort for HTTP, 0 without the REST proxy.
	Port, RESTPort int32
	// Endpoint replaces the Service as the place to talk to, in the words of gRPC (`host:port`, `dns:///host:port`). It is meant
	// for development; what users are shown does not change.
	Endpoint string
	// TLS has the key pair to talk with; nil is plain text.
	TLS *KeyPair
}

// KeyPair is the content of a TLS Secret. Its certificate is shown to the server and trusted, and so is the CA, where there is one:
// after a rotation some pods still have a certificate of the time before.
type KeyPair struct {
	// Secret is named in errors.
	Secret string
	// Certificate, Key and CA are PEM.
	Certificate, Key, CA []byte
}

// KeyPairOf reads the Secret of the given name. The error says which key it lacks.
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

// config returns the client side of TLS with a server of the given name.
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
		return nil, fmt.Errorf("TLS secret '%s': failed to append ca certs", p.Secret)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: server, MinVersion: tls.VersionTLS12}, nil
}

// Endpoints are the URLs at which users reach the models of a namespace with this target.
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

// authority is the name that the certificate of every pod must bear.
func (t Target) authority(namespace string) string { return t.Service + "." + namespace }
