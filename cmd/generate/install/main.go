// Command install writes the installation files of a release from config: a manifest for each overlay, and a Helm chart. It needs no cluster
// and no network, and its output is reproducible.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/blang/semver/v4"

	"github.com/odh-platform/odh-platform-operator/cmd/generate/kustomization"
)

// imageLine matches the line of params.env with the image of the manager.
var imageLine = regexp.MustCompile(`(?m)^(odh-platform-operator-image=).*`)

func main() {
	version := flag.String("version", "", "version of the operator, such as 1.2.3")
	image := flag.String("image", "", "image of the manager")
	root := flag.String("root", ".", "root of the checkout")
	out := flag.String("out", "", "folder that the files are written to")
	flag.Parse()
	if err := run(*root, *out, *version, *image); err != nil {
		fmt.Fprintln(os.Stderr, "writing the manifests:", err)
		os.Exit(1)
	}
}

func run(root, out, version, image string) error {
	if _, err := semver.Parse(version); err != nil {
		return fmt.Errorf("version %q: %w: it must be a semantic version such as 1.2.3", version, err)
	}
	if image == "" || out == "" {
		return fmt.Errorf("the image is %q and the folder %q: set both", image, out)
	}
	config, err := copyConfig(root, image)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(config)) }() // a temporary folder
	files, err := renderOverlays(config)
	if err != nil {
		return err
	}
	chart, err := newChart(config, version)
	if err != nil {
		return fmt.Errorf("building the chart: %w", err)
	}
	for path, content := range chart {
		files["chart/"+chartName+"/"+path] = content
	}
	for path, content := range files {
		path = filepath.Join(out, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyConfig copies the manifests into a temporary folder and sets the image in every overlay.
func copyConfig(root, image string) (string, error) {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "config")
	if err := os.CopyFS(config, os.DirFS(filepath.Join(root, "config"))); err != nil {
		return "", fmt.Errorf("copying the manifests: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(config, "overlays", "*", "params.env"))
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		if err := setImage(path, image); err != nil {
			return "", err
		}
	}
	return config, nil
}

func setImage(path, image string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	if !imageLine.Match(content) {
		return fmt.Errorf("no line of %s matches %s, so the image cannot be set", path, imageLine)
	}
	return os.WriteFile(path, imageLine.ReplaceAll(content, []byte("${1}"+image)), 0o600)
}

// renderOverlays renders each overlay into its own file.
func renderOverlays(config string) (map[string]string, error) {
	entries, err := os.ReadDir(filepath.Join(config, "overlays"))
	if err != nil {
		return nil, fmt.Errorf("looking for overlays: %w", err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := kustomization.Manifest(filepath.Join(config, "overlays", entry.Name()))
		if err != nil {
			return nil, err
		}
		files["install-"+entry.Name()+".yaml"] = string(text)
	}
	return files, nil
}
