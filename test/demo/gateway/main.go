// Command gateway is a proxy through which browsers on this machine access a server that requires a bearer token. It listens on
// the given address, which should be on loopback, requests basic authentication, and sends the password to the server as the token.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

const readHeaderTimeout = 10 * time.Second

func main() {
	listen := flag.String("listen", "", "address to listen on")
	server := flag.String("server", "", "URL of the server")
	address := flag.String("address", "", "address of the server, which is used instead of a DNS lookup")
	authority := flag.String("authority", "", "file with the CA certificate of the server")
	flag.Parse()
	log.Fatal(run(*listen, *server, *address, *authority))
}

func run(listen, server, address, authority string) error {
	target, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("reading the URL of the server: %w", err)
	}
	certificates, err := os.ReadFile(authority)
	if err != nil {
		return fmt.Errorf("reading the CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificates) {
		return fmt.Errorf("%s has no certificate", authority)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	gateway := &http.Server{Addr: listen, Handler: handler(target, transport), ReadHeaderTimeout: readHeaderTimeout}
	return gateway.ListenAndServe()
}

// handler forwards requests with a password to the server.
func handler(server *url.URL, transport http.RoundTripper) http.Handler {
	const header, challenge = "WWW-Authenticate", `Basic realm="any user name, with a token as the password"`
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			_, token, _ := r.In.BasicAuth()
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		// The token may be invalid or expired.
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusUnauthorized {
				r.Header.Set(header, challenge)
			}
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token, _ := r.BasicAuth(); token == "" {
			w.Header().Set(header, challenge)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
