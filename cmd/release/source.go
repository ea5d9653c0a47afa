package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const repository = "https://github.com/odh-platform/odh-platform-operator"

// source identifies the commit of a release.
type source struct {
	commit string
	// time is the time of the commit, or SOURCE_DATE_EPOCH. All files in archives and images have it, so that builds are reproducible.
	time time.Time
}

// readSource returns the commit of a checkout. epoch, the value of SOURCE_DATE_EPOCH, replaces its time, see
// https://reproducible-builds.org/specs/source-date-epoch. Uncommitted changes are an error, unless allowDirty is set: the commit then ends
// with -dirty.
func readSource(ctx context.Context, root, epoch string, allowDirty bool) (source, error) {
	commit, err := output(ctx, root, "git", "rev-parse", "HEAD")
	if err != nil {
		return source{}, fmt.Errorf("finding the commit: %w", err)
	}
	changes, err := output(ctx, root, "git", "status", "--porcelain")
	if err != nil {
		return source{}, fmt.Errorf("looking for changes: %w", err)
	}
	if changes != "" {
		if !allowDirty {
			return source{}, fmt.Errorf("these files differ from the commit, so that the release would not be reproducible; commit them, or set ALLOW_DIRTY=1 for a test:\n%s", changes)
		}
		commit += "-dirty"
	}
	if epoch == "" {
		if epoch, err = output(ctx, root, "git", "show", "--no-patch", "--format=%ct", "HEAD"); err != nil {
			return source{}, fmt.Errorf("finding the time of the commit: %w", err)
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: set it to seconds since 1970", epoch)
	}
	return source{commit: commit, time: time.Unix(seconds, 0).UTC()}, nil
}

// output runs a program in a folder and returns its standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	text, err := command.Output()
	if exitErr := (*exec.ExitError)(nil); errors.As(err, &exitErr) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exitErr.Stderr)))
	}
	return strings.TrimSpace(string(text)), err
}
