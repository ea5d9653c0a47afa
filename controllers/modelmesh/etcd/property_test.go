package etcd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzSecrets checks that any Secret results in a client or in an error without the password.
func FuzzSecrets(f *testing.F) {
	f.Add(`{"endpoints":"http://etcd:2379","root_prefix":"r"}`, "ca.crt", "PEM")
	f.Add(`{"endpoints":"https://a,b","certificate_file":"ca.crt","password":"very-secret"}`, "ca.crt", "-----BEGIN CERTIFICATE-----\n")
	f.Add(`{"endpoints":"%zz://:::","client_key":"a","client_certificate":"b"}`, "", "")
	f.Add(`[]`, "x", "y")
	f.Fuzz(func(t *testing.T, document, file, content string) {
		data := map[string][]byte{ConnectionKey: []byte(document)}
		if file != ConnectionKey {
			data[file] = []byte(content)
		}
		c, err := New(data)
		if err == nil {
			if c.config.Password == "" { // with a password connect would log in to etcd
				_, _ = c.connect(t.Context()) // the address may still be invalid
			}
			if err := c.Close(); err != nil || len(c.config.Endpoints) == 0 {
				t.Errorf("closing: %v; endpoints %v", err, c.config.Endpoints)
			}
			return
		}
		var connection Connection
		if json.Unmarshal([]byte(document), &connection) == nil && len(connection.Password) > 8 && strings.Contains(err.Error(), connection.Password) &&
			!strings.Contains(connection.CertificateFile+connection.ClientKeyFile+connection.ClientCertificateFile, connection.Password) {
			t.Errorf("the error contains the password: %q", err)
		}
	})
}

// Material uses an inline value only if the connection names no key of the Secret for it.
func TestMaterialSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := map[string][]byte{}
		drawSource := func(name string) (inline, file, want string) {
			if rapid.Bool().Draw(t, name+" inline") {
				inline, want = name+" inline", name+" inline"
			}
			if rapid.Bool().Draw(t, name+" file") {
				file, want = name+".pem", name+" file"
				data[file] = []byte(want)
			}
			return inline, file, want
		}
		var c Connection
		var ca, key, certificate string
		c.Certificate, c.CertificateFile, ca = drawSource("ca")
		c.ClientKey, c.ClientKeyFile, key = drawSource("key")
		c.ClientCertificate, c.ClientCertificateFile, certificate = drawSource("certificate")
		var files []string
		for name := range data {
			files = append(files, name)
		}
		slices.Sort(files)
		if got := c.Files(); !slices.Equal(got, files) {
			t.Fatalf("files %v, want %v", got, files)
		}
		m, err := c.Material(data)
		if (key == "") != (certificate == "") {
			if err == nil {
				t.Fatal("Material accepted a key without a certificate, or the reverse")
			}
			return
		}
		if err != nil || string(m.CA) != ca || string(m.Key) != key || string(m.Certificate) != certificate {
			t.Fatalf("material %q, error %v", m, err)
		}
		for _, name := range files {
			content := data[name]
			delete(data, name)
			if _, err := c.Material(data); err == nil || !strings.Contains(err.Error(), "secret key not found: "+name) {
				t.Fatalf("without %s: error %v", name, err)
			}
			data[name] = content
		}
	})
}

// Parse decodes the JSON of a connection to the same connection, and empty fields are omitted.
func TestConnectionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z/<>&"]{0,6}`)
		c := Connection{
			Endpoints: "http://" + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "host") + ":2379", UserID: word.Draw(t, "user"), Password: word.Draw(t, "password"),
			RootPrefix: word.Draw(t, "prefix"), Certificate: word.Draw(t, "ca"), OverrideAuthority: word.Draw(t, "authority"),
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(map[string][]byte{ConnectionKey: raw})
		if err != nil || got != c {
			t.Fatalf("%s was parsed as %+v, error %v, want %+v", raw, got, err, c)
		}
		if strings.Contains(string(raw), `""`) && !strings.Contains(c.Certificate+c.Password+c.RootPrefix+c.UserID+c.OverrideAuthority, `"`) {
			t.Fatalf("%s has empty fields", raw)
		}
	})
}
