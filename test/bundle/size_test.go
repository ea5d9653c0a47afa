package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

const (
	// maxBundle is the largest compressed size of the bundle, in bytes.
	maxBundle = 150_000
	// maxObject is the limit of etcd for one object, in bytes, less a margin for the fields that the API server adds.
	maxObject = 1_000_000
	// maxUnpacked limits the ConfigMap into which OLM unpacks a bundle: its files, each compressed and in base64.
	maxUnpacked = 1 << 20
)

func TestTheBundleIsSmall(t *testing.T) {
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
	if archive.Len() > maxBundle || archive.Len() < maxBundle/10 {
		t.Errorf("%d bytes compressed, at most %d are wanted", archive.Len(), maxBundle)
	}
}

func TestTheBundleFitsIntoAConfigMap(t *testing.T) {
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
		if err := zipped.Close(); err != nil {
			return err
		}
		total += b.Len() + len(path)
		return encoder.Close()
	})
	t.Logf("%d bytes in a ConfigMap", total)
	if err != nil || total > maxUnpacked || total == 0 {
		t.Errorf("%d bytes, at most %d are wanted; %v", total, maxUnpacked, err)
	}
}

func TestEveryManifestFitsIntoEtcd(t *testing.T) {
	for file, object := range manifests(t) {
		stored, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > maxObject {
			t.Errorf("%s has %d bytes, etcd takes %d", file, len(stored), maxObject)
		}
		// A client-side apply stores the whole object in an annotation of at most 256 kB, which is too small for the large CRDs,
		// and OLM does not need it.
		if _, applied := object.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; applied {
			t.Errorf("%s holds itself once more", file)
		}
	}
}
