package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

const (
	progressInterval = 15 * time.Second
	moveInterval     = 200 * time.Millisecond
	keyLength        = 16
)

// key returns the identity of the results of a build: equal keys mean equal binaries.
func (m module) key(goMod, goSum []byte, toolchain string) string {
	hash := sha256.New()
	for _, part := range [][]byte{goMod, goSum, []byte(toolchain), []byte(m.ldflags + m.cgoTags + m.tags), []byte(strings.Join(m.packages, " "))} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:keyLength]
}

// Binaries maps the names of programs, such as `etcd` and `kubectl`, to their paths.
type Binaries map[string]string

// Build ensures that every program of the control plane exists and returns their paths. It writes progress with the elapsed time when it
// compiles, at least every 15 s, and when it waits for a build in another process. Errors contain the output of the compiler.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, binaryModules()...)
}

// BuildNode ensures that the programs of a real node exist and returns their paths by name, as [Build] does.
func BuildNode(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, nodeModules()...)
}

// Kubectl ensures that kubectl exists, in [KubernetesVersion], and returns its path. [Build] builds it with the control plane.
func Kubectl(ctx context.Context, progress io.Writer) (string, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return "", err
	}
	return binaries["kubectl"], nil
}

// BuildPeer ensures that the program of a peer exists and returns its path, as [Build] does.
func BuildPeer(ctx context.Context, peer Peer, progress io.Writer) (string, error) {
	m, ok := peers[peer]
	if !ok {
		return "", fmt.Errorf("unknown peer %q", peer)
	}
	binaries, err := buildAll(ctx, progress, m)
	if err != nil {
		return "", err
	}
	return binaries[programName(m.packages[0])], nil
}

// DownloadPeer downloads the modules of a peer that the module cache lacks, so [BuildPeer] only compiles.
func DownloadPeer(ctx context.Context, peer Peer) error {
	m, ok := peers[peer]
	if !ok {
		return fmt.Errorf("unknown peer %q", peer)
	}
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-deps"}, m.packages...)...)
	command.Dir = filepath.Join(root, "test", "cluster", "binaries", m.dir)
	command.Env = append(os.Environ(), "GOWORK=off")
	return command.Run()
}

// BuildOLM ensures that the programs of the Operator Lifecycle Manager exist and returns their paths by name, as [Build] does.
func BuildOLM(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, olmModule())
}

// OLMDir returns the folder with the files of the Operator Lifecycle Manager, in the version that [BuildOLM] builds.
func OLMDir(ctx context.Context) (string, error) { return olmModule().moduleDir(ctx) }

// BuildOLMV1 ensures that the programs of the Operator Lifecycle Manager v1 and cert-manager exist and returns their paths by name, as
// [Build] does.
func BuildOLMV1(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, olmV1Module())
}

// OLMV1Dir returns the folder with the files of the Operator Lifecycle Manager v1, in the version that [BuildOLMV1] builds.
func OLMV1Dir(ctx context.Context) (string, error) { return olmV1Module().moduleDir(ctx) }

// CertManagerDir returns the folder with the files of cert-manager, in the version that [BuildOLMV1] builds.
func CertManagerDir(ctx context.Context) (string, error) {
	return module{dir: olmV1Module().dir, packages: []string{certManager}}.moduleDir(ctx)
}

// BuildMonitoring ensures that the programs of the Prometheus operator and of Prometheus exist and returns their paths by name, as [Build]
// does.
func BuildMonitoring(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, monitoringModule())
}

// MonitoringDir returns the folder with the files of the Prometheus operator, in the version that [BuildMonitoring] builds.
func MonitoringDir(ctx context.Context) (string, error) { return monitoringModule().moduleDir(ctx) }

// PeerDir returns the folder with the files of a peer's module, in the version that [BuildPeer] builds.
func PeerDir(ctx context.Context, peer Peer) (string, error) {
	m, ok := peers[peer]
	if !ok {
		return "", fmt.Errorf("unknown peer %q", peer)
	}
	return m.moduleDir(ctx)
}

