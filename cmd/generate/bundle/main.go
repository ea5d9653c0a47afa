// Command bundle writes the manifests of the OLM bundle from the kustomization in config/manifests. It needs no cluster and no network, and its
// output is reproducible.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/generate/kustomization"
)

func main() {
	version := flag.String("version", "", "version of the operator, such as 1.2.3")
	image := flag.String("image", "", "image of the manager; empty for the one in config/manifests/params.env")
	root := flag.String("root", ".", "root of the checkout")
	flag.Parse()
	if err := run(*root, *version, *image); err != nil {
		fmt.Fprintln(os.Stderr, "writing the bundle:", err)
		os.Exit(1)
	}
}

// run reads the sources below root and replaces the manifests of the bundle there.
func run(root, version, image string) error {
	in, err := read(root)
	if err != nil {
		return err
	}
	in.version = version
	if image != "" {
		in.parameters = withManagerImage(in.parameters, image)
	}
	out, err := build(in)
	if err != nil {
		return err
	}
	files, err := render(out)
	if err != nil {
		return err
	}
	return write(root, files)
}

func withManagerImage(parameters []parameter, image string) []parameter {
	out := []parameter{{managerKey, image}}
	for _, p := range parameters {
		if p.key != managerKey {
			out = append(out, p)
		}
	}
	return out
}

// read returns the input of a bundle, except the version.
func read(root string) (input, error) {
	in := input{base: &v1alpha1.ClusterServiceVersion{}}
	texts := map[string]*string{"description.md": &in.description, "icon.svg": &in.icon, "params.env": new(string), "bases/" + packageName + ".clusterserviceversion.yaml": new(string)}
	for name, text := range texts {
		content, err := os.ReadFile(filepath.Join(root, "config/manifests", name))
		if err != nil {
			return in, fmt.Errorf("reading a source: %w", err)
		}
		*text = string(content)
	}
	if err := yaml.UnmarshalStrict([]byte(*texts["bases/"+packageName+".clusterserviceversion.yaml"]), in.base); err != nil {
		return in, fmt.Errorf("reading the base of the CSV: %w", err)
	}
	var err error
	if in.parameters, err = readParameters(*texts["params.env"]); err != nil {
		return in, fmt.Errorf("config/manifests/params.env: %w", err)
	}
	if in.samples, err = readSamples(filepath.Join(root, "config/samples")); err != nil {
		return in, err
	}
	objects, err := kustomization.Objects(filepath.Join(root, "config/manifests"))
	if err != nil {
		return in, err
	}
	in.sources, err = newSources(objects)
	return in, err
}

// readSamples returns the samples with a single object, sorted by file name.
func readSamples(folder string) ([]sample, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for samples: %w", err)
	}
	var out []sample
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		s, single, err := newSample(filepath.Base(path), string(content))
		if err != nil {
			return nil, err
		}
		if single {
			out = append(out, s)
		}
	}
	return out, nil
}
