package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// previousRelease holds the paths of the sources and the manager of the version from which users upgrade.
type previousRelease struct{ tree, manager string }

var errNotInClone = errors.New("is not in this clone, which may have only a part of the history: run git fetch --depth=1 origin")

// fetchPreviousRelease extracts a commit of the clone into the cache and builds its manager, unless the cache has them.
func fetchPreviousRelease(ctx context.Context, commit string) (*previousRelease, error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "versions", commit)
	previous := &previousRelease{tree: filepath.Join(dir, "tree"), manager: filepath.Join(dir, "manager")}
	if _, err := run(ctx, root, nil, "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		return nil, fmt.Errorf("commit %s %w %s (%w)", commit, errNotInClone, commit, err)
	}
	unlock, err := filelock.Take(ctx, dir+".lock", nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := os.Stat(previous.manager); !errors.Is(err, fs.ErrNotExist) {
		return previous, err
	}
	if err := errors.Join(os.RemoveAll(previous.tree), os.MkdirAll(previous.tree, 0o755)); err != nil {
		return nil, fmt.Errorf("creating the directory of commit %s: %w", commit, err)
	}
	archive, err := run(ctx, root, nil, "git", "archive", commit)
	if err != nil {
		return nil, err
	}
	if _, err := run(ctx, previous.tree, archive, "tar", "-x"); err != nil {
		return nil, err
	}
	partial := previous.manager + ".partial"
	if _, err := run(ctx, previous.tree, nil, "go", "build", "-tags=grpcnotrace", "-o", partial, "./cmd/manager"); err != nil {
		return nil, err
	}
	return previous, os.Rename(partial, previous.manager)
}

// run returns the standard output of a command. If the command fails, the error contains its standard error.
func run(ctx context.Context, dir string, input []byte, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdin = dir, bytes.NewReader(input)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return output, nil
}

func TestFetchPreviousReleaseWithMissingCommit(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	if _, err := fetchPreviousRelease(t.Context(), commit); !errors.Is(err, errNotInClone) || !strings.Contains(err.Error(), "run git fetch --depth=1 origin "+commit) {
		t.Errorf("got error %v, want that %s %v", err, commit, errNotInClone)
	}
}
