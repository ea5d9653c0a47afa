package machine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// Python is an environment with pinned packages in the user's cache directory.
type Python struct {
	// Bin is the folder of the commands. That of an environment from Extend contains python3.12, as the image of MLflow does, regardless of
	// the actual version.
	Bin string
	// dir is the folder of the environment.
	dir string
	// interpreter is the Python that created the environment.
	interpreter string
}

// Path returns the path of a command.
func (p *Python) Path(command string) string { return filepath.Join(p.Bin, command) }

func newPython(dir, interpreter string) *Python {
	return &Python{Bin: filepath.Join(dir, "bin"), dir: dir, interpreter: interpreter}
}

// supported are the minor versions of Python that pinned packages support, in order of preference: the image of MLflow has the first.
var supported = []string{"3.12", "3.13", "3.11"}

// candidates returns the interpreters to try, in order: those of pyenv for the first version, which are not on the PATH, then a command for
// each version, and python3.
func candidates(versions []string) []string {
	var names []string
	if home, err := os.UserHomeDir(); err == nil {
		pattern := filepath.Join(home, ".pyenv", "versions", versions[0]+".*", "bin", "python"+versions[0])
		names, _ = filepath.Glob(pattern) // the pattern is valid
	}
	for _, version := range versions {
		names = append(names, "python"+version)
	}
	return append(names, "python3")
}

// findPython returns the first interpreter with venv and one of the versions.
func findPython(ctx context.Context, versions []string) (path, version string) {
	const probe = "import sys, venv, ensurepip; assert '%d.%d' % sys.version_info[:2] in sys.argv; print(sys.version.split()[0])"
	for _, name := range candidates(versions) {
		output, err := exec.CommandContext(ctx, name, append([]string{"-c", probe}, versions...)...).Output()
		if err == nil {
			return name, string(bytes.TrimSpace(output))
		}
	}
	return "", ""
}

// InstallPython creates an environment, unless it exists, with a list of packages that includes all dependencies. Its folder in the cache
// is named with a digest of the version of Python and the list. Without versions, it has one of the supported minor versions of Python.
func InstallPython(ctx context.Context, folder, name string, requirements []byte, versions ...string) (*Python, error) {
	if len(versions) == 0 {
		versions = supported
	}
	names := "Python " + strings.Join(versions, " or ") + " with venv"
	interpreter, version := findPython(ctx, versions)
	if interpreter == "" {
		if err := InstallPackages(ctx, names, "python3", "python3-venv"); err != nil {
			return nil, err
		}
		if interpreter, version = findPython(ctx, versions); interpreter == "" {
			return nil, fmt.Errorf("this system has no %s: put it on the PATH", names)
		}
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(version+"\n"), requirements...))
	p := newPython(filepath.Join(cache, folder, name+"-"+hex.EncodeToString(sum[:8])), interpreter)
	return p, complete(ctx, p.dir, func() error { return p.installList(ctx, requirements) })
}

// Extend creates an environment with the given packages, which imports the packages of p without a copy.
func (p *Python) Extend(ctx context.Context, name string, packages ...string) (*Python, error) {
	extended := newPython(p.dir+"-"+name, p.interpreter)
	return extended, complete(ctx, extended.dir, func() error { return extended.extend(ctx, p, packages) })
}

// complete creates an environment in a folder, unless the folder contains the mark of a complete environment.
func complete(ctx context.Context, dir string, create func() error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	unlock, err := filelock.Take(ctx, dir+".lock", nil)
	if err != nil {
		return err
	}
	defer unlock()
	mark := filepath.Join(dir, "complete")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	fmt.Println("installing Python packages into", dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := create(); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o644)
}

// installList installs a list of packages.
func (p *Python) installList(ctx context.Context, requirements []byte) error {
	if err := runCommand(ctx, p.interpreter, "-m", "venv", p.dir); err != nil {
		return err
	}
	list := filepath.Join(p.dir, "pinned.txt") // a package installs a folder with the name requirements.txt
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	return runCommand(ctx, p.Path("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "-r", list)
}

// extend creates an environment with packages that imports those of the base.
func (p *Python) extend(ctx context.Context, base *Python, packages []string) error {
	if err := runCommand(ctx, p.interpreter, "-m", "venv", "--without-pip", p.dir); err != nil {
		return err
	}
	const folder = "import sysconfig; print(sysconfig.get_path('purelib'))"
	baseDir, err := exec.CommandContext(ctx, base.Path("python"), "-c", folder).Output()
	if err != nil {
		return err
	}
	ownDir, err := exec.CommandContext(ctx, p.Path("python"), "-c", folder).Output()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(string(bytes.TrimSpace(ownDir)), "needed.pth"), baseDir, 0o644); err != nil {
		return err
	}
	args := []string{"-m", "pip", "--python", p.Path("python"), "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"}
	if err := runCommand(ctx, base.Path("python"), append(args, packages...)...); err != nil {
		return err
	}
	// The rendered commands call python3.12, regardless of the version of the environment.
	if err := os.Symlink("python", p.Path("python3.12")); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// InstallPackages installs packages on Debian if the user is root. Otherwise it returns an error that describes them.
func InstallPackages(ctx context.Context, description string, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("this machine lacks %s: install it (on Debian: apt-get install %v) and run again", description, packages)
	}
	fmt.Println("installing", packages)
	if err := runCommand(ctx, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	args := append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...)
	return runCommand(ctx, "env", args...)
}

// runCommand runs a command of the installation. An error contains the output.
func runCommand(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, output)
	}
	return nil
}
