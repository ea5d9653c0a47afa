package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

func testStore(t *testing.T) Store {
	t.Helper()
	dir := t.TempDir()
	return Store{Content: filepath.Join(dir, "content"), Names: filepath.Join(dir, "names")}
}

func get(t *testing.T, server *httptest.Server, path string) (*http.Response, []byte) {
	t.Helper()
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

func pull(t *testing.T, server *httptest.Server, path string) (m manifest, digest string) {
	t.Helper()
	response, body := get(t, server, path)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != manifestType {
		t.Fatalf("%s: unexpected status %s or content type %s", path, response.Status, response.Header.Get("Content-Type"))
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	return m, response.Header.Get("Docker-Content-Digest")
}

func TestPackAndPull(t *testing.T) {
	store := testStore(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	base, err := store.Layer(t.Context(), "base", func(w io.Writer) error {
		return writeArchive(w, []File{{Target: "/etc/motd", Content: "hello", Mode: 0o644}})
	})
	if err != nil {
		t.Fatal(err)
	}
	image := Image{
		Layers:  []Digest{base},
		Files:   []File{{Target: "/data/", Mode: 0o1777}, {Target: "/program", Source: program, Mode: 0o755, UID: 26}},
		Process: Process{User: "65532:65532", Entrypoint: []string{"/program"}},
	}
	if err := store.Pack(image, "quay.io/a/b:1", "docker.io/library/b:latest"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(store)
	defer server.Close()

	m, digest := pull(t, server, "/v2/a/b/manifests/1?ns=quay.io")
	if _, other := pull(t, server, "/v2/library/b/manifests/latest?ns=docker.io"); other != digest {
		t.Errorf("the second name has digest %s, want %s", other, digest)
	}
	if _, same := pull(t, server, "/v2/a/b/manifests/"+digest+"?ns=quay.io"); same != digest {
		t.Errorf("pulling %s by digest returned %s, want %s", digest, same, digest)
	}
	_, body := get(t, server, "/v2/a/b/blobs/"+string(m.Config.Digest)+"?ns=quay.io")
	var config configuration
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.RootFS.Diffs) != 2 || config.RootFS.Diffs[0] != base || config.Config.User != "65532:65532" {
		t.Errorf("got configuration %s, want two layers and the user", body)
	}
	_, body = get(t, server, "/v2/a/b/blobs/"+string(m.Layers[1].Digest)+"?ns=quay.io")
	if int64(len(body)) != m.Layers[1].Size {
		t.Errorf("got %d bytes of the layer, want %d", len(body), m.Layers[1].Size)
	}
	in := tar.NewReader(bytes.NewReader(body))
	folder, err := in.Next()
	if err != nil || folder.Name != "data/" || folder.Typeflag != tar.TypeDir || folder.Mode != 0o1777 {
		t.Errorf("got first entry %+v, error %v, want folder data/", folder, err)
	}
	file, err := in.Next()
	if err != nil || file.Name != "program" || file.Mode != 0o755 || file.Uid != 26 || file.Size != 6 {
		t.Errorf("got second entry %+v, error %v, want file program", file, err)
	}
}

func TestUnknownNamesReturnNotFound(t *testing.T) {
	server := httptest.NewServer(testStore(t))
	defer server.Close()
	for _, path := range []string{"/v2/a/b/manifests/1?ns=quay.io", "/v2/a/b/manifests/sha256:00?ns=quay.io", "/v2/a/b/blobs/sha256:00"} {
		if response, _ := get(t, server, path); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %s, want 404", path, response.Status)
		}
	}
	if response, _ := get(t, server, "/v2/"); response.StatusCode != http.StatusOK {
		t.Errorf("the version check returned %s, want 200", response.Status)
	}
}

func TestConcurrentLayersRunRecipeOnce(t *testing.T) {
	store := testStore(t)
	var runs atomic.Int32
	var group errgroup.Group
	for range 3 {
		group.Go(func() error {
			_, err := store.Layer(t.Context(), "key", func(w io.Writer) error {
				runs.Add(1)
				return writeArchive(w, []File{{Target: "a", Content: "b"}})
			})
			return err
		})
	}
	if err := group.Wait(); err != nil || runs.Load() != 1 {
		t.Errorf("the recipe ran %d times, error %v, want once", runs.Load(), err)
	}
}

func TestLayerIsCached(t *testing.T) {
	store, runs := testStore(t), 0
	recipe := func(w io.Writer) error {
		runs++
		return writeArchive(w, []File{{Target: "a", Content: "b"}})
	}
	first, err := store.Layer(t.Context(), "key", recipe)
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Layer(t.Context(), "key", recipe)
	if err != nil || second != first || runs != 1 {
		t.Errorf("got layers %s and %s after %d runs, error %v, want the same layer after one run", first, second, runs, err)
	}
	if err := os.Remove(store.blob(first)); err != nil {
		t.Fatal(err)
	}
	if third, err := store.Layer(t.Context(), "key", recipe); err != nil || third != first || runs != 2 {
		t.Errorf("got layer %s after %d runs, error %v, want it built again", third, runs, err)
	}
}
