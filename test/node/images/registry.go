package images

import (
	"net/http"
	"path"
	"strings"
)

// ServeHTTP implements http.Handler: a mirror of every registry. Clients request `/v2/<name>/manifests/<reference>?ns=<host>`.
func (s Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/"), "/")
	if len(parts) < 3 { // the version check of the registry API
		w.WriteHeader(http.StatusOK)
		return
	}
	repository, kind, reference := path.Join(parts[:len(parts)-2]...), parts[len(parts)-2], parts[len(parts)-1]
	digest, ok := s.find(path.Join(r.URL.Query().Get("ns"), repository), reference)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`)) // an error means that the client has disconnected
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if kind == "manifests" {
		w.Header().Set("Content-Type", manifestType)
	}
	w.Header().Set("Docker-Content-Digest", string(digest))
	http.ServeFile(w, r, s.blob(digest))
}
