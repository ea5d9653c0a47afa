package images

import "runtime"

// Media types of OCI images, https://github.com/opencontainers/image-spec.
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// Digest is `sha256:` and the SHA-256 checksum of a blob in hexadecimal digits.
type Digest string

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    Digest `json:"digest"`
	Size      int64  `json:"size"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// Process is the configuration of the process in an image.
type Process struct {
	User       string   `json:",omitempty"`
	Env        []string `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	WorkingDir string   `json:",omitempty"`
}

type rootFS struct {
	Type  string   `json:"type"`
	Diffs []Digest `json:"diff_ids"`
}

type configuration struct {
	Architecture string  `json:"architecture"`
	OS           string  `json:"os"`
	Config       Process `json:"config"`
	RootFS       rootFS  `json:"rootfs"`
}

// describe returns the configuration and the manifest of an image. The caller sets the descriptor of the configuration in the manifest.
func describe(process Process, layers []descriptor) (configuration, manifest) {
	config := configuration{
		Architecture: runtime.GOARCH, OS: "linux", Config: process, RootFS: rootFS{Type: "layers", Diffs: []Digest{}},
	}
	for _, layer := range layers {
		config.RootFS.Diffs = append(config.RootFS.Diffs, layer.Digest) // layers are not compressed
	}
	return config, manifest{SchemaVersion: 2, MediaType: manifestType, Layers: layers}
}