// moduleDir returns the folder of the Go module of the first package.
func (m module) moduleDir(ctx context.Context) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	path, _, _ := strings.Cut(m.packages[0], "/cmd/")
	dirs, err := moduleDirs(ctx, filepath.Join(root, "test", "cluster", "binaries", m.dir), []Module{{Path: path}})
	if err != nil {
		return "", err
	}
	return dirs[path], nil
}

func buildAll(ctx context.Context, progress io.Writer, modules ...module) (Binaries, error) {
	supply, err := startBuild(ctx, progress, nil, modules...)
	if err != nil {
		return nil, err
	}
	return supply.all(ctx)
}

// startBuild builds the missing programs of the modules in the background and returns a supply of all programs. If published is not nil,
// it prefers published programs to compiled ones.
func startBuild(ctx context.Context, progress io.Writer, published *store, modules ...module) (*supply, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b := &builder{
		source: filepath.Join(root, "test", "cluster", "binaries"), cache: filepath.Join(cache, "binaries"),
		out: progress, clock: clock.RealClock{}, published: published, supply: newSupply(),
	}
	b.start = b.clock.Now()
	go func() { b.supply.complete(b.buildModules(ctx, modules...)) }()
	return b.supply, nil
}

type builder struct {
	source, cache string
	out           io.Writer
	clock         clock.WithTicker
	start         time.Time
	published     *store // nil if everything is compiled
	supply        *supply
	// total is the number of programs that were missing at the start. begun is the number of those whose build has begun.
	total, begun int
}

// buildModules builds the missing programs of the modules.
func (b *builder) buildModules(ctx context.Context, modules ...module) error {
	for _, m := range modules {
		target, err := b.target(m)
		if err != nil {
			return err
		}
		b.total += len(b.missing(m, target))
	}
	for _, m := range modules {
		if err := b.buildModule(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) logf(format string, args ...any) {
	elapsed := b.clock.Since(b.start).Round(time.Second)
	fmt.Fprintf(b.out, "[%5s] %s\n", elapsed, fmt.Sprintf(format, args...))
}

// target returns the folder of a module's programs.
func (b *builder) target(m module) (string, error) {
	source := filepath.Join(b.source, m.dir)
	goMod, modErr := os.ReadFile(filepath.Join(source, "go.mod"))
	goSum, sumErr := os.ReadFile(filepath.Join(source, "go.sum"))
	own, ownErr := m.ownSources(b.source)
	if err := errors.Join(modErr, sumErr, ownErr); err != nil {
		return "", fmt.Errorf("reading the module of %s: %w", m.packages[0], err)
	}
	return filepath.Join(b.cache, programName(m.packages[0])+"-"+m.key(goMod, append(goSum, own...), runtime.Version()+runtime.GOOS+runtime.GOARCH)), nil
}

// missing returns the packages whose programs have to be built, and supplies the existing programs.
func (b *builder) missing(m module, target string) (packages []string) {
	for _, pkg := range m.packages {
		name := programName(pkg)
		path, found := b.published.program(name)
		if !found || m.compiled {
			path = filepath.Join(target, name)
			_, err := os.Stat(path)
			found = err == nil
		}
		if found {
			b.supply.add(name, path)
		} else {
			packages = append(packages, pkg)
		}
	}
	return packages
}

func (b *builder) buildModule(ctx context.Context, m module) error {
	target, err := b.target(m)
	if err != nil {
		return err
	}
	if len(b.missing(m, target)) == 0 {
		return nil
	}
	unlock, err := lock(ctx, "build", func() { b.logf("waiting for a build in another process") })
	if err != nil {
		return err
	}
	defer unlock()
	if packages := b.missing(m, target); len(packages) > 0 && b.published != nil && !m.compiled {
		b.published.download(ctx, programNames(packages), b.supply, b.logf)
	}
	packages := b.missing(m, target)
	if len(packages) == 0 {
		return nil // another process built the programs, or they were downloaded
	}
	return b.compile(ctx, m, packages, target)
}

// ownSources returns the sources of those packages of the module that are in the folder of binaries.
func (m module) ownSources(binaries string) ([]byte, error) {
	var all []byte
	for _, pkg := range m.packages {
		folder, own := strings.CutPrefix(pkg, modulePath+"/test/cluster/binaries/")
		if !own {
			continue
		}
		files, err := filepath.Glob(filepath.Join(binaries, folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, content...)
		}
	}
	return all, nil
}

// compile builds the programs of a module with one command, which compiles and links in parallel, starting with the first program. It
// supplies each program as soon as it is linked.
func (b *builder) compile(ctx context.Context, m module, packages []string, target string) error {
	source, partial := filepath.Join(b.source, m.dir), target+".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755), os.MkdirAll(target, 0o755)); err != nil {
		return fmt.Errorf("preparing %s: %w", partial, err)
	}
	names := programNames(packages)
	list := strings.Join(names, ", ")
	b.logf("building %s: %s", list, b.nextPrograms(len(names)))
	cgo := "CGO_ENABLED=0"
	if m.cgoTags != "" {
		cgo = "CGO_ENABLED=1"
	}
	command := exec.CommandContext(ctx, "go", append([]string{
		"build", "-buildvcs=false", "-tags", m.cgoTags + m.tags, "-ldflags", "-s -w " + m.ldflags, "-o", partial + "/",
	}, packages...)...)
	command.Dir = source
	// Go renames a program atomically only within a file system.
	command.Env = append(os.Environ(), cgo, "GOWORK=off", "GOTMPDIR="+partial)
	message, err := b.run(command, partial, target, slices.Clone(packages))
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("building %s: the Go toolchain is not on the PATH: %w", list, err)
	}
	if err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", list, source, err, tail(message, tailLines))
	}
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("removing %s: %w", partial, err)
	}
	return nil
}

