package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// refreshInterval is the interval of the checks for changed sources.
const refreshInterval = time.Second

// source is an entry of a file of sources, with the fields of v0.2.22.
type source struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Enabled    *bool          `json:"enabled,omitempty"`
	Properties map[string]any `json:"properties,omitempty"`
}

// file is a file of sources. v0.2.22 supports only the section of models.
type file struct {
	Catalogs []source `json:"catalogs"`
}

// join merges the sources of several files. v0.2.22 rejects a file with a duplicate ID or a source with unreadable models, so such
// sources are omitted and returned as problems.
func join(paths []string) (joined []byte, problems []error) {
	all := file{Catalogs: []source{}}
	known := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		var content file
		if err := yaml.Unmarshal(text, &content); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, s := range content.Catalogs {
			if err := s.resolve(filepath.Dir(path)); err != nil {
				problems = append(problems, fmt.Errorf("%s: source %s: %w", path, s.ID, err))
				continue
			}
			if known[s.ID] {
				problems = append(problems, fmt.Errorf("%s: source %s: duplicate ID", path, s.ID))
				continue
			}
			known[s.ID] = true
			all.Catalogs = append(all.Catalogs, s)
		}
	}
	joined, err := json.Marshal(all) // JSON is YAML
	if err != nil {
		problems = append(problems, err)
	}
	return joined, problems
}

// resolve makes the path of the models absolute, and returns an error unless the file is readable YAML.
func (s *source) resolve(folder string) error {
	const key = "yamlCatalogPath"
	path, _ := s.Properties[key].(string)
	if s.Type != "yaml" || path == "" {
		return fmt.Errorf("unsupported type %q with path %q", s.Type, path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	models, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	s.Properties[key] = path
	return yaml.Unmarshal(models, &map[string]any{})
}

// writeSources writes the merged sources to a file that the server watches, and returns a function that rewrites the file when they change.
func (c *catalog) writeSources(ctx context.Context, target string) (watch func(), err error) {
	written, err := c.write(target, nil)
	if err != nil {
		return nil, err
	}
	return func() {
		ticker := time.NewTicker(refreshInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if written, err = c.write(target, written); err != nil {
				fmt.Fprintln(os.Stderr, "catalog:", err)
			}
		}
	}, nil
}

// write replaces the file if its content has changed, and returns the content.
func (c *catalog) write(target string, before []byte) ([]byte, error) {
	joined, problems := join(c.sources)
	if bytes.Equal(joined, before) {
		return before, nil
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "catalog: omitted:", problem)
	}
	if err := os.WriteFile(target+".next", joined, 0o600); err != nil {
		return before, err
	}
	return joined, os.Rename(target+".next", target)
}
