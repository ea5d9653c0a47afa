package images

import "context"

// CatalogDataImage is the image in the settings of the operator for the data of the catalog and for measurements of its models.
const CatalogDataImage = "quay.io/opendatahub/odh-model-metadata-collection:latest"

// catalogData is the list of models of a default source.
const catalogData = `source: Example
models:
- name: sentiment
  description: Tells whether a text is friendly
  provider: Example
  tasks: [text-classification]
  artifacts:
  - uri: oci://registry.example.org/sentiment:1
`

// Catalog builds the images of a catalog: that of its data, and that of Model Registry with both servers. registry is the server of Model
// Registry, program the binary of test/registrytest/cmd/catalog, which starts it.
func Catalog(ctx context.Context, s Store, registry, program string) error {
	layer, err := s.base(ctx)
	if err != nil {
		return err
	}
	data := []File{
		{Target: "/app/data/models-catalog.yaml", Content: catalogData, Mode: 0o644},
		{Target: "/app/benchmarks/figures.ndjson", Content: "{}\n", Mode: 0o644},
	}
	if err := s.Pack(Image{Layers: []Digest{layer}, Files: data, Process: Process{User: "65532:65532"}}, CatalogDataImage); err != nil {
		return err
	}
	return s.Pack(Image{
		Layers: []Digest{layer},
		Files: []File{
			{Target: "/registry", Source: registry, Mode: 0o755},
			{Target: "/model-registry", Source: program, Mode: 0o755},
		},
		Process: Process{User: "65532:65532", Entrypoint: []string{"/model-registry"}},
	}, ModelRegistryImage)
}
