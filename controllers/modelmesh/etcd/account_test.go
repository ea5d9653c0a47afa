package etcd

import (
	"strings"
	"testing"
)

// An account depends on the connection, the namespace and its UID only.
func TestNewAccount(t *testing.T) {
	source := func(text string) map[string][]byte { return map[string][]byte{ConnectionKey: []byte(text)} }
	const rootConnection = `{"endpoints":"http://etcd:2379","root_prefix":"models","userid":"root","password":"secret"}`
	account := func(text, namespace, uid string) Account {
		a, err := NewAccount(source(text), namespace, uid)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := account(rootConnection, "team", "1")
	if first.Name != "modelmesh-team" || first.Prefix != "models/mm_ns/team" || len(first.Password) != 64 || strings.Contains(first.Password, "secret") {
		t.Errorf("account %+v, want the user, prefix and generated password of the namespace", first)
	}
	if first != account(rootConnection, "team", "1") {
		t.Error("the account differs for equal input")
	}
	for description, other := range map[string]Account{
		"recreated namespace": account(rootConnection, "team", "2"), "another password": account(strings.Replace(rootConnection, "secret", "other", 1), "team", "1"),
		"another namespace": account(rootConnection, "other", "1"), "namespace and UID with the same concatenation": account(rootConnection, "team1", ""),
	} {
		if other.Password == first.Password {
			t.Errorf("%s: the password is the same", description)
		}
	}
	data, err := Copy(source(rootConnection), "own", "team", &first)
	copied, parseErr := Parse(data)
	if err != nil || parseErr != nil || copied.UserID != first.Name || copied.Password != first.Password || copied.RootPrefix != first.Prefix {
		t.Errorf("connection %+v, errors %v and %v, want the account in the copy", copied, err, parseErr)
	}
}

func TestNewAccountErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"endpoints":"e"}`:                 "userid or password is empty",
		`{"endpoints":"e","userid":"root"}`: "userid or password is empty",
		`{"endpoints":"e","userid":"root","password":"p","client_certificate_file":"c","client_key_file":"k"}`: "client certificate",
		`{"endpoints":"e","userid":"root","password":"p","client_certificate":"c","client_key":"k"}`:           "client certificate",
		`{"endpoints":"e","userid":"modelmesh-team","password":"p"}`:                                           "userid modelmesh-team is the name of the user for namespace team",
		`none`: "not the JSON",
	} {
		if _, err := NewAccount(map[string][]byte{ConnectionKey: []byte(text)}, "team", "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
