package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// statement is one of https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md about https://slsa.dev/spec/v1.0/provenance.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// subject is a file of the release, an image, or one of their sources.
type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

const (
	provenanceFile = "provenance.json"
	checksumsFile  = "checksums.txt"
)

// attest writes the provenance of the release, and finally the checksums of all files.
func (r *release) attest(ctx context.Context) error {
	sums, err := checksums(r.dist)
	if err != nil {
		return err
	}
	toolchain, err := output(ctx, r.root, "go", "env", "GOVERSION")
	if err != nil {
		return fmt.Errorf("finding the version of the tool chain: %w", err)
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range slices.Sorted(maps.Keys(r.subjects)) {
		s.Subject = append(s.Subject, subject{Name: name, Digest: map[string]string{"sha256": strings.TrimPrefix(r.subjects[name], "sha256:")}})
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		// Those of images are named by the digest of the image.
		if !strings.HasPrefix(name, "images/") {
			s.Subject = append(s.Subject, subject{Name: name, Digest: map[string]string{"sha256": sums[name]}})
		}
	}
	s.Predicate.BuildDefinition.BuildType = repository + "/blob/main/docs/release.md"
	s.Predicate.BuildDefinition.ExternalParameters = map[string]string{"target": "release", "VERSION": r.version, "REGISTRY": r.registry}
	s.Predicate.BuildDefinition.ResolvedDependencies = []subject{
		{URI: "git+" + repository, Digest: map[string]string{"gitCommit": r.source.commit}},
		{URI: "pkg:golang/toolchain@" + toolchain},
	}
	s.Predicate.RunDetails.Builder.ID = r.builder
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the provenance: %w", err)
	}
	if err := r.write(provenanceFile, append(text, '\n')); err != nil {
		return err
	}
	if sums, err = checksums(r.dist); err != nil {
		return err
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	return r.write(checksumsFile, []byte(list.String()))
}

// checksums are those of the files below a folder.
func checksums(folder string) (map[string]string, error) {
	sums := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }() // read only
		sum := sha256.New()
		_, err = io.Copy(sum, content)
		sums[filepath.ToSlash(name)] = hex.EncodeToString(sum.Sum(nil))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	return sums, nil
}