// moveLinked moves the linked programs to the target and supplies them. It returns the packages of the other programs.
func (b *builder) moveLinked(partial, target string, packages []string) []string {
	return slices.DeleteFunc(packages, func(pkg string) bool {
		path := filepath.Join(target, programName(pkg))
		if err := os.Rename(filepath.Join(partial, linkedName(pkg)), path); err != nil {
			return false
		}
		b.supply.add(programName(pkg), path)
		return true
	})
}

// nextPrograms returns the numbers of the next programs to build, for the progress.
func (b *builder) nextPrograms(next int) string {
	first := b.begun + 1
	b.begun += next
	b.total = max(b.total, b.begun) // other processes may have removed programs
	if next == 1 {
		return fmt.Sprintf("program %d of %d", first, b.total)
	}
	return fmt.Sprintf("programs %d to %d of %d", first, b.begun, b.total)
}

// run executes the compiler, supplies linked programs and writes progress.
func (b *builder) run(command *exec.Cmd, partial, target string, packages []string) (string, error) {
	progress, move := b.clock.NewTicker(progressInterval), b.clock.NewTicker(moveInterval)
	defer progress.Stop()
	defer move.Stop()
	type result struct {
		output []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		output, err := command.CombinedOutput()
		done <- result{output, err}
	}()
	for {
		select {
		case r := <-done:
			if packages = b.moveLinked(partial, target, packages); len(packages) > 0 && r.err == nil {
				r.err = fmt.Errorf("go build has not built %s", strings.Join(programNames(packages), ", "))
			}
			return string(r.output), r.err
		case <-move.C():
			before := len(packages)
			packages = b.moveLinked(partial, target, packages)
			if len(packages) > 0 && len(packages) < before {
				b.logf("building %s: %d remaining", programName(packages[0]), len(packages)-1)
			}
		case <-progress.C():
			if len(packages) > 0 {
				b.logf("still building %s", programName(packages[0]))
			}
		}
	}
}
