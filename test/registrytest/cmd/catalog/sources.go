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

// followEvery is the interval at which changed sources are looked for.
const followEvery = time.Second

// source is an entry of a file of sources, with the fields that v0.2.22 accepts.
type source struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Enabled    *bool          `json:"enabled,omitempty"`
	Properties map[string]any `json:"properties,omitempty"`
}

// file is a file of sources. Sections other than that of models are unknown to v0.2.22.
type file struct {
	Catalogs []source `json:"catalogs"`
}

// join returns one file with the sources of several. v0.2.22 refuses a whole file with an ID twice, or with a source whose models it cannot
// read, so these are left out and returned as problems.
func join(paths []string) (joined []byte, problems []error) {
	all := file{Catalogs: []source{}}
	known := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		var one file
		if err := yaml.Unmarshal(text, &one); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
			continue
		}
		for _, s := range one.Catalogs {
			if err := s.resolve(filepath.Dir(path)); err != nil {
				problems = append(problems, fmt.Errorf("%s: source %s: %w", path, s.ID, err))
				continue
			}
			if known[s.ID] {
				problems = append(problems, fmt.Errorf("%s: source %s: the ID exists", path, s.ID))
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

// resolve makes the path of the models absolute, and returns an error unless the file is valid YAML.
func (s *source) resolve(folder string) error {
	const key = "yamlCatalogPath"
	path, _ := s.Properties[key].(string)
	if s.Type != "yaml" || path == "" {
		return fmt.Errorf("type %q with the path %q", s.Type, path)
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

// writeSources writes the joined sources to a file, and returns a function that writes it again after each change. The server watches the file.
func (c *catalog) writeSources(ctx context.Context, target string) (forever func(), err error) {
	written, err := c.write(target, nil)
	if err != nil {
		return nil, err
	}
	return func() {
		ticker := time.NewTicker(followEvery)
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

// write replaces the file if its content changes, and returns the content.
func (c *catalog) write(target string, before []byte) ([]byte, error) {
	joined, problems := join(c.sources)
	if bytes.Equal(joined, before) {
		return before, nil
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "catalog: left out:", problem)
	}
	if err := os.WriteFile(target+".next", joined, 0o600); err != nil {
		return before, err
	}
	return joined, os.Rename(target+".next", target)
}
