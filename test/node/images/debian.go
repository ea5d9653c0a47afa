package images

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Default names of images.
const (
	// BaseImage has the minimal system of this machine's distribution, Python and openssl.
	BaseImage = "localhost/base:latest"
	// PostgresImage is the image in the settings of the operator.
	PostgresImage = "quay.io/sclorg/postgresql-16-c10s:20260610"
)

// postgresUser is the user of the images of sclorg.
const postgresUser = 26

// Replacements for the scripts of the images of sclorg that the manifests of the operator use.
var (
	//go:embed postgres/run-postgresql
	runPostgres string
	//go:embed postgres/check-container
	checkPostgres string
	//go:embed postgres/container-entrypoint
	postgresEntrypoint string
)

// Base builds BaseImage, which runs as user 1001, and sets additional names.
func Base(ctx context.Context, s Store, names ...string) error {
	layer, err := s.base(ctx)
	if err != nil {
		return err
	}
	return s.Pack(Image{Layers: []Digest{layer}, Process: Process{User: "1001:0", Cmd: []string{"sh"}}}, append(names, BaseImage)...)
}

func (s Store) base(ctx context.Context) (Digest, error) {
	return s.debian(ctx, "ca-certificates", "openssl", "python3")
}

// Postgres builds an image with the PostgreSQL of this machine's distribution and replacements for the scripts of sclorg. The names
// default to PostgresImage.
func Postgres(ctx context.Context, s Store, names ...string) error {
	if len(names) == 0 {
		names = []string{PostgresImage}
	}
	layer, err := s.debian(ctx, "postgresql")
	if err != nil {
		return err
	}
	const home = "/var/lib/pgsql/"
	return s.Pack(Image{
		Layers: []Digest{layer},
		Files: []File{
			{Target: "/usr/bin/run-postgresql", Content: runPostgres, Mode: 0o755},
			{Target: "/usr/bin/container-entrypoint", Content: postgresEntrypoint, Mode: 0o755},
			{Target: "/usr/libexec/check-container", Content: checkPostgres, Mode: 0o755},
			// initdb looks up the user.
			{Target: "/etc/passwd", Content: "root:x:0:0::/root:/bin/bash\npostgres:x:26:26::/var/lib/pgsql:/bin/bash\n", Mode: 0o644},
			{Target: "/etc/group", Content: "root:x:0:\npostgres:x:26:\n", Mode: 0o644},
			{Target: home, Mode: 0o775, UID: postgresUser},
			{Target: home + "data/", Mode: 0o775, UID: postgresUser},
			{Target: "/run/postgresql/", Mode: 0o1777},
		},
		Process: Process{
			User: fmt.Sprint(postgresUser), Env: []string{"HOME=/var/lib/pgsql"}, WorkingDir: "/var/lib/pgsql",
			Entrypoint: []string{"container-entrypoint"}, Cmd: []string{"run-postgresql"},
		},
	}, names...)
}

// debian returns a layer with the minimal system of this machine's distribution and the packages.
func (s Store) debian(ctx context.Context, packages ...string) (Digest, error) {
	return s.debianSuite(ctx, "", packages...)
}

// debianSuite returns a layer with the minimal system of a suite of Debian and the packages. Without a name, and on a machine that
// is not Debian, it uses the suite of the machine. The sources of packages are not part of the image.
func (s Store) debianSuite(ctx context.Context, suite string, packages ...string) (Digest, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("reading the distribution of this machine: %w", err)
	}
	file, err := aptSources()
	if err != nil {
		return "", err
	}
	sources, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the package sources of this machine: %w", err)
	}
	hostSuite := field(string(release), "VERSION_CODENAME")
	if suite == "" || field(string(release), "ID") != "debian" {
		suite = hostSuite
	}
	args := []string{
		"--quiet", "--variant=minbase", "--format=tar", "--include=" + strings.Join(packages, ","),
		`--dpkgopt=path-exclude=/usr/share/doc/*`, `--dpkgopt=path-exclude=/usr/share/man/*`, `--dpkgopt=path-exclude=/usr/share/locale/*`,
		// Prevents the package from creating a cluster of PostgreSQL.
		`--essential-hook=mkdir -p "$1/etc/postgresql-common" && echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"`,
		`--customize-hook=rm -rf "$1"/etc/apt/sources.list* "$1"/etc/resolv.conf "$1"/etc/hostname`,
		suite, "-",
	}
	return s.Layer(ctx, strings.Join(append(args, file), "\n"), func(w io.Writer) error {
		command := exec.CommandContext(ctx, "mmdebstrap", append(args, "-")...)
		var stderr bytes.Buffer
		command.Stdin = strings.NewReader(strings.ReplaceAll(string(sources), hostSuite, suite))
		command.Stdout, command.Stderr = w, &stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("installing %s for an image: %w\n%s", packages, err, stderr.String())
		}
		return nil
	})
}

// field returns the value of a field of a file like /etc/os-release.
func field(release, name string) string {
	for line := range strings.Lines(release) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// aptSources returns the file with the package sources of this machine.
func aptSources() (string, error) {
	for _, file := range []string{"/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources", "/etc/apt/sources.list"} {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", errors.New("building an image: this machine has no sources of Debian packages")
}
