package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Module is a Go module whose files are read without compiling it.
type Module struct {
	// Path of the module.
	Path string
	// Version of the module; empty means the version in go.mod.
	Version string
	// Sum is the checksum of the module's files in the format of go.sum; empty means the checksum in go.sum.
	Sum string
}

func (m Module) query() string {
	if m.Version == "" {
		return m.Path
	}
	return m.Path + "@" + m.Version
}

// moduleDirs downloads missing modules and returns the folders of all, by path. Modules without a version have that of the go.mod in dir.
// It returns an error if a checksum differs.
func moduleDirs(ctx context.Context, dir string, modules []Module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	sums := map[string]string{}
	for _, m := range modules {
		args = append(args, m.query())
		sums[m.Path] = m.Sum
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, runErr := command.Output()
	dirs, err := parseDownloads(output, sums)
	if err != nil {
		return nil, err
	}
	if runErr != nil {
		return nil, fmt.Errorf("downloading modules: %w\n%s", runErr, stderr.String())
	}
	return dirs, nil
}

func parseDownloads(output []byte, sums map[string]string) (map[string]string, error) {
	dirs := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var download struct{ Path, Version, Dir, Sum, Error string }
		if err := decoder.Decode(&download); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the output of go mod download: %w", err)
		}
		if download.Error != "" {
			return nil, fmt.Errorf("downloading module %s: %s", download.Path, download.Error)
		}
		if want := sums[download.Path]; want != "" && want != download.Sum {
			return nil, fmt.Errorf("downloading module %s %s: checksum %s, want %s", download.Path, download.Version, download.Sum, want)
		}
		dirs[download.Path] = download.Dir
	}
}
