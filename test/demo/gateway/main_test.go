package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newServer returns a server that requires the token `right` and responds with the host and path of the request.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, r.Host, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestHandlerSendsPasswordAsToken(t *testing.T) {
	server := newServer(t)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	gateway := handler(target, server.Client().Transport)
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "right": http.StatusOK} {
		request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/page", http.NoBody)
		if password != "" {
			request.SetBasicAuth("any", password)
		}
		response := httptest.NewRecorder()
		gateway.ServeHTTP(response, request)
		challenged := strings.HasPrefix(response.Header().Get("WWW-Authenticate"), "Basic ")
		if response.Code != want || challenged != (want == http.StatusUnauthorized) {
			t.Errorf("password %q: got status %d, header %v, want %d", password, response.Code, response.Header(), want)
		}
		if body := response.Body.String(); want == http.StatusOK && body != target.Host+"/page" {
			t.Errorf("the server received %q, want its host and the path", body)
		}
	}
}

func TestRunRejectsInvalidFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid := write("valid", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newServer(t).Certificate().Raw}))
	for problem, c := range map[string]struct{ listen, server, authority string }{
		"reading the URL":            {"127.0.0.1:0", "://", valid},
		"reading the CA certificate": {"127.0.0.1:0", "https://a", filepath.Join(dir, "none")},
		"has no certificate":         {"127.0.0.1:0", "https://a", write("invalid", []byte("text"))},
		"listen":                     {"127.0.0.1:-1", "https://a", valid},
	} {
		if err := run(c.listen, c.server, "127.0.0.1:1", c.authority); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got error %v, want %q in it", err, problem)
		}
	}
}
