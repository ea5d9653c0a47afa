package images

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const (
	// recentPython is the first suite of Debian with a Python of 3.12 or later.
	recentPython = "trixie"
	// python311 is the suite of Debian with Python 3.11: the version in the image of Ray, and the latest that MLServer supports.
	python311 = "bookworm"
)

// pythonPath is the PATH of images with packages of PyPI.
const pythonPath = "PATH=/opt/app/bin:/usr/local/bin:/usr/bin:/bin"

// installPython is a script of sh.
//
//go:embed python/install.sh
var installPython string

// pythonSystem is the base of an image with packages of PyPI. The packages and Python are in /opt/app, whose commands are to be on
// the PATH.
type pythonSystem struct {
	// suite of Debian; empty means that of this machine.
	suite string
	// debian are additional packages of Debian.
	debian []string
	// requirements is a requirements file of pip.
	requirements string
	// options of pip install, such as --no-deps for a complete list.
	options []string
}

// python returns the layers of a system, the lowest first.
func (s Store) python(ctx context.Context, p pythonSystem) ([]Digest, error) {
	system, err := s.suite(ctx, p.suite, append([]string{"ca-certificates", "python3", "python3-venv"}, p.debian...)...)
	if err != nil {
		return nil, err
	}
	key := strings.Join(append([]string{string(system), installPython, p.requirements}, p.options...), "\n")
	app, err := s.Layer(ctx, key, func(w io.Writer) error { return s.pip(ctx, w, system, p) })
	if err != nil {
		return nil, err
	}
	return []Digest{system, app}, nil
}

// pip writes the layer with the packages from PyPI.
func (s Store) pip(ctx context.Context, w io.Writer, system Digest, p pythonSystem) error {
	root, err := os.MkdirTemp(s.Content, "root")
	if err != nil {
		return fmt.Errorf("installing packages of PyPI: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	authorities := cmp.Or(os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt")
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", installPython, "sh", s.blob(system), root, authorities}, p.options...)...)
	command.Env = pipEnv()
	var stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(p.requirements), w, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("installing packages of PyPI: %w\n%s", err, stderr.String())
	}
	return nil
}

// pipEnv returns the variables with the sources of packages. Other variables of this machine may name files that the system lacks.
func pipEnv() []string {
	env := []string{"HOME=/tmp", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{
		"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
