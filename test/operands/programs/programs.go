// Package programs builds programs of other projects that run in the operator's pods, from the modules in test/operands/binaries, into the
// user's cache directory.
package programs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// openapi is the source of the package github.com/kubeflow/model-registry/pkg/openapi. In v0.2.22, the version of the server, the package
// is a separate module that was never published; v0.2.19 contains it with the same API. The sum is from the checksum database.
var openapi = struct{ module, version, sum string }{
	"github.com/kubeflow/model-registry", "v0.2.19", "h1:w/3QuxZPc4BxwddQuWhfQe/+u/aPvcmbLvUtLjPF29Q=",
}

// ModelRegistry builds the server of Model Registry v0.2.22, unless it exists, and returns its path.
func ModelRegistry(ctx context.Context) (string, error) {
	return build(ctx, "modelregistry", "github.com/kubeflow/model-registry", addOpenAPI)
}

// RuntimeAdapter builds a program of github.com/kserve/modelmesh-runtime-adapter v0.12.0, unless it exists, and returns its path.
func RuntimeAdapter(ctx context.Context, pkg string) (string, error) {
	return build(ctx, "runtime-adapter", "github.com/kserve/modelmesh-runtime-adapter/"+pkg, nil)
}

// ObjectStore builds versitygw v1.8.0, an object store on files, unless it exists, and returns its path.
func ObjectStore(ctx context.Context) (string, error) {
	return build(ctx, "versitygw", "github.com/versity/versitygw/cmd/versitygw", nil)
}

// build builds a package of a module in the cache, after addFiles has added files to the module.
func build(ctx context.Context, name, pkg string, addFiles func(ctx context.Context, dir string) error) (string, error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.New()
	fmt.Fprintln(key, runtime.Version(), pkg, openapi)
	files := map[string][]byte{}
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, "test", "operands", "binaries", name, file))
		if err != nil {
			return "", err
		}
		key.Write(content)
		files[file] = content
	}
	dir := filepath.Join(cache, "operands", name+"-"+hex.EncodeToString(key.Sum(nil)[:8]))
	unlock, err := filelock.Take(ctx, dir+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	fmt.Println("building", pkg, "in", dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return "", err
		}
	}
	if addFiles != nil {
		if err := addFiles(ctx, dir); err != nil {
			return "", err
		}
	}
	// The program is renamed after the build, so an interrupted build leaves no program.
	if _, err := goCommand(ctx, dir, "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", program+".partial", pkg); err != nil {
		return "", err
	}
	return program, os.Rename(program+".partial", program)
}

// addOpenAPI adds the package openapi to the folder of the go.mod, which has a replace directive for the package.
func addOpenAPI(ctx context.Context, dir string) error {
	response, err := goCommand(ctx, dir, "mod", "download", "-json", openapi.module+"@"+openapi.version)
	if err != nil {
		return err
	}
	var download struct{ Dir, Sum string }
	if err := json.Unmarshal(response, &download); err != nil {
		return err
	}
	if download.Sum != openapi.sum {
		return fmt.Errorf("%s %s has checksum %s, want %s", openapi.module, openapi.version, download.Sum, openapi.sum)
	}
	target := filepath.Join(dir, "openapi")
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := os.CopyFS(target, os.DirFS(filepath.Join(download.Dir, "pkg", "openapi"))); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, "go.mod"), []byte("module "+openapi.module+"/pkg/openapi\n\ngo 1.24.4\n"), 0o644)
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v in %s: %w\n%s", args, dir, err, &stderr)
	}
	return output, nil
}
