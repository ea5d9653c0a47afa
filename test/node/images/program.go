package images

// Images of a single program, with the names in the settings of the operator.
const (
	ModelRegistryImage = "quay.io/opendatahub/model-registry:v0.3.14"
	KubeRBACProxyImage = "quay.io/openshift/origin-kube-rbac-proxy:4.19"
)

// Program builds an image of a static binary, which is its entrypoint and has the path in the image.
func Program(s Store, binary, path string, names ...string) error {
	return s.Pack(Image{
		Files:   []File{{Target: "/tmp/", Mode: 0o1777}, {Target: path, Source: binary, Mode: 0o755}},
		Process: Process{Entrypoint: []string{path}, User: "65532:65532"},
	}, names...)
}
