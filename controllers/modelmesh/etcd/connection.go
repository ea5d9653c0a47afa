// Package etcd knows the Secret with which ModelMesh and its controller reach etcd.
package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Key is the key of the Secret under which the connection is written, as JSON.
const ConnectionKey = "etcd_connection"

// Connection is the document under Key. The order of its members is the one in which copies are written.
type Connection struct {
	// Endpoints are URLs, separated by commas. The first with https:// turns TLS on for all of them.
	Endpoints string `json:"endpoints"`
	UserID    string `json:"userid,omitempty"`
	Password  string `json:"password,omitempty"`
	// RootPrefix stands before every key.
	RootPrefix string `json:"root_prefix,omitempty"`
	// Certificate is the CA as PEM, CertificateFile the name of another key of the Secret, which wins; likewise below.
	Certificate           string `json:"certificate,omitempty"`
	CertificateFile       string `json:"certificate_file,omitempty"`
	ClientKey             string `json:"client_key,omitempty"`
	ClientKeyFile         string `json:"client_key_file,omitempty"`
	ClientCertificate     string `json:"client_certificate,omitempty"`
	ClientCertificateFile string `json:"client_certificate_file,omitempty"`
	// OverrideAuthority replaces the name that the certificate of the server must have.
	OverrideAuthority string `json:"override_authority,omitempty"`
}

// Parse reads the connection from the data of the Secret. An error shows nothing of what stands in it.
func Parse(data map[string][]byte) (Connection, error) {
	var c Connection
	raw, found := data[ConnectionKey]
	if !found {
		return c, fmt.Errorf("key %s is missing; write the connection under it as JSON", ConnectionKey)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("key %s is not the JSON of a connection: %w", ConnectionKey, redactValues(err))
	}
	return c, nil
}

// withoutValues drops what an error quotes of a document that has passwords in it.
func redactValues(err error) error {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Errorf("%s is a %s", mistyped.Field, strings.Fields(mistyped.Value + " value")[0])
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("it breaks at byte %d", syntax.Offset)
	}
	return errors.New("it cannot be read")
}

// URLs returns the endpoints one by one.
func (c Connection) URLs() []string {
	var out []string
	for part := range strings.SplitSeq(c.Endpoints, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Files returns the other keys of the Secret that the connection needs, ordered.
func (c Connection) Files() []string {
	out := []string{c.CertificateFile, c.ClientKeyFile, c.ClientCertificateFile}
	out = slices.DeleteFunc(out, func(name string) bool { return name == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// Material is what TLS needs, as PEM. Nil is none.
type TLSMaterial struct {
	CA, Key, Certificate []byte
}

// Material collects the certificates from the connection and the other keys of its Secret.
func (c Connection) Material(data map[string][]byte) (TLSMaterial, error) {
	var m TLSMaterial
	for _, part := range []struct {
		into                *[]byte
		inline, file, named string
	}{
		{&m.CA, c.Certificate, c.CertificateFile, "TLS certificate"},
		{&m.Key, c.ClientKey, c.ClientKeyFile, "TLS key"},
		{&m.Certificate, c.ClientCertificate, c.ClientCertificateFile, "TLS client certificate"},
	} {
		switch {
		case part.file != "":
			content, found := data[part.file]
			if !found {
				return m, fmt.Errorf("referenced %s secret key not found: %s", part.named, part.file)
			}
			*part.into = content
		case part.inline != "":
			*part.into = []byte(part.inline)
		}
	}
	if (m.Key == nil) != (m.Certificate == nil) {
		return m, errors.New("need to set both client_key/client_key_file and client_certificate/client_certificate_file")
	}
	return m, nil
}

// dialTimeout is how long etcd may take to answer, or to start a watch.
const dialTimeout = 10 * time.Second

// ConfigOf reads the data of the Secret: what a client needs, and the prefix of every key.
func ConfigOf(data map[string][]byte) (config clientv3.Config, rootPrefix string, err error) {
	connection, err := Parse(data)
	if err != nil {
		return config, "", err
	}
	if len(connection.URLs()) == 0 {
		return config, "", fmt.Errorf("key %s names no endpoints; write the URLs of etcd, separated by commas", ConnectionKey)
	}
	material, err := connection.Material(data)
	if err != nil {
		return config, "", err
	}
	config = clientv3.Config{
		Endpoints: connection.URLs(), Username: connection.UserID, Password: connection.Password, DialTimeout: dialTimeout,
	}
	if config.TLS, err = material.tlsConfig(slices.ContainsFunc(connection.URLs(), isHTTPS)); err != nil {
		return config, "", err
	}
	if connection.OverrideAuthority != "" {
		config.DialOptions = append(config.DialOptions, grpc.WithAuthority(connection.OverrideAuthority))
	}
	return config, connection.RootPrefix, nil
}

// isHTTPS tells whether an endpoint asks for TLS.
func isHTTPS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// config returns nil where nothing asks for TLS. Without a CA, those of the system are trusted.
func (m TLSMaterial) tlsConfig(asked bool) (*tls.Config, error) {
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
