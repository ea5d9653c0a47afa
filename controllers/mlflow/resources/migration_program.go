package resources

import (
	_ "embed"
	"strings"
)

// migrationProgram brings the databases to the schema of the MLflow in the image that it runs in. It reads the store
// variables of the server and SUPPORTED_MLFLOW_VERSION, and ends with 0 or with a code of migrationExits.
//
//go:embed migrate.py
var migrationProgram string

// migrationExit is a way in which the migration program ends without success.
type migrationExit struct {
	// code is the exit code of the container.
	code int32
	// terminal: running the same Job again would end the same way.
	Terminal bool
	// text says what happened, for the status. A %s in it stands for the supported version.
	text string
}

// migrationExits are all the codes that the program gives. Any other code comes from elsewhere and may be retried.
var migrationExits = []migrationExit{
	{10, true, "migration image reports an unexpected MLflow version; expected %s"},
	{11, true, "operator-managed migration only supports SQL backend store URIs"},
	{12, true, "operator-managed migration only supports SQL registry store URIs"},
	{13, true, "migration completed but the resulting schema revision does not match the image's Alembic head"},
	{14, true, "migration failed because Alembic could not resolve the schema revision graph"},
	{15, false, "migration failed due to a retryable database or migration error"},
}

// MigrationExitOf finds the meaning of an exit code, if the program gives it.
func MigrationExitOf(code int32) (migrationExit, bool) {
	for _, exit := range migrationExits {
		if exit.code == code {
			return exit, true
		}
	}
	return migrationExit{}, false
}

// Message is the text for the supported version of MLflow.
func (e migrationExit) Message(supported string) string {
	return strings.ReplaceAll(e.text, "%s", supported)
}
