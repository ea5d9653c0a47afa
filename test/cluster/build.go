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
	"strings"
	"time"

	"k8s.io/utils/clock"
)

const (
	progressEvery = 15 * time.Second
	keyLength     = 16
)

// key names the results of a build: equal keys mean equal binaries.
func (m module) key(goMod, goSum []byte, toolchain string) string {
	hash := sha256.New()
	for _, part := range [][]byte{goMod, goSum, []byte(toolchain), []byte(m.ldflags + m.cgoTags), []byte(strings.Join(m.packages, " "))} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:keyLength]
}

// Binaries maps the name of a program (`etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`,
// `kubectl`, `kwok`) to its path.
type Binaries map[string]string

// Build makes sure that every program of the control plane exists and returns their paths. It writes progress with the
// time elapsed to progress, at least every 15 s while it compiles, and nothing when everything is there. Builders in
// other processes are waited for. Errors carry the output of the compiler.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, binaryModules()...)
}

// BuildNode makes sure that the programs of a real node exist and returns their paths by name, as [Build] does.
func BuildNode(ctx context.Context, progress io.Writer) (Binaries, error) {
	return buildAll(ctx, progress, nodeModules()...)
}

// Kubectl makes sure that kubectl exists, in the version of the control plane, and returns its path. It is built with the
// control plane, as [Build] does.
func Kubectl(ctx context.Context, progress io.Writer) (string, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return "", err
	}
	return binaries["kubectl"], nil
}

// BuildPeer makes sure that the program of a peer exists and returns its path, as [Build] does.
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

// PeerFiles returns the folder with the files of a peer's module, in the version that [BuildPeer] builds.
func PeerFiles(ctx context.Context, peer Peer) (string, error) {
	m, ok := peers[peer]
	if !ok {
		return "", fmt.Errorf("unknown peer %q", peer)
	}
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
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b := builder{
		source: filepath.Join(root, "test", "cluster", "binaries"), cache: filepath.Join(cache, "binaries"),
		out: progress, clock: clock.RealClock{},
	}
	b.start = b.clock.Now()
	return b.all(ctx, modules...)
}

type builder struct {
	source, cache string
	out           io.Writer
	clock         clock.WithTicker
	start         time.Time
	// total is how many programs did not exist at the start, and done how many of them this run has built.
	total, done int
}

// all builds what is missing of the modules.
func (b *builder) all(ctx context.Context, modules ...module) (Binaries, error) {
	binaries := Binaries{}
	for _, m := range modules {
		missing, err := b.missing(m)
		if err != nil {
			return nil, err
		}
		b.total += missing
	}
	for _, m := range modules {
		if err := b.module(ctx, m, binaries); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

func (b *builder) say(format string, args ...any) {
	elapsed := b.clock.Since(b.start).Round(time.Second)
	fmt.Fprintf(b.out, "[%5s] %s\n", elapsed, fmt.Sprintf(format, args...))
}

// target is the folder of a module's programs.
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

// missing counts the programs of a module that have to be built: all of them, or none.
func (b *builder) missing(m module) (int, error) {
	target, err := b.target(m)
	if err != nil || m.complete(target) {
		return 0, err
	}
	return len(m.packages), nil
}

func (b *builder) module(ctx context.Context, m module, into Binaries) error {
	target, err := b.target(m)
	if err != nil {
		return err
	}
	for _, pkg := range m.packages {
		into[programName(pkg)] = filepath.Join(target, programName(pkg))
	}
	if m.complete(target) {
		return nil
	}
	unlock, err := lock(ctx, "build", func() { b.say("another process is building, waiting for it") })
	if err != nil {
		return err
	}
	defer unlock()
	if m.complete(target) {
		return nil // another process built it
	}
	return b.programs(ctx, m, filepath.Join(b.source, m.dir), target)
}

// ownSources returns the files of those packages that stand beside the requirements, in the folder of binaries.
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

// complete reports whether every program lies in the folder; the folder is renamed into place when it is whole.
func (m module) complete(dir string) bool {
	for _, pkg := range m.packages {
		if _, err := os.Stat(filepath.Join(dir, programName(pkg))); err != nil {
			return false
		}
	}
	return true
}

// programs builds those of a module with one command, so that one is linked while the next is compiled.
func (b *builder) programs(ctx context.Context, m module, source, target string) error {
	partial := target + ".partial"
	if err := errors.Join(os.RemoveAll(target), os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return fmt.Errorf("preparing %s: %w", partial, err)
	}
	var names []string
	for _, pkg := range m.packages {
		names = append(names, programName(pkg))
	}
	all := strings.Join(names, ", ")
	b.say("building %s: %s", all, b.share(len(names)))
	cgo := "CGO_ENABLED=0"
	if m.cgoTags != "" {
		cgo = "CGO_ENABLED=1"
	}
	output := partial + "/"
	if len(names) == 1 {
		output += names[0] // Go would name it after its path
	}
	command := exec.CommandContext(ctx, "go", append([]string{
		"build", "-buildvcs=false", "-tags", m.cgoTags, "-ldflags", "-s -w " + m.ldflags, "-o", output,
	}, m.packages...)...)
	command.Dir = source
	command.Env = append(os.Environ(), cgo, "GOWORK=off")
	said, err := b.run(command, all)
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("building %s: the Go toolchain is not on the PATH: %w", all, err)
	}
	if err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", all, source, err, tail(said, tailLines))
	}
	if err := os.Rename(partial, target); err != nil {
		return fmt.Errorf("moving the programs to %s: %w", target, err)
	}
	return nil
}

// share says which of the programs that have to be built come next.
func (b *builder) share(next int) string {
	first := b.done + 1
	b.done += next
	b.total = max(b.total, b.done) // others may have removed some since
	if next == 1 {
		return fmt.Sprintf("program %d of %d", first, b.total)
	}
	return fmt.Sprintf("programs %d to %d of %d", first, b.done, b.total)
}

// run executes the compiler and reports that it is alive.
func (b *builder) run(command *exec.Cmd, name string) (string, error) {
	ticker := b.clock.NewTicker(progressEvery)
	defer ticker.Stop()
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
			return string(r.output), r.err
		case <-ticker.C():
			b.say("still building %s", name)
		}
	}
}
