package operator

import (
	"context"
	"io"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// Build compiles ./cmd/manager of this checkout and returns its path in the cache directory. The Go build cache makes
// a second call cheap. It tells progress when it waits for another builder.
func Build(ctx context.Context, race bool, progress io.Writer) (string, error) {
	return cluster.BuildProgram(ctx, "./cmd/manager", []string{"grpcnotrace"}, race, progress)
}
