//go:build operands

package operands

import (
	"context"
	_ "embed"
	"os"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// The oldest release of MLflow that the operator supports, the newest, and one that is too old.
const (
	oldest = "3.14.0"
	newest = "3.18.0"
	tooOld = "3.13.0"
)

// supported returns the releases that are tested, in their order: the oldest and the newest, and with MLFLOW_RELEASES=all the last one of
// each minor version.
func supported() []string {
	if os.Getenv("MLFLOW_RELEASES") == "all" {
		return []string{oldest, "3.15.2", "3.16.1", "3.17.2", newest}
	}
	return []string{oldest, newest}
}

// requirements pins what MLflow needs, and the driver of PostgreSQL, which images of MLflow hold too.
//
//go:embed requirements.txt
var requirements []byte

// image is an environment with one release of MLflow.
type image struct {
	*machine.Python

	release string
}

// installMLflow makes the environments of all releases unless an earlier run did. They share one with what they need.
func installMLflow(ctx context.Context) (map[string]*image, error) {
	needed, err := machine.InstallPython(ctx, "operands", "python", requirements)
	if err != nil {
		return nil, err
	}
	all := map[string]*image{}
	for _, release := range append(supported(), tooOld) {
		p, err := needed.Beside(ctx, "mlflow-"+release, "mlflow=="+release)
		if err != nil {
			return nil, err
		}
		all[release] = &image{Python: p, release: release}
	}
	return all, nil
}
