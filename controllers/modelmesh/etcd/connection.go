// Package etcd reads and copies the etcd Secret of ModelMesh, and provides the etcd client of its controller.
package etcd

import (
	"cmp"
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

// ConnectionKey is the key of the Secret that holds the connection as JSON.
const ConnectionKey = "etcd_connection"

// Connection is the JSON document under ConnectionKey. The copies of the Secret in model namespaces have the fields in this order.
type Connection struct {
	// Endpoints are comma-separated URLs. Clients use the scheme of one of them for all, see Material.
	Endpoints string `json:"endpoints"`
	UserID    string `json:"userid,omitempty"`
	Password  string `json:"password,omitempty"`
	// RootPrefix is the prefix of all keys.
	RootPrefix string `json:"root_prefix,omitempty"`
	// Certificate is the CA as PEM. CertificateFile is a key of the Secret with the CA and takes precedence. The client key and the client
	// certificate have such a pair of fields too.
	Certificate           string `json:"certificate,omitempty"`
	CertificateFile       string `json:"certificate_file,omitempty"`
	ClientKey             string `json:"client_key,omitempty"`
	ClientKeyFile         string `json:"client_key_file,omitempty"`
	ClientCertificate     string `json:"client_certificate,omitempty"`
	ClientCertificateFile string `json:"client_certificate_file,omitempty"`
	// OverrideAuthority replaces the expected name in the server certificate.
	OverrideAuthority string `json:"override_authority,omitempty"`
}

// Parse decodes the connection in the data of the Secret. Its errors contain no values of the Secret.
func Parse(data map[string][]byte) (Connection, error) {
	var connection Connection
	raw, found := data[ConnectionKey]
	if !found {
		return connection, fmt.Errorf("key %s is missing; write the connection under it as JSON", ConnectionKey)
	}
	if err := json.Unmarshal(raw, &connection); err != nil {
		return connection, fmt.Errorf("key %s is not the JSON of a connection: %w", ConnectionKey, redactValues(err))
	}
	return connection, nil
}

// redactValues removes the values that an error of the decoder quotes.
func redactValues(err error) error {
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		jsonType := strings.Fields(mistyped.Value + " value")[0]
		return fmt.Errorf("%s has type %s: write a JSON object with string values", cmp.Or(mistyped.Field, "the document"), jsonType)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d: correct the syntax", syntax.Offset)
	}
	return errors.New("write a JSON object")
}

// URLs returns the endpoints.
func (c Connection) URLs() []string {
	var urls []string
	for part := range strings.SplitSeq(c.Endpoints, ",") {
		if part = strings.TrimSpace(part); part != "" {
			urls = append(urls, part)
		}
	}
	return urls
}

// Files returns the keys of the Secret that the connection refers to, sorted.
func (c Connection) Files() []string {
	files := []string{c.CertificateFile, c.ClientKeyFile, c.ClientCertificateFile}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "" })
	slices.Sort(files)
	return slices.Compact(files)
}

// TLSMaterial holds PEM data for TLS; nil fields are unset.
type TLSMaterial struct {
	CA, Key, Certificate []byte
}

// Material returns the CA, the client certificate and the client key, each inline or from the key of the Secret that the connection names.
// It returns an error if endpoints have http:// and https://, because clients could then connect to all of them without TLS.
func (c Connection) Material(data map[string][]byte) (TLSMaterial, error) {
	var material TLSMaterial
	for _, source := range []struct {
		into                      *[]byte
		inline, file, description string
	}{
		{&material.CA, c.Certificate, c.CertificateFile, "TLS certificate"},
		{&material.Key, c.ClientKey, c.ClientKeyFile, "TLS key"},
		{&material.Certificate, c.ClientCertificate, c.ClientCertificateFile, "TLS client certificate"},
	} {
		switch {
		case source.file != "":
			content, found := data[source.file]
			if !found {
				return material, fmt.Errorf("referenced %s secret key not found: %s", source.description, source.file)
			}
			*source.into = content
		case source.inline != "":
			*source.into = []byte(source.inline)
		}
	}
	if (material.Key == nil) != (material.Certificate == nil) {
		missing := "client_key"
		if material.Certificate == nil {
			missing = "client_certificate"
		}
		return material, fmt.Errorf("need to set both client_key/client_key_file and client_certificate/client_certificate_file: add %[1]s or %[1]s_file", missing)
	}
	urls := c.URLs()
	if i := slices.IndexFunc(urls, isHTTP); i >= 0 && slices.ContainsFunc(urls, isHTTPS) {
		return material, fmt.Errorf("endpoints has %s, but another endpoint has https://: write https:// for each endpoint", urls[i])
	}
	return material, nil
}

// requestTimeout limits the time until etcd answers a list request or starts a watch. It is also the DialTimeout of the client.
const requestTimeout = 10 * time.Second

// ConfigOf returns the client configuration and the key prefix for the data of the Secret.
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
		Endpoints: connection.URLs(), Username: connection.UserID, Password: connection.Password, DialTimeout: requestTimeout,
	}
	if !slices.ContainsFunc(connection.URLs(), isHTTP) {
		if config.TLS, err = material.tlsConfig(slices.ContainsFunc(connection.URLs(), isHTTPS)); err != nil {
			return config, "", err
		}
	}
	if connection.OverrideAuthority != "" {
		config.DialOptions = append(config.DialOptions, grpc.WithAuthority(connection.OverrideAuthority))
	}
	return config, connection.RootPrefix, nil
}

func isHTTP(endpoint string) bool { return strings.HasPrefix(strings.ToLower(endpoint), "http://") }

func isHTTPS(endpoint string) bool { return strings.HasPrefix(strings.ToLower(endpoint), "https://") }

// tlsConfig returns nil if neither an endpoint nor a certificate requires TLS. Without a CA the system's CAs are used.
func (m TLSMaterial) tlsConfig(https bool) (*tls.Config, error) {
	if !https && m.CA == nil && m.Certificate == nil {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(m.CA) {
			return nil, errors.New("certificate/certificate_file has no certificate in PEM form: write one")
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
