package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// completionScript is the script that kubectl runs to complete arguments of the plugin.
const completionScript = "#!/bin/sh\nexec kubectl odh __complete \"$@\"\n"

// plugin compiles kubectl-odh for every platform, packs each binary with license and completions, and writes the krew manifest and the SBOM.
func (r *release) plugin(ctx context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	hostPlatform := platform{runtime.GOOS, runtime.GOARCH}
	hostBinary, _, err := r.compile(ctx, "plugin", hostPlatform)
	if err != nil {
		return err
	}
	files := []file{{"LICENSE", 0o644, 0, license}, {"kubectl_complete-odh", 0o755, 0, []byte(completionScript)}}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := output(ctx, r.work, hostBinary, "completion", shell)
		if err != nil {
			return fmt.Errorf("printing the completion for %s: %w", shell, err)
		}
		files = append(files, file{"completions/kubectl-odh." + shell, 0o644, 0, []byte(script + "\n")})
	}
	var binaries []string
	var entries []any
	for _, p := range r.pluginPlatforms {
		path, content, err := r.compile(ctx, "plugin", p)
		if err != nil {
			return err
		}
		binaries = append(binaries, path)
		entry, err := r.archive(p, content, files)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	manifest, err := yaml.Marshal(r.krewManifest(entries))
	if err != nil {
		return fmt.Errorf("encoding the krew manifest: %w", err)
	}
	if err := r.write("odh.yaml", manifest); err != nil {
		return err
	}
	return r.writeSBOM("kubectl-odh", binaries)
}

// archive packs the plugin for one platform, and returns its entry in the krew manifest.
func (r *release) archive(p platform, program []byte, files []file) (map[string]any, error) {
	name, binary, pack := fmt.Sprintf("kubectl-odh_%s_%s_%s.tar.gz", r.version, p.os, p.arch), "kubectl-odh", tarGzip
	if p.os == "windows" {
		name, binary, pack = fmt.Sprintf("kubectl-odh_%s_%s_%s.zip", r.version, p.os, p.arch), "kubectl-odh.exe", zipArchive
	}
	content, err := pack(append(slices.Clone(files), file{binary, 0o755, 0, program}), r.source.time)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if err := r.write(name, content); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	return map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
		"uri":      r.downloadURL(name), "sha256": hex.EncodeToString(sum[:]), "bin": binary,
	}, nil
}

// downloadURL returns the URL of a file of this release.
func (r *release) downloadURL(name string) string {
	return repository + "/releases/download/v" + r.version + "/" + name
}

func (r *release) krewManifest(platforms []any) map[string]any {
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": "odh"},
		"spec": map[string]any{
			"version": "v" + r.version, "homepage": repository, "shortDescription": "Shows what the ODH Platform Operator runs and what is wrong with it",
			"description": "Shows the state of MLflow, model registries, ModelMesh, Ray clusters and AppWrappers on one screen, what a resource\n" +
				"consists of, what it would create, and common faults with their fixes. It never changes the cluster.\n",
			"platforms": platforms,
		},
	}
}

// zipArchive packs files as a zip archive, sorted by name and with one modification time.
func zipArchive(files []file, modTime time.Time) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	var buffer bytes.Buffer
	out := zip.NewWriter(&buffer)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modTime}
		header.SetMode(os.FileMode(f.mode))
		in, err := out.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := in.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := out.Close() // writes the central directory
	return buffer.Bytes(), err
}
