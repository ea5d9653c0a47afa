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

// subject is a file or an image of the release, or a source of the build.
type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
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
	var subjects []subject
	for _, name := range slices.Sorted(maps.Keys(r.subjects)) {
		subjects = append(subjects, subject{Name: name, Digest: map[string]string{"sha256": strings.TrimPrefix(r.subjects[name], "sha256:")}})
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		// An image is a subject by its digest.
		if !strings.HasPrefix(name, "images/") {
			subjects = append(subjects, subject{Name: name, Digest: map[string]string{"sha256": sums[name]}})
		}
	}
	// https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md about https://slsa.dev/spec/v1.0/provenance
	text, err := json.MarshalIndent(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1", "predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          repository + "/blob/main/docs/release.md",
				"externalParameters": map[string]string{"target": "release", "VERSION": r.version, "REGISTRY": r.registry},
				"resolvedDependencies": []subject{
					{URI: "git+" + repository, Digest: map[string]string{"gitCommit": r.source.commit}},
					{URI: "pkg:golang/toolchain@" + toolchain},
				},
			},
			"runDetails": map[string]any{"builder": map[string]string{"id": r.builder}},
		},
	}, "", "  ")
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

// checksums returns the SHA-256 checksums of the files below a folder.
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
