//go:build operands

package operands

import (
	"context"
	_ "embed"
	"os"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

const (
	oldest = "3.14.0" // the oldest supported release of MLflow
	newest = "3.18.0"
	tooOld = "3.13.0" // an unsupported release
)

// testedReleases returns the tested releases in order: the oldest and the newest, and with MLFLOW_RELEASES=all the last release of each
// minor version between them.
func testedReleases() []string {
	if os.Getenv("MLFLOW_RELEASES") == "all" {
		return []string{oldest, "3.15.2", "3.16.1", "3.17.2", newest}
	}
	return []string{oldest, newest}
}

// requirements pins the dependencies of MLflow and the driver of PostgreSQL, which images of MLflow contain.
//
//go:embed requirements.txt
var requirements []byte

// image is an environment with a release of MLflow.
type image struct {
	*machine.Python

	release string
}

// installMLflow creates the missing environments of the tested releases and of tooOld. They share an environment with the dependencies.
func installMLflow(ctx context.Context) (map[string]*image, error) {
	base, err := machine.InstallPython(ctx, "operands", "python", requirements)
	if err != nil {
		return nil, err
	}
	installed := map[string]*image{}
	for _, release := range append(testedReleases(), tooOld) {
		p, err := base.Extend(ctx, "mlflow-"+release, "mlflow=="+release)
		if err != nil {
			return nil, err
		}
		installed[release] = &image{Python: p, release: release}
	}
	return installed, nil
}
