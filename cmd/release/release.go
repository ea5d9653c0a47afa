package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	operatorName = "odh-platform-operator"
	bundleName   = operatorName + "-bundle"
	catalogName  = operatorName + "-catalog"
)

// release holds the inputs and results of one run.
type release struct {
	version, registry string
	root, dist        string
	source            source
	// imagePlatforms are the platforms of the images. pluginPlatforms are those of kubectl-odh.
	imagePlatforms, pluginPlatforms []platform
	builder                         string
	out                             io.Writer

	// work is a temporary folder.
	work string
	// subjects holds the digests of the images and the chart by name, for references and the provenance.
	subjects map[string]string
}

// platform is an operating system and a processor architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func parsePlatforms(list string) ([]platform, error) {
	var out []platform
	for name := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(name, "/")
		if !found || system == "" || arch == "" {
			return nil, fmt.Errorf("platform %q: must be an operating system and an architecture such as linux/amd64", name)
		}
		out = append(out, platform{system, arch})
	}
	return out, nil
}

// tag returns the tag of the images. Registries do not allow a plus sign in tags.
func (r *release) tag() string { return "v" + strings.ReplaceAll(r.version, "+", "_") }

// make writes the release, after deleting the previous one.
func (r *release) make(ctx context.Context) (err error) {
	if r.work, err = os.MkdirTemp("", "release"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }() // a temporary folder
	if err := os.RemoveAll(r.dist); err != nil {
		return fmt.Errorf("removing the previous release: %w", err)
	}
	r.subjects = map[string]string{}
	for _, step := range []struct {
		description string
		run         func(context.Context) error
	}{
		{"image of the operator", r.operator},
		{"manifests and chart", r.manifests},
		{"bundle and catalog", r.bundle},
		{"kubectl-odh", r.plugin},
		{"release notes", r.notes},
		{"checksums and provenance", r.attest},
	} {
		fmt.Fprintf(r.out, "making: %s\n", step.description)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("making %s: %w", step.description, err)
		}
	}
	fmt.Fprintf(r.out, "%s is in %s; make push sends its images to %s\n", r.version, r.dist, r.registry)
	return nil
}

// operator compiles the manager for every platform, packs it into an image and writes its SBOM.
func (r *release) operator(ctx context.Context) error {
	var binaries []string
	index := newIndex()
	base, err := baseLayer(ctx, r.source.time)
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range r.imagePlatforms {
		path, content, err := r.compile(ctx, "manager", p)
		if err != nil {
			return err
		}
		binaries = append(binaries, path)
		layer, err := newLayer([]file{{"manager", 0o755, 0, content}, {"licenses/LICENSE", 0o644, 0, license}}, r.source.time)
		if err != nil {
			return err
		}
		if index, err = appendImage(index, p, r.managerConfig(), r.source.time, base, layer); err != nil {
			return err
		}
	}
	if err := r.save(operatorName, index); err != nil {
		return err
	}
	return r.writeSBOM("manager", binaries)
}

// compile runs one of the make targets manager and plugin, and returns the path and the content of the binary.
func (r *release) compile(ctx context.Context, target string, p platform) (path string, content []byte, err error) {
	fmt.Fprintf(r.out, "compiling: %s for %s\n", target, p)
	path = filepath.Join(r.work, p.os+"-"+p.arch, target)
	variable := map[string]string{"manager": "BINARY", "plugin": "PLUGIN"}[target]
	err = r.command(ctx, []string{"GOOS=" + p.os, "GOARCH=" + p.arch}, "make", "-s", target, variable+"="+path, "VERSION="+r.version, "COMMIT="+r.source.commit)
	if err == nil {
		content, err = os.ReadFile(path)
	}
	return path, content, err
}

// manifests generates the manifests for kubectl and Helm, and packs the chart.
func (r *release) manifests(ctx context.Context) error {
	if err := r.command(ctx, nil, "go", "run", "./cmd/generate/install", "--version", r.version, "--image", r.reference(operatorName), "--out", r.dist); err != nil {
		return err
	}
	return r.chart()
}

// reference returns the name of an image with its digest.
func (r *release) reference(name string) string {
	return r.registry + "/" + name + ":" + r.tag() + "@" + r.subjects[r.registry+"/"+name]
}

// command runs a program in the checkout, without the environment variables that change the build.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = r.root
	// Without debug information, which is stripped later, compiling takes 20 % less time.
	command.Env = append(slices.DeleteFunc(os.Environ(), changesBuild), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false", "GOWORK=off")
	command.Env = append(command.Env, env...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// changesBuild reports whether command drops an environment variable, because it may change the output of the tool chain or of make.
func changesBuild(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	switch name {
	case "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOROOT", "GOTOOLCHAIN", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOMAXPROCS", "GOTMPDIR":
		return false
	}
	return strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || name == "TAGS" || name == "LDFLAGS"
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	path := filepath.Join(r.dist, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
