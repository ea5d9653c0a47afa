package operator

import (
	"context"
	"io"
	"os"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// managerVariable is the environment variable with the path of an existing manager. `make` sets it, so the manager is built once
// for all suites, optionally with the race detector.
const managerVariable = "TEST_MANAGER"

// Build compiles ./cmd/manager of this checkout, unless the environment variable TEST_MANAGER is the path of a program, and returns the
// path. The Go build cache makes a second call cheap. It writes to progress when it waits for another build.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(managerVariable); path != "" {
		return path, nil
	}
	return cluster.BuildProgram(ctx, "./cmd/manager", []string{"grpcnotrace"}, progress)
}
