package etcd

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewErrors(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"not JSON":        {"endpoints", "key etcd_connection is not the JSON of a connection"},
		"number":          {`{"endpoints":2379}`, "key etcd_connection is not the JSON of a connection"},
		"no endpoints":    {`{"userid":"root"}`, "key etcd_connection names no endpoints; write the URLs of etcd"},
		"blank endpoints": {`{"endpoints":" , "}`, "key etcd_connection names no endpoints"},
		"truncated JSON":  {`{"endpoints":"http://etcd:2379"`, "key etcd_connection is not the JSON of a connection"},
	} {
		if _, err := New(map[string][]byte{ConnectionKey: []byte(tc.document)}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	if _, err := New(nil); err == nil || !strings.Contains(err.Error(), "key etcd_connection is missing") {
		t.Errorf("error %v, want that the key is missing", err)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(map[string][]byte{ConnectionKey: []byte(`{
		"endpoints": "https://a:2379, https://b:2379,", "userid": "u", "password": "p", "root_prefix": "r",
		"certificate": "1", "certificate_file": "2", "client_key": "3", "client_key_file": "4", "client_certificate": "5",
		"client_certificate_file": "6", "override_authority": "7", "unknown_field": true}`)})
	must(t, err)
	want := Connection{
		Endpoints: "https://a:2379, https://b:2379,", UserID: "u", Password: "p", RootPrefix: "r", Certificate: "1", CertificateFile: "2",
		ClientKey: "3", ClientKeyFile: "4", ClientCertificate: "5", ClientCertificateFile: "6", OverrideAuthority: "7",
	}
	if got != want {
		t.Errorf("connection %+v, want %+v", got, want)
	}
	if !slices.Equal(got.URLs(), []string{"https://a:2379", "https://b:2379"}) || !slices.Equal(got.Files(), []string{"2", "4", "6"}) {
		t.Errorf("URLs %v, files %v", got.URLs(), got.Files())
	}
	got.ClientKeyFile = "2"
	if !slices.Equal(got.Files(), []string{"2", "6"}) || len(Connection{}.Files()) != 0 {
		t.Errorf("files %v", got.Files())
	}
	raw, err := json.Marshal(Connection{RootPrefix: "r"})
	if must(t, err); string(raw) != `{"endpoints":"","root_prefix":"r"}` {
		t.Errorf("JSON %s, want the empty endpoints and no other empty field", raw)
	}
}

// [modelmesh-46] [modelmesh-47]
func TestTLSConfigErrors(t *testing.T) {
	const endpoint = "https://etcd:2379"
	cert, key := certificate(t, "etcd")
	plainText := func(endpoint string) string {
		return "endpoints has " + endpoint + ", but another endpoint has https://: write https:// for each endpoint"
	}
	for name, tc := range map[string]struct {
		connection Connection
		files      map[string]string
		want       string
	}{
		"missing CA": {
			Connection{CertificateFile: "path/to/certificate"}, nil, "referenced TLS certificate secret key not found: path/to/certificate"},
		"missing key": {
			Connection{ClientKeyFile: "client.key", ClientCertificate: cert}, nil, "referenced TLS key secret key not found: client.key"},
		"missing certificate": {
			Connection{ClientKey: key, ClientCertificateFile: "client.crt"}, nil, "referenced TLS client certificate secret key not found: client.crt"},
		"key without certificate": {
			Connection{ClientKey: key}, nil,
			"need to set both client_key/client_key_file and client_certificate/client_certificate_file: add client_certificate or client_certificate_file"},
		"certificate without key": {
			Connection{ClientCertificateFile: "c"}, map[string]string{"c": cert},
			"need to set both client_key/client_key_file and client_certificate/client_certificate_file: add client_key or client_key_file"},
		"key pair that is not PEM": {
			Connection{ClientKey: "key", ClientCertificate: "certificate"}, nil,
			"could not load client key pair: tls: failed to find any PEM data in certificate input"},
		"CA that is not PEM": {
			Connection{Certificate: "certificate"}, nil, "certificate/certificate_file has no certificate in PEM form: write one"},
		"second is https": {Connection{Endpoints: "http://a:2379,https://b:2379"}, nil, plainText("http://a:2379")},
		"second is http":  {Connection{Endpoints: "https://a:2379, HTTP://b:2379"}, nil, plainText("HTTP://b:2379")},
	} {
		tc.connection.Endpoints = cmp.Or(tc.connection.Endpoints, endpoint)
		data := secret(t, tc.connection, tc.files)
		if _, _, err := ConfigOf(data); err == nil || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
		if _, err := New(data); err == nil || err.Error() != "failed to create etcd client config: "+tc.want {
			t.Errorf("%s: New returned error %v", name, err)
		}
		if _, err := Copy(data, "mesh", "vision", nil); err == nil && strings.HasPrefix(tc.want, "endpoints") {
			t.Errorf("%s: the pods would get a connection without TLS", name)
		}
	}
}

// [modelmesh-48]
func TestCertificateFileTakesPrecedence(t *testing.T) {
	inline, _ := certificate(t, "inline")
	file, _ := certificate(t, "file")
	config, _, err := ConfigOf(secret(t, Connection{
		Endpoints: "https://etcd:2379", UserID: "root", Password: "secret", Certificate: inline, CertificateFile: "ca.crt",
	}, map[string]string{"ca.crt": file}))
	must(t, err)
	want := x509.NewCertPool()
	want.AppendCertsFromPEM([]byte(file))
	if !config.TLS.RootCAs.Equal(want) || len(config.TLS.Certificates) != 0 {
		t.Errorf("TLS %+v, want only the CA of the file and no client certificate", config.TLS)
	}
	if config.Username != "root" || config.Password != "secret" || config.DialTimeout != 10*time.Second {
		t.Errorf("user %q, password %q, dial timeout %v", config.Username, config.Password, config.DialTimeout)
	}
}

// [modelmesh-49]
func TestClientCertificateFilesTakePrecedence(t *testing.T) {
	cert, key := certificate(t, "file")
	config, _, err := ConfigOf(secret(t, Connection{
		Endpoints: "https://etcd:2379", ClientKey: "no PEM", ClientKeyFile: "k", ClientCertificate: "no PEM", ClientCertificateFile: "c",
	}, map[string]string{"k": key, "c": cert}))
	must(t, err)
	if config.TLS == nil || len(config.TLS.Certificates) != 1 || config.TLS.Certificates[0].Leaf.DNSNames[0] != "file" {
		t.Errorf("TLS %+v, want TLS with the key pair of the files", config.TLS)
	}
	if config.TLS.RootCAs != nil {
		t.Error("RootCAs is set, want the system CAs")
	}
}

// [modelmesh-50]
func TestTLSConfig(t *testing.T) {
	ca, _ := certificate(t, "ca")
	for name, tc := range map[string]struct {
		connection Connection
		want       bool
	}{
		"https":     {Connection{Endpoints: "https://a:2379,https://b:2379"}, true},
		"http":      {Connection{Endpoints: "http://etcd:2379"}, false},
		"no scheme": {Connection{Endpoints: "etcd:2379"}, false},
		"CA":        {Connection{Endpoints: "etcd:2379", Certificate: ca}, true},
		"http, CA":  {Connection{Endpoints: "http://etcd:2379", Certificate: ca}, false},
	} {
		config, _, err := ConfigOf(secret(t, tc.connection, nil))
		must(t, err)
		if (config.TLS != nil) != tc.want {
			t.Errorf("%s: TLS %+v, want %t", name, config.TLS, tc.want)
		}
		if tc.want && (config.TLS.RootCAs == nil) == (tc.connection.Certificate != "") || tc.want && config.TLS.InsecureSkipVerify {
			t.Errorf("%s: TLS %+v, want the given CA or the system CAs", name, config.TLS)
		}
	}
}

// [modelmesh-51]
func TestOverrideAuthority(t *testing.T) {
	config, _, err := ConfigOf(secret(t, Connection{Endpoints: "https://etcd:2379", OverrideAuthority: "other"}, nil))
	must(t, err)
	if len(config.DialOptions) != 1 {
		t.Errorf("%d options, want 1", len(config.DialOptions))
	}
	if config, _, err = ConfigOf(secret(t, Connection{Endpoints: "https://etcd:2379"}, nil)); err != nil || len(config.DialOptions) != 0 {
		t.Errorf("%d options and error %v, want none", len(config.DialOptions), err)
	}
}

// [modelmesh-52]
func TestNewDoesNotConnect(t *testing.T) {
	cert, key := certificate(t, "client")
	c := dial(t, secret(t, Connection{Endpoints: "https://etcd.invalid:1", RootPrefix: "r", ClientKey: key, ClientCertificate: cert}, nil))
	if c.RootPrefix() != "r" {
		t.Errorf("prefix %q", c.RootPrefix())
	}
}
