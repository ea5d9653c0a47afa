//go:build operands

package operands

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// requirements pins MLflow, what it needs, and the driver of PostgreSQL, which images of MLflow hold too.
//
//go:embed requirements.txt
var requirements []byte

// python is an environment with MLflow, in the user's cache directory.
type python struct {
	// bin is the folder of its commands. As in the image, python3.12 is one of them, whatever the version behind it.
	bin string
	// version is that of the interpreter.
	version string
}

func (p *python) path(command string) string { return filepath.Join(p.bin, command) }

// candidates are where interpreters are looked for, the version of the image first. Versions beside a pyenv are not on the path.
func candidates() []string {
	names := []string{"python3.12", "python3.13", "python3.11", "python3"}
	home, err := os.UserHomeDir()
	if err != nil {
		return names
	}
	managed, err := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.12.*", "bin", "python3.12"))
	if err != nil {
		return names
	}
	return append(managed, names...)
}

// findPython returns the first interpreter that the pinned packages work with and that can make environments.
func findPython(ctx context.Context) (path, version string) {
	const probe = "import sys, venv, ensurepip; assert (3, 11) <= sys.version_info < (3, 14); print(sys.version.split()[0])"
	for _, name := range candidates() {
		output, err := exec.CommandContext(ctx, name, "-c", probe).Output()
		if err == nil {
			return name, string(bytes.TrimSpace(output))
		}
	}
	return "", ""
}

// installPython makes the environment unless an earlier run did.
func installPython(ctx context.Context) (*python, error) {
	found, version := findPython(ctx)
	if found == "" {
		if err := install(ctx, "Python 3.11, 3.12 or 3.13 with venv", "python3", "python3-venv"); err != nil {
			return nil, err
		}
		if found, version = findPython(ctx); found == "" {
			return nil, errors.New("the Python of this system is not 3.11, 3.12 or 3.13, or has no venv: put one of them on the PATH")
		}
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(version+"\n"), requirements...))
	dir := filepath.Join(cache, "operands", "python-"+hex.EncodeToString(sum[:8]))
	env := &python{bin: filepath.Join(dir, "bin"), version: version}
	return env, env.complete(ctx, found, dir)
}

// complete installs the packages into a folder. A run that was broken off left no mark, and is done again.
func (p *python) complete(ctx context.Context, interpreter, dir string) error {
	release, err := filelock.Take(ctx, dir+".lock", nil)
	if err != nil {
		return err
	}
	defer release()
	mark := filepath.Join(dir, "complete")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	fmt.Println("installing MLflow into", dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := do(ctx, interpreter, "-m", "venv", dir); err != nil {
		return err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	if err := do(ctx, p.path("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", list); err != nil {
		return err
	}
	// The links of an environment have to be inside it.
	if err := os.Symlink("python", p.path("python3.12")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

// install asks the package manager of Debian, if this is Debian and we may.
func install(ctx context.Context, what string, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("this machine lacks %s: install it (on Debian: apt-get install %v) and run again", what, packages)
	}
	fmt.Println("installing", packages)
	if err := do(ctx, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	args := append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...)
	return do(ctx, "env", args...)
}

// do runs a command of the installation. Its output matters only if it fails.
func do(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, output)
	}
	return nil
}
