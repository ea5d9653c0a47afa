// Command dashboards writes the dashboards of config/dashboards/source as Grafana and the console of OpenShift understand them, each
// in a ConfigMap.
//
//	dashboards FOLDER
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const head = "# Written by cmd/generate/dashboards; change what stands in source and run make generate.\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: dashboards FOLDER")
	}
	sources, err := filepath.Glob(filepath.Join(args[0], "source", "*.yaml"))
	if err != nil || len(sources) == 0 {
		return fmt.Errorf("no dashboards in %s: %w", filepath.Join(args[0], "source"), errors.Join(err, os.ErrNotExist))
	}
	var dashboards []*dashboard
	for _, path := range sources {
		d, err := load(path)
		if err != nil {
			return err
		}
		dashboards = append(dashboards, d)
	}
	return errors.Join(
		write(filepath.Join(args[0], "grafana.yaml"), dashboards, grafanaMap),
		write(filepath.Join(args[0], "console", "console.yaml"), dashboards, consoleMap))
}

func load(path string) (*dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a dashboard: %w", err)
	}
	d := &dashboard{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// write renders every dashboard into one file.
func write(path string, dashboards []*dashboard, render func(*dashboard) (object, error)) error {
	var text strings.Builder
	text.WriteString(head)
	for _, d := range dashboards {
		configMap, err := render(d)
		if err != nil {
			return fmt.Errorf("dashboard %s: %w", d.Name, err)
		}
		document, err := yaml.Marshal(configMap)
		if err != nil {
			return fmt.Errorf("dashboard %s: %w", d.Name, err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}
