package images

import (
	"context"
	_ "embed"
)

const (
	// RayImage is the image in the samples of RayClusters.
	RayImage = "quay.io/modh/ray:2.47.1-py311-cu121"
	// RayPython is the version of Python in RayImage. Clients of Ray require the same version.
	RayPython = "3.11"
)

// rayRequirements is the requirements file of Ray with all dependencies, and of a tutorial, because pods have no access to PyPI.
//
//go:embed python/ray.txt
var rayRequirements string

// rayPackages are the packages of Debian that Ray needs.
var rayPackages = []string{"openssl", "wget"}

// Ray builds an image of Ray with wget, which the probes of KubeRay call.
func Ray(ctx context.Context, s Store) error {
	layers, err := s.python(ctx, pythonSystem{suite: python311, debian: rayPackages, requirements: rayRequirements, options: []string{"--no-deps"}})
	if err != nil {
		return err
	}
	const home = "/opt/app-root/src"
	return s.Pack(Image{
		Layers:  layers,
		Files:   []File{{Target: "/opt/app-root/", Mode: 0o755}, {Target: home + "/", Mode: 0o775}},
		Process: Process{User: "1001:0", Env: []string{pythonPath, "HOME=" + home}, WorkingDir: home},
	}, RayImage)
}
