package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of charts in a registry, https://helm.sh/docs/topics/registries.
const (
	chartConfig = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartLayer  = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// chart packs the generated chart as `helm package` does, and as an artifact for `helm pull oci://`.
func (r *release) chart() error {
	files, err := readFolder(filepath.Join(r.dist, "chart"))
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	content, err := tarGzip(files, r.source.time)
	if err != nil {
		return err
	}
	if err := r.write(operatorName+"-"+r.version+".tgz", content); err != nil {
		return err
	}
	metadata, err := os.ReadFile(filepath.Join(r.dist, "chart", operatorName, "Chart.yaml"))
	if err == nil {
		metadata, err = yaml.YAMLToJSON(metadata)
	}
	if err != nil {
		return fmt.Errorf("reading Chart.yaml: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(r.dist, "chart")); err != nil {
		return fmt.Errorf("removing the unpacked chart: %w", err)
	}
	image, err := newArtifact(chartConfig, metadata, static.NewLayer(content, chartLayer))
	if err != nil {
		return err
	}
	target, err := r.layout("chart")
	if err != nil {
		return err
	}
	repository := r.registry + "/charts/" + operatorName
	if err := target.AppendImage(image, withName(repository, strings.ReplaceAll(r.version, "+", "_"))); err != nil {
		return fmt.Errorf("writing the layout of the chart: %w", err)
	}
	digest, err := image.Digest()
	r.subjects[repository] = digest.String()
	return err
}

// artifact is an OCI artifact other than a container image.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func newArtifact(configType types.MediaType, config []byte, layer v1.Layer) (v1.Image, error) {
	configDescriptor, err := partial.Descriptor(static.NewLayer(config, configType))
	if err != nil {
		return nil, fmt.Errorf("describing the configuration: %w", err)
	}
	layerDescriptor, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("describing the content: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: *configDescriptor, Layers: []v1.Descriptor{*layerDescriptor}})
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return partial.CompressedToImage(&artifact{config, manifest, layer})
}

func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (a *artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	known, err := a.layer.Digest()
	if err == nil && known != digest {
		err = fmt.Errorf("there is no layer %s", digest)
	}
	return a.layer, err
}

// readFolder returns the files below a folder, with paths relative to the folder.
func readFolder(folder string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		files = append(files, file{path.Clean(filepath.ToSlash(relative)), 0o644, 0, content})
		return err
	})
	return files, err
}

// tarGzip packs files as tar.gz.
func tarGzip(files []file, modTime time.Time) ([]byte, error) {
	content, err := archive(files, modTime)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	out, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(content); err != nil {
		return nil, err
	}
	err = out.Close() // writes the checksum
	return buffer.Bytes(), err
}
