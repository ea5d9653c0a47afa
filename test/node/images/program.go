package images

// Images with a single program, by the names that the operator configures.
const (
	ModelRegistryImage = "quay.io/opendatahub/model-registry:v0.3.14"
	KubeRBACProxyImage = "quay.io/openshift/origin-kube-rbac-proxy:4.19"
)

// Program makes an image of one static program, which is at path in the image and is its entrypoint.
func Program(s Store, binary, path string, names ...string) error {
	return s.Pack(Image{
		Files:   []File{{Target: "/tmp/", Mode: 0o1777}, {Target: path, Source: binary, Mode: 0o755}},
		Process: Process{Entrypoint: []string{path}, User: "65532:65532"},
	}, names...)
}
