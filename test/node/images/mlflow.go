package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// MLflowImage is the image in the settings of the operator.
const MLflowImage = "quay.io/opendatahub/mlflow:odh-stable"

// mlflowPlugins has the app `kubernetes-auth` and the workspace store for `kubernetes://` URIs. It requires Python 3.12 or 3.13, and is
// the latest release that supports mlflowRelease.
const mlflowPlugins = "mlflow-kubernetes-plugins==1.7.1"

// mlflowRelease is the oldest MLflow that the operator supports. The shared requirements file does not contain MLflow.
const mlflowRelease = "mlflow==3.14.0\nmlflow-skinny==3.14.0\nmlflow-tracing==3.14.0\n"

// EarlierMLflowImage has an MLflow whose database requires a migration.
const EarlierMLflowImage = "localhost/mlflow:3.12.0"

const earlierMLflow = "mlflow==3.12.0\nmlflow-skinny==3.12.0\nmlflow-tracing==3.12.0\n"

// MLflow builds an image with these names. It contains the public release mlflowRelease and the plugins of the platform's images.
func MLflow(ctx context.Context, s Store, checkout string, names ...string) error {
	layers, err := s.mlflow(ctx, checkout)
	if err != nil {
		return err
	}
	return s.Pack(Image{
		Layers: layers,
		// The manifests call python3.12, the version in the images of the platform.
		Files:   []File{{Target: "/opt/app/bin/python3.12", Content: "#!/bin/sh\nexec /opt/app/bin/python3 \"$@\"\n", Mode: 0o755}},
		Process: Process{User: "1001:0", Env: []string{pythonPath}, WorkingDir: "/"},
	}, names...)
}

// EarlierMLflow builds [EarlierMLflowImage] from the layers of [MLflow]. PYTHONPATH selects the earlier release.
func EarlierMLflow(ctx context.Context, s Store, checkout string) error {
	layers, err := s.mlflow(ctx, checkout)
	if err != nil {
		return err
	}
	const folder = "/opt/app/earlier"
	earlier, err := s.python(ctx, pythonSystem{
		suite: recentPython, requirements: earlierMLflow, options: []string{"--no-deps", "--target=" + folder},
	})
	if err != nil {
		return err
	}
	return s.Pack(Image{
		Layers:  append(layers, earlier[1]),
		Process: Process{User: "1001:0", Env: []string{pythonPath, "PYTHONPATH=" + folder}, WorkingDir: "/"},
	}, EarlierMLflowImage)
}

func (s Store) mlflow(ctx context.Context, checkout string) ([]Digest, error) {
	requirements, err := os.ReadFile(filepath.Join(checkout, "test", "operands", "requirements.txt"))
	if err != nil {
		return nil, fmt.Errorf("reading the requirements of MLflow: %w", err)
	}
	return s.python(ctx, pythonSystem{
		suite: recentPython, requirements: string(requirements) + mlflowRelease + mlflowPlugins + "\n", options: []string{"--no-deps"},
	})
}
