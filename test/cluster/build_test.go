package cluster

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestKey(t *testing.T) {
	base := module{ldflags: "-s", packages: []string{"a", "b"}}
	key := func(m module, goMod, goSum, toolchain string) string {
		return m.key([]byte(goMod), []byte(goSum), toolchain)
	}
	first := key(base, "mod", "sum", "go1")
	if first != key(base, "mod", "sum", "go1") || len(first) != keyLength {
		t.Fatalf("got key %q, want the same for equal modules, with %d characters", first, keyLength)
	}
	flags, packages, tags := base, base, base
	flags.ldflags = "-w"
	tags.cgoTags = "seccomp"
	packages.packages = []string{"a"}
	for name, other := range map[string]string{
		"go.mod":                 key(base, "mod2", "sum", "go1"),
		"go.sum":                 key(base, "mod", "sum2", "go1"),
		"toolchain":              key(base, "mod", "sum", "go2"),
		"flags":                  key(flags, "mod", "sum", "go1"),
		"tags":                   key(tags, "mod", "sum", "go1"),
		"packages":               key(packages, "mod", "sum", "go1"),
		"boundary between files": key(base, "modsu", "m", "go1"),
	} {
		if other == first {
			t.Errorf("%s does not change the key", name)
		}
	}
}

func TestVersionStamp(t *testing.T) {
	stamp := versionStamp(KubernetesVersion)
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.2",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/client-go/pkg/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitTreeState=clean",
		"-X k8s.io/client-go/pkg/version.buildDate=1970-01-01T00:00:00Z",
	} {
		if !strings.Contains(stamp, want) {
			t.Errorf("got flags %q, want %q in them", stamp, want)
		}
	}
}

func TestProgramNames(t *testing.T) {
	var names []string
	for _, m := range binaryModules() {
		for _, pkg := range m.packages {
			names = append(names, programName(pkg))
		}
	}
	want := "etcd kube-apiserver kube-controller-manager kube-scheduler kwok kubectl"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got programs %q, want %q", got, want)
	}
	if name := linkedName("go.etcd.io/etcd/server/v3"); name != "server" {
		t.Errorf("got file name %q for etcd, want %q", name, "server")
	}
	names = nil
	for _, m := range nodeModules() {
		for _, pkg := range m.packages {
			names = append(names, programName(pkg))
		}
	}
	want = "runc bridge loopback host-local containerd-shim-runc-v2 containerd kubelet kube-proxy coredns"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got programs %q of a real node, want %q", got, want)
	}
	t.Setenv(VersionVariable, "oldest")
	oldest := binaryModules()[1]
	want = "kube-apiserver kube-controller-manager kube-scheduler"
	if got := strings.Join(programNames(oldest.packages), " "); got != want || !oldest.compiled {
		t.Errorf("got programs %q, compiled %t of the oldest Kubernetes, want %q and true", got, oldest.compiled, want)
	}
	want = "olm catalog package-server copy-content cpb opm grpc-health-probe"
	if got := strings.Join(programNames(olmModule().packages), " "); got != want {
		t.Errorf("got programs %q of OLM, want %q", got, want)
	}
}

// writeSmallModule writes a module with one program and returns the folder of modules.
func writeSmallModule(t *testing.T, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod": "module example.com/small\n\ngo 1.26.0\n", "go.sum": "", "main.go": source,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Dir(dir)
}

func TestBuildReportsProgressAndUsesCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := writeSmallModule(t, "package main\n\nfunc main() {}\n")
	if err := os.CopyFS(filepath.Join(source, "other"), os.DirFS(filepath.Join(source, "small"))); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b := builder{source: source, cache: t.TempDir(), out: &out, clock: testclock.NewFakeClock(time.Unix(0, 0)), supply: newSupply()}
	b.start = b.clock.Now()
	modules := []module{{dir: "small", packages: []string{"example.com/small"}}, {dir: "other", ldflags: "-X main.other=1", packages: []string{"example.com/small"}}}
	if err := b.buildModules(t.Context(), modules...); err != nil {
		t.Fatal(err)
	}
	binaries := b.supply.paths
	if info, err := os.Stat(binaries["small"]); err != nil || info.Mode()&0o100 == 0 {
		t.Fatalf("got program %q, error %v, want an executable", binaries["small"], err)
	}
	for _, want := range []string{"building small: program 1 of 2", "building small: program 2 of 2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got output %q, want %q in it", out.String(), want)
		}
	}
	out.Reset()
	if err := b.buildModules(t.Context(), modules...); err != nil || out.Len() > 0 {
		t.Errorf("got error %v, output %q of a second build, want neither", err, out.String())
	}
}

func TestBuildErrorContainsCompilerOutput(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := writeSmallModule(t, "package main\n\nfunc main() { undefinedName() }\n")
	b := builder{source: source, cache: t.TempDir(), out: &bytes.Buffer{}, clock: testclock.NewFakeClock(time.Unix(0, 0)), supply: newSupply()}
	err := b.buildModule(t.Context(), module{dir: "small", packages: []string{"example.com/small"}})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") || !strings.Contains(err.Error(), "building small") {
		t.Errorf("got error %v, want the output of the compiler in it", err)
	}
	if err := b.buildModule(t.Context(), module{dir: "absent", packages: []string{"example.com/absent"}}); err == nil {
		t.Error("want an error for a missing module")
	}
}

func TestLockIsExclusive(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	unlock, err := lock(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	locked := make(chan error, 1)
	go func() {
		second, err := lock(context.WithoutCancel(t.Context()), "test", func() { close(waiting) })
		if err == nil {
			second()
		}
		locked <- err
	}()
	<-waiting
	select {
	case err := <-locked:
		t.Fatalf("the lock was acquired twice, error %v", err)
	default:
	}
	unlock()
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
}

func TestWaitForLockEndsWithContext(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	unlock, err := lock(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, "test", cancel); err == nil {
		t.Error("want an error when the context ends while the lock is held")
	}
}

// requirements returns the versions in a go.mod.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^\t([^\s=]+) (v\S+)`).FindAllStringSubmatch(string(content), -1) {
		versions[match[1]] = match[2]
	}
	return versions
}

func TestModulesShareVersionsWithOperator(t *testing.T) {
	root := filepath.Join("..", "..")
	operator := requirements(t, filepath.Join(root, "go.mod"))
	for _, module := range []string{"test/cluster/binaries", "test/bundle/validators", "cmd/release"} {
		shared := 0
		for path, version := range requirements(t, filepath.Join(root, module, "go.mod")) {
			want, ok := operator[path]
			if ok && want != version {
				t.Errorf("%s requires %s %s and the operator %s, want the same version, which is compiled once", module, path, version, want)
			}
			if ok {
				shared++
			}
		}
		if shared < 30 {
			t.Errorf("%s shares %d requirements with the operator, want at least 30", module, shared)
		}
	}
}
