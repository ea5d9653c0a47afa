package images

import "context"

// Images in the chart of the Operator Lifecycle Manager: its programs, and the catalog server, which also unpacks bundles.
const (
	OLMImage = "quay.io/operator-framework/olm:v0.46.0"
	OPMImage = "quay.io/operator-framework/opm:latest"
)

// CertManagerImage has the controllers of cert-manager that the manifests of OLM v1 use.
const CertManagerImage = "quay.io/jetstack/cert-manager-controller:v1.18.2"

// OLM builds the images of the Operator Lifecycle Manager from its binaries. They include cp, with which its pods copy files.
func OLM(ctx context.Context, s Store, programs map[string]string) error {
	layer, err := s.base(ctx)
	if err != nil {
		return err
	}
	for name, files := range map[string]map[string]string{
		OLMImage: {"olm": "olm", "catalog": "catalog", "package-server": "package-server", "copy-content": "copy-content", "cpb": "cpb"},
		OPMImage: {"opm": "opm", "grpc_health_probe": "grpc-health-probe"},
	} {
		image := Image{Layers: []Digest{layer}, Process: Process{User: "1001:0"}}
		for file, program := range files {
			image.Files = append(image.Files, File{Target: "/usr/bin/" + file, Source: programs[program], Mode: 0o755})
		}
		if err := s.Pack(image, name); err != nil {
			return err
		}
	}
	return nil
}

// OLMV1 builds the images of the Operator Lifecycle Manager v1 and of cert-manager from their binaries. Each binary is in the root
// directory, because the manifests start catalogd with a relative path.
func OLMV1(s Store, programs map[string]string) error {
	for name, image := range map[string]string{
		"operator-controller": "quay.io/operator-framework/operator-controller:devel",
		"catalogd":            "quay.io/operator-framework/catalogd:devel",
		"certmanager":         CertManagerImage,
	} {
		if err := Program(s, programs[name], "/"+name, image); err != nil {
			return err
		}
	}
	return nil
}
