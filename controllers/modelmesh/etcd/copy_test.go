package etcd

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Copy adds the prefix of the namespace and keeps the other known fields of the connection.
func TestCopy(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"minimal":     {`{"endpoints":"http://10.0.0.10:2379"}`, `{"endpoints":"http://10.0.0.10:2379","root_prefix":"/mm_ns/vision"}`},
		"no endpoint": {`{}`, `{"endpoints":"","root_prefix":"/mm_ns/vision"}`},
		"all inline fields": {
			`{"override_authority":"a","client_certificate":"c","client_key":"k","certificate":"ca","root_prefix":"modelmesh-serving","password":"p","userid":"root","endpoints":"https://etcd.example.com:2379"}`,
			`{"endpoints":"https://etcd.example.com:2379","userid":"root","password":"p","root_prefix":"modelmesh-serving/mm_ns/vision","certificate":"ca","client_key":"k","client_certificate":"c","override_authority":"a"}`,
		},
		"unknown fields": {`{"endpoints":"http://a.b:1","other":1}`, `{"endpoints":"http://a.b:1","root_prefix":"/mm_ns/vision"}`},
	} {
		data, err := Copy(map[string][]byte{ConnectionKey: []byte(c.source), "other": []byte("x")}, "modelmesh-serving", "vision", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{ConnectionKey: c.want}, toStrings(data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func toStrings(data map[string][]byte) map[string]string {
	result := map[string]string{}
	for key, value := range data {
		result[key] = string(value)
	}
	return result
}

// qualifyHosts adds the operator's namespace to names of Services and keeps addresses, qualified names and localhost. [O1]
func TestQualifyHosts(t *testing.T) {
	for endpoints, want := range map[string]string{
		"http://etcd:2379":                     "http://etcd.mesh:2379",
		"http://my-service:2379":               "http://my-service.mesh:2379",
		"https://etcd":                         "https://etcd.mesh",
		"etcd:2379":                            "etcd.mesh:2379",
		"http://etcd/path":                     "http://etcd.mesh/path",
		"http://a:1,https://b.c:2,http://s:3":  "http://a.mesh:1,https://b.c:2,http://s.mesh:3",
		"http://a:1, http://b:2":               "http://a.mesh:1, http://b.mesh:2",
		"etcd-0:1, etcd-1:2":                   "etcd-0.mesh:1, etcd-1.mesh:2",
		" fd00::1":                             " fd00::1",
		"http://etcd.other.svc:2379":           "http://etcd.other.svc:2379",
		"http://10.0.0.1:2379":                 "http://10.0.0.1:2379",
		"http://[fd00::1]:2379":                "http://[fd00::1]:2379",
		"fd00::1":                              "fd00::1",
		"http://localhost:2379":                "http://localhost:2379",
		"http://ssss:2379":                     "http://ssss.mesh:2379",
		"":                                     "",
		"http://":                              "http://",
		"http://etcd.:2379":                    "http://etcd.:2379",
		"https://etcd.mesh:2379,http://x.y:80": "https://etcd.mesh:2379,http://x.y:80",
	} {
		if got := qualifyHosts(endpoints, "mesh"); got != want {
			t.Errorf("%s became %s, want %s", endpoints, got, want)
		}
	}
}

// Copy keeps only the keys that the connection refers to. [M30]
func TestCopyReferencedFiles(t *testing.T) {
	source := map[string][]byte{
		ConnectionKey: []byte(`{"endpoints":"https://etcd:2379","certificate_file":"ca.pem","client_key_file":"key.pem","client_certificate_file":"cert.pem"}`),
		"ca.pem":      []byte("CA"), "key.pem": []byte("KEY"), "cert.pem": []byte("CERT"), "other": []byte("x"),
	}
	data, err := Copy(source, "mesh", "vision", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ca.pem", "cert.pem", ConnectionKey, "key.pem"}, slices.Sorted(maps.Keys(data))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for missing, want := range map[string]string{
		"ca.pem":   "referenced TLS certificate secret key not found: ca.pem",
		"key.pem":  "referenced TLS key secret key not found: key.pem",
		"cert.pem": "referenced TLS client certificate secret key not found: cert.pem",
	} {
		incomplete := maps.Clone(source)
		delete(incomplete, missing)
		if _, err := Copy(incomplete, "mesh", "vision", nil); err == nil || err.Error() != want {
			t.Errorf("Copy without %s returned error %v, want %q", missing, err, want)
		}
	}
}

// Errors about an invalid connection contain none of its values.
func TestCopyErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"password":"hidden"`:                "invalid JSON at byte",
		`{"endpoints":{"password":"hidden"}}`: ": endpoints has type object: write a JSON object",
		`{"endpoints":4711,"x":"hidden"}`:     ": endpoints has type number: write a JSON object",
		`"hidden"`:                            ": the document has type string: write a JSON object",
		`["hidden"]`:                          ": the document has type array: write a JSON object",
		`hidden`:                              "invalid JSON at byte",
		``:                                    "invalid JSON at byte",
	} {
		_, err := Copy(map[string][]byte{ConnectionKey: []byte(text)}, "mesh", "vision", nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ConnectionKey) {
			t.Errorf("%s: unexpected error: %v", text, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "4711")) {
			t.Errorf("%s: the error contains a value: %v", text, err)
		}
	}
	if _, err := Copy(nil, "mesh", "vision", nil); err == nil || !strings.Contains(err.Error(), "key etcd_connection is missing") {
		t.Errorf("error %v, want one with the missing key", err)
	}
}

// FuzzCopy checks that Copy changes only the endpoints and the root prefix, that qualifyHosts is idempotent, and that neither panics.
func FuzzCopy(f *testing.F) {
	f.Add(`{"endpoints":"http://etcd:2379","root_prefix":"a","password":"p"}`, "http://[::1]:2379,x")
	f.Add(`{`, "a,b,,://,:,[")
	f.Fuzz(func(t *testing.T, text, endpoints string) {
		if got := qualifyHosts(endpoints, "ns"); strings.Count(got, ",") != strings.Count(endpoints, ",") || len(got) < len(endpoints) {
			t.Errorf("%q became %q", endpoints, got)
		}
		if once := qualifyHosts(endpoints, "ns"); qualifyHosts(once, "ns") != once {
			t.Errorf("qualifyHosts is not idempotent for %q", endpoints)
		}
		data, err := Copy(map[string][]byte{ConnectionKey: []byte(text)}, "mesh", "vision", nil)
		if err != nil {
			return
		}
		var source, copied Connection
		if json.Unmarshal([]byte(text), &source) != nil || json.Unmarshal(data[ConnectionKey], &copied) != nil {
			t.Fatalf("%q became %q", text, data[ConnectionKey])
		}
		source.RootPrefix += "/mm_ns/vision"
		source.Endpoints = copied.Endpoints
		if diff := cmp.Diff(source, copied); diff != "" {
			t.Errorf("-source +copy:\n%s", diff)
		}
	})
}
