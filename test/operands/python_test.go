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

// The releases of MLflow that are installed: the oldest that the operator supports, the newest, and one that is too old.
const (
	oldest = "3.14.0"
	newest = "3.18.0"
	tooOld = "3.13.0"
)

// requirements pins what MLflow needs, and the driver of PostgreSQL, which images of MLflow hold too.
//
//go:embed requirements.txt
var requirements []byte

// python is an environment with one release of MLflow, in the user's cache directory.
type python struct {
	// release is that of MLflow, empty in the environment of what all of them need.
	release string
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

// installPython makes the environments of all releases unless an earlier run did. They share one with what they need.
func installPython(ctx context.Context) (map[string]*python, error) {
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
	needed := &python{bin: filepath.Join(dir, "bin"), version: version}
	if err := complete(ctx, dir, func() error { return needed.fill(ctx, found, dir) }); err != nil {
		return nil, err
	}
	all := map[string]*python{}
	for _, release := range []string{oldest, newest, tooOld} {
		own := dir + "-mlflow-" + release
		p := &python{release: release, bin: filepath.Join(own, "bin"), version: version}
		if err := complete(ctx, own, func() error { return p.add(ctx, needed, found, own) }); err != nil {
			return nil, err
		}
		all[release] = p
	}
	return all, nil
}

// complete makes an environment in a folder. A run that was broken off left no mark, and is done again.
func complete(ctx context.Context, dir string, make func() error) error {
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
	if err := make(); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

// fill installs what all releases need.
func (p *python) fill(ctx context.Context, interpreter, dir string) error {
	if err := do(ctx, interpreter, "-m", "venv", dir); err != nil {
		return err
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	return do(ctx, p.path("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", list)
}

// add installs one release of MLflow beside what it needs.
func (p *python) add(ctx context.Context, needed *python, interpreter, dir string) error {
	if err := do(ctx, interpreter, "-m", "venv", "--without-pip", dir); err != nil {
		return err
	}
	const packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
	theirs, err := exec.CommandContext(ctx, needed.path("python"), "-c", packages).Output()
	if err != nil {
		return err
	}
	own, err := exec.CommandContext(ctx, p.path("python"), "-c", packages).Output()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(string(bytes.TrimSpace(own)), "needed.pth"), theirs, 0o644); err != nil {
		return err
	}
	if err := do(ctx, needed.path("python"), "-m", "pip", "--python", p.path("python"), "install", "--quiet", "--disable-pip-version-check",
		"--no-deps", "mlflow=="+p.release); err != nil {
		return err
	}
	// The links of an environment have to be inside it.
	if err := os.Symlink("python", p.path("python3.12")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
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
