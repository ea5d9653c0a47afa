package images

import "context"

// Images in the chart of the Operator Lifecycle Manager: that of its programs, and that of the server of catalogs, which also
// unpacks bundles.
const (
	OLMImage = "quay.io/operator-framework/olm:v0.46.0"
	OPMImage = "quay.io/operator-framework/opm:latest"
)

// OLM makes the images of the Operator Lifecycle Manager of its programs. Its pods copy files with cp.
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
