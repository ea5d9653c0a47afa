package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// Store stores images in two directories.
type Store struct {
	// Content has the content of all images by digest; it is shared by all instances of a user.
	Content string
	// Names has the names of the images of one instance.
	Names string
}

// File of an image; a Target that ends with a slash is a directory.
type File struct {
	Target string
	// Source is the file on this machine; if it is empty, Content is used.
	Source  string
	Content string
	Mode    int64
	// UID and GID of the owner.
	UID, GID int
}

// Image is the input of [Store.Pack]: layers, lowest first, and a top layer of single files.
type Image struct {
	Layers []Digest
	Files  []File
	Process
}

// Pack builds an image and sets its names, such as `quay.io/opendatahub/mlflow:odh-stable`.
func (s Store) Pack(image Image, names ...string) error {
	var layers []descriptor
	for _, digest := range image.Layers {
		info, err := os.Stat(s.blob(digest))
		if err != nil {
			return fmt.Errorf("finding a layer of %s: %w", names, err)
		}
		layers = append(layers, descriptor{MediaType: layerType, Digest: digest, Size: info.Size()})
	}
	if len(image.Files) > 0 {
		layer, err := s.put(layerType, func(w io.Writer) error { return writeArchive(w, image.Files) })
		if err != nil {
			return fmt.Errorf("packing the files of %s: %w", names, err)
		}
		layers = append(layers, layer)
	}
	config, m := describe(image.Process, layers)
	var err error
	if m.Config, err = s.putJSON(configType, config); err != nil {
		return fmt.Errorf("packing %s: %w", names, err)
	}
	document, err := s.putJSON(manifestType, m)
	if err != nil {
		return fmt.Errorf("packing %s: %w", names, err)
	}
	for _, name := range names {
		if err := s.setName(name, document.Digest); err != nil {
			return fmt.Errorf("naming image %s: %w", name, err)
		}
	}
	return nil
}

// Layer returns the layer of a recipe. The key contains every input of the recipe. A cached layer with the same key is reused, and
// one process at a time runs the recipe of a key.
func (s Store) Layer(ctx context.Context, key string, recipe func(io.Writer) error) (Digest, error) {
	sum := sha256.Sum256([]byte(key))
	record := filepath.Join(s.Content, "recipes", hex.EncodeToString(sum[:]))
	release, err := filelock.Take(ctx, record+".lock", nil)
	if err != nil {
		return "", err
	}
	defer release()
	if cached, err := os.ReadFile(record); err == nil {
		if _, err := os.Stat(s.blob(Digest(cached))); err == nil {
			return Digest(cached), nil
		}
	}
	layer, err := s.put(layerType, recipe)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(record, []byte(layer.Digest), 0o600); err != nil {
		return "", fmt.Errorf("recording a layer: %w", err)
	}
	return layer.Digest, nil
}

func (s Store) blob(digest Digest) string {
	return filepath.Join(s.Content, "sha256", filepath.Base(strings.TrimPrefix(string(digest), "sha256:")))
}

func (s Store) nameFile(name string) string { return filepath.Join(s.Names, url.PathEscape(name)) }

// setName stores the digest of a name atomically, because the registry may read it at any time.
func (s Store) setName(name string, digest Digest) error {
	if err := os.MkdirAll(s.Names, 0o755); err != nil {
		return err
	}
	temporary := s.nameFile(name) + ".new"
	if err := os.WriteFile(temporary, []byte(digest), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.nameFile(name))
}

// put stores the output of write by its digest.
func (s Store) put(mediaType string, write func(io.Writer) error) (descriptor, error) {
	if err := os.MkdirAll(filepath.Join(s.Content, "sha256"), 0o755); err != nil {
		return descriptor{}, err
	}
	file, err := os.CreateTemp(s.Content, "new")
	if err != nil {
		return descriptor{}, err
	}
	defer func() { _ = os.Remove(file.Name()) }() // not found after the rename
	sum := sha256.New()
	writeErr := write(io.MultiWriter(file, sum))
	info, statErr := file.Stat()
	if err := errors.Join(writeErr, statErr, file.Close()); err != nil {
		return descriptor{}, err
	}
	digest := Digest("sha256:" + hex.EncodeToString(sum.Sum(nil)))
	if err := os.Rename(file.Name(), s.blob(digest)); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: mediaType, Digest: digest, Size: info.Size()}, nil
}

func (s Store) putJSON(mediaType string, document any) (descriptor, error) {
	content, err := json.Marshal(document)
	if err != nil {
		return descriptor{}, err
	}
	return s.put(mediaType, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(content))
		return err
	})
}

// find returns the digest for a tag or a digest; ok reports whether it exists.
func (s Store) find(name, reference string) (digest Digest, ok bool) {
	if strings.HasPrefix(reference, "sha256:") {
		_, err := os.Stat(s.blob(Digest(reference)))
		return Digest(reference), err == nil
	}
	content, err := os.ReadFile(s.nameFile(name + ":" + reference))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return Digest(content), err == nil
}
