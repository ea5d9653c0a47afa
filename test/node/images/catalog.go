package images

import "context"

// CatalogDataImage is the image in the settings of the operator for the data of the catalog and for measurements of its models.
const CatalogDataImage = "quay.io/opendatahub/odh-model-metadata-collection:latest"

// Catalog makes the images of a catalog: that of its data, and one of a server in Python, which has the name of the image of Model Registry.
// Other commands than `catalog` run in the image of the server as they do in the image of the registry alone.
func Catalog(ctx context.Context, s Store, registry, server string) error {
	layer, err := s.base(ctx)
	if err != nil {
		return err
	}
	const choose = "#!/bin/sh\n[ \"$1\" != catalog ] || exec python3 /catalog.py \"$@\"\nexec /registry \"$@\"\n"
	data := []File{
		{Target: "/app/data/models-catalog.yaml", Content: "models: []\n", Mode: 0o644},
		{Target: "/app/benchmarks/figures.ndjson", Content: "{}\n", Mode: 0o644},
	}
	if err := s.Pack(Image{Layers: []Digest{layer}, Files: data, Process: Process{User: "65532:65532"}}, CatalogDataImage); err != nil {
		return err
	}
	return s.Pack(Image{
		Layers: []Digest{layer},
		Files: []File{
			{Target: "/registry", Source: registry, Mode: 0o755},
			{Target: "/catalog.py", Content: server, Mode: 0o644},
			{Target: "/model-registry", Content: choose, Mode: 0o755},
		},
		Process: Process{User: "65532:65532", Entrypoint: []string{"/model-registry"}},
	}, ModelRegistryImage)
}
