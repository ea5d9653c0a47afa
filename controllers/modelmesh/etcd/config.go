package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// dialTimeout is how long etcd may take to answer, or to start a watch.
const dialTimeout = 10 * time.Second

// ConfigOf reads the data of the Secret: what a client needs, and the prefix of every key.
func ConfigOf(data map[string][]byte) (config clientv3.Config, rootPrefix string, err error) {
	connection, err := Parse(data)
	if err != nil {
		return config, "", err
	}
	if len(connection.URLs()) == 0 {
		return config, "", fmt.Errorf("key %s names no endpoints; write the URLs of etcd, separated by commas", Key)
	}
	material, err := connection.Material(data)
	if err != nil {
		return config, "", err
	}
	config = clientv3.Config{
		Endpoints: connection.URLs(), Username: connection.UserID, Password: connection.Password, DialTimeout: dialTimeout,
	}
	if config.TLS, err = material.config(connection.secured()); err != nil {
		return config, "", err
	}
	if connection.OverrideAuthority != "" {
		config.DialOptions = append(config.DialOptions, grpc.WithAuthority(connection.OverrideAuthority))
	}
	return config, connection.RootPrefix, nil
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
