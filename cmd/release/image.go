package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nameAnnotation holds the full name of an image in a layout; containerd reads it too.
const nameAnnotation = "io.containerd.image.name"

// nonroot is the UID and GID of the operator, as in the distroless images.
const nonroot = 65532

// file is a file of an archive, or a folder if its name ends with a slash.
type file struct {
	name    string
	mode    int64
	uid     int
	content []byte
}

// archive returns files as a tar archive, sorted by name and with one modification time.
func archive(files []file, modTime time.Time) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Uid: f.uid, Gid: f.uid, Size: int64(len(f.content)), ModTime: modTime, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := out.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	err := out.Close() // writes the trailer
	return buffer.Bytes(), err
}

func newLayer(files []file, modTime time.Time) (v1.Layer, error) {
	content, err := archive(files, modTime)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
}

// baseLayer returns a layer like gcr.io/distroless/static: the user, the CAs of Mozilla, time zones and a folder for temporary files. The
// CAs come from a Go module, the time zones from the Go tool chain.
func baseLayer(ctx context.Context, created time.Time) (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// A root with a constraint is trusted only by clients that implement the constraint.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing the CAs: %w", err)
		}
	}
	files := []file{
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{"etc/group", 0o644, 0, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes()},
		{"home/nonroot/", 0o700, nonroot, nil},
		{"tmp/", 0o1777, 0, nil},
	}
	goroot, err := output(ctx, ".", "go", "env", "GOROOT")
	if err != nil {
		return nil, fmt.Errorf("finding the tool chain: %w", err)
	}
	zones, err := zip.OpenReader(filepath.Join(goroot, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, fmt.Errorf("reading time zones: %w", err)
	}
	defer func() { _ = zones.Close() }() // read only
	for _, zone := range zones.File {
		if strings.HasSuffix(zone.Name, "/") {
			continue
		}
		content, err := fs.ReadFile(zones, zone.Name)
		if err != nil {
			return nil, fmt.Errorf("reading time zone %s: %w", zone.Name, err)
		}
		files = append(files, file{"usr/share/zoneinfo/" + zone.Name, 0o644, 0, content})
	}
	return newLayer(files, created)
}

// managerConfig returns the configuration of the image of the manager. It is like that of the Dockerfile, with a label for the revision.
func (r *release) managerConfig() v1.Config {
	return v1.Config{
		User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title": operatorName, "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": repository, "org.opencontainers.image.revision": r.source.commit,
		},
	}
}

// newIndex returns an empty image index.
func newIndex() v1.ImageIndex { return mutate.IndexMediaType(empty.Index, types.OCIImageIndex) }

// appendImage appends the image of a platform to an index.
func appendImage(i v1.ImageIndex, p platform, config v1.Config, created time.Time, layers ...v1.Layer) (v1.ImageIndex, error) {
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return i, fmt.Errorf("packing the image for %s: %w", p, err)
	}
	configFile, err := image.ConfigFile()
	if err != nil {
		return i, fmt.Errorf("describing the image for %s: %w", p, err)
	}
	configFile = configFile.DeepCopy()
	configFile.OS, configFile.Architecture, configFile.Created, configFile.Config = p.os, p.arch, v1.Time{Time: created}, config
	configFile.History = nil
	if image, err = mutate.ConfigFile(image, configFile); err != nil {
		return i, fmt.Errorf("describing the image for %s: %w", p, err)
	}
	return mutate.AppendManifests(i, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
	}), nil
}

// save writes an image as an OCI layout and records its digest.
func (r *release) save(name string, i v1.ImageIndex) error {
	path, err := r.layout(name)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(i, withName(r.registry+"/"+name, r.tag())); err != nil {
		return fmt.Errorf("writing the layout of %s: %w", name, err)
	}
	digest, err := i.Digest()
	r.subjects[r.registry+"/"+name] = digest.String()
	return err
}

// layout creates an empty OCI layout.
func (r *release) layout(name string) (layout.Path, error) {
	path, err := layout.Write(filepath.Join(r.dist, "images", name), newIndex())
	if err != nil {
		return "", fmt.Errorf("creating the layout of %s: %w", name, err)
	}
	return path, nil
}

// withName returns an option that annotates an image in a layout with its name.
func withName(repository, tag string) layout.Option {
	return layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag, nameAnnotation: repository + ":" + tag})
}
