package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// builtPrograms are the programs that this process has compiled. They are not built again, because even a build without changes takes
// seconds on a busy machine.
var builtPrograms sync.Map

type builtProgram struct {
	sync.Mutex
	done bool
}

// BuildProgram compiles a package of this checkout and returns the path of the program in the cache directory, one per checkout and tags.
// The toolchain does not rewrite an unchanged program. BuildProgram writes to progress when it waits for another build.
func BuildProgram(ctx context.Context, pkg string, tags []string, progress io.Writer) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	source := sha256.Sum256([]byte(strings.Join(append([]string{filepath.Join(root, pkg)}, tags...), ",")))
	target := filepath.Join(cache, "programs", hex.EncodeToString(source[:])[:keyLength], filepath.Base(pkg))
	value, _ := builtPrograms.LoadOrStore(target, &builtProgram{})
	program := value.(*builtProgram)
	program.Lock()
	defer program.Unlock()
	if program.done {
		return target, nil
	}
	unlock, err := lock(ctx, "program-"+filepath.Base(filepath.Dir(target))+"-"+filepath.Base(target), func() {
		fmt.Fprintf(progress, "waiting for the build of %s in another process\n", pkg)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", strings.Join(tags, ","), "-o", target, pkg)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, tail(string(output), tailLines))
	}
	program.done = true
	return target, nil
}
