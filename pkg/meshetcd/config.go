package meshetcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// Config is what a client of etcd needs to know.
type Config struct {
	// Endpoints are URLs or host:port.
	Endpoints []string
	// Username and Password are used when both are set.
	Username, Password string
	// RootPrefix stands before every key.
	RootPrefix string
	// TLS is nil for plain text.
	TLS *tls.Config
	// DialTimeout limits every request but a watch, and the start of a watch.
	DialTimeout time.Duration
	// Options are added to those that every connection has.
	Options []grpc.DialOption
}

// dialTimeout is how long etcd may take to answer.
const dialTimeout = 10 * time.Second

// ConfigOf reads the data of the Secret.
func ConfigOf(data map[string][]byte) (Config, error) {
	connection, err := Parse(data)
	if err != nil {
		return Config{}, err
	}
	config := Config{
		Endpoints: connection.URLs(), Username: connection.UserID, Password: connection.Password,
		RootPrefix: connection.RootPrefix, DialTimeout: dialTimeout,
	}
	material, err := connection.Material(data)
	if err != nil {
		return Config{}, err
	}
	if config.TLS, err = material.config(connection.secured()); err != nil {
		return Config{}, err
	}
	if connection.OverrideAuthority != "" {
		config.Options = append(config.Options, grpc.WithAuthority(connection.OverrideAuthority))
	}
	return config, nil
}

// secured tells whether an endpoint asks for TLS.
func (c Connection) secured() bool {
	for _, endpoint := range c.URLs() {
		if strings.HasPrefix(endpoint, "https://") {
			return true
		}
	}
	return false
}

// config returns nil where nothing asks for TLS. Without a CA, those of the system are trusted.
func (m Material) config(asked bool) (*tls.Config, error) {
	if !asked && m.CA == nil && m.Certificate == nil {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(m.CA) {
			return nil, errors.New("certificate/certificate_file has no certificate in PEM form")
		}
	}
	if m.Certificate != nil {
		pair, err := tls.X509KeyPair(m.Certificate, m.Key)
		if err != nil {
			return nil, fmt.Errorf("could not load client key pair: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
