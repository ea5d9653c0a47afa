package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

const (
	// maxBundleBytes is the limit of the compressed bundle. A bundle below a tenth of it lacks files.
	maxBundleBytes = 150_000
	// maxObjectBytes is the limit of etcd for one object, minus a margin for the fields that the API server adds.
	maxObjectBytes = 1_000_000
	// maxConfigMapBytes is the limit of the ConfigMap into which OLM unpacks a bundle: its files, each compressed and encoded in base64.
	maxConfigMapBytes = 1 << 20
)

func TestBundleIsSmall(t *testing.T) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	if err := files.AddFS(os.DirFS(root + "/bundle")); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes compressed", archive.Len())
	if archive.Len() > maxBundleBytes || archive.Len() < maxBundleBytes/10 {
		t.Errorf("got %d bytes compressed, want %d to %d", archive.Len(), maxBundleBytes/10, maxBundleBytes)
	}
}

func TestBundleFitsIntoConfigMap(t *testing.T) {
	total := 0
	err := filepath.WalkDir(root+"/bundle", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		var b bytes.Buffer
		encoder := base64.NewEncoder(base64.StdEncoding, &b)
		zipped := gzip.NewWriter(encoder)
		if _, err := zipped.Write(read(t, path)); err != nil {
			return err
		}
		if err := errors.Join(zipped.Close(), encoder.Close()); err != nil {
			return err
		}
		total += b.Len() + len(path)
		return nil
	})
	t.Logf("%d bytes in a ConfigMap", total)
	if err != nil || total > maxConfigMapBytes || total == 0 {
		t.Errorf("got %d bytes, error %v, want at most %d", total, err, maxConfigMapBytes)
	}
}

func TestManifestsFitIntoEtcd(t *testing.T) {
	for file, object := range manifests(t) {
		stored, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > maxObjectBytes {
			t.Errorf("%s has %d bytes, want at most %d", file, len(stored), maxObjectBytes)
		}
		// A client-side apply stores the whole object in an annotation of at most 256 kB, which is too small for the large CRDs,
		// and OLM does not need it.
		if _, applied := object.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; applied {
			t.Errorf("%s has the annotation of a client-side apply", file)
		}
	}
}
