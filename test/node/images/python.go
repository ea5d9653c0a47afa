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
	// recentPython is the oldest suite of Debian with Python 3.12 or later.
	recentPython = "trixie"
	// python311 is the suite of Debian with Python 3.11, the version in the Ray image and the latest that MLServer supports.
	python311 = "bookworm"
)

// pythonPath is the PATH of images with PyPI packages.
const pythonPath = "PATH=/opt/app/bin:/usr/local/bin:/usr/bin:/bin"

// installPython is a script of sh.
//
//go:embed python/install.sh
var installPython string

// pythonSystem is the base of an image with PyPI packages in the virtual environment /opt/app; pythonPath includes its commands.
type pythonSystem struct {
	// suite of Debian; empty means that of this machine.
	suite string
	// debian are additional packages of Debian.
	debian []string
	// requirements is a requirements file of pip.
	requirements string
	// options of pip install, such as --no-deps if requirements is complete.
	options []string
}

// python returns the layers of a system: Debian first, then the PyPI packages.
func (s Store) python(ctx context.Context, p pythonSystem) ([]Digest, error) {
	system, err := s.debianSuite(ctx, p.suite, append([]string{"ca-certificates", "python3", "python3-venv"}, p.debian...)...)
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

// pip writes the layer with the PyPI packages.
func (s Store) pip(ctx context.Context, w io.Writer, system Digest, p pythonSystem) error {
	root, err := os.MkdirTemp(s.Content, "root")
	if err != nil {
		return fmt.Errorf("installing PyPI packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(root) }()
	authorities := cmp.Or(os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt")
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", installPython, "sh", s.blob(system), root, authorities}, p.options...)...)
	command.Env = pipEnv()
	var stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(p.requirements), w, &stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("installing PyPI packages: %w\n%s", err, stderr.String())
	}
	return nil
}

// pipEnv returns the environment with the package sources. Other variables are omitted: they can name files of this machine that do not
// exist in the chroot.
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
