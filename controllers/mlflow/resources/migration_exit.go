package resources

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ImageReport is the result of the migration program. MLflow and Schema are the version and the newest schema revision of its image.
// Database is the schema revision of a database that differs from Schema, or else Schema, and Cause is a key of causeTexts. Unknown fields
// are empty.
type ImageReport struct{ MLflow, Schema, Database, Cause string }

var reportPattern = regexp.MustCompile(`(?:^|\n)mlflow=(-|[0-9][0-9A-Za-z.-]{0,31}) schema=(-|[0-9A-Za-z_]{1,32}) database=(-|[0-9A-Za-z_]{1,32})(?: cause=(-|[a-z]{1,32}))?$`)

// ParseImageReport parses the last line of the termination message. The rest is ignored, because it may contain a password.
func ParseImageReport(terminated *corev1.ContainerStateTerminated) (r ImageReport) {
	if found := reportPattern.FindStringSubmatch(strings.TrimSpace(terminated.Message)); found != nil {
		known := func(text string) string { return strings.TrimPrefix(text, "-") }
		r = ImageReport{known(found[1]), known(found[2]), known(found[3]), known(found[4])}
	}
	return r
}

// migrationExit is a failure of the migration program.
type migrationExit struct {
	// code is the exit code of the container.
	code int32
	// terminal is true if a retry would fail in the same way.
	terminal bool
	// text is the message for the status, with the placeholders of MigrationExit.
	text string
}

// ExitNewerDatabase is the exit code for a database with a newer schema than the image.
const ExitNewerDatabase = 17

// migrationExits lists the exit codes of the program. Other codes are retryable.
var migrationExits = []migrationExit{
	{10, true, "migration image reports an unexpected MLflow version {mlflow}; expected {oldest} or newer: set spec.image to such an image"},
	{11, true, "operator-managed migration only supports SQL backend store URIs: use one that begins with sqlite, postgresql or mysql"},
	{12, true, "operator-managed migration only supports SQL registry store URIs: use one that begins with sqlite, postgresql or mysql"},
	{13, true, "migration completed but the resulting schema revision does not match the image's Alembic head: another program may have changed the schema; restore a backup, or run mlflow db upgrade with this image"},
	{14, true, "migration failed because Alembic could not resolve the schema revision graph: a newer MLflow has probably migrated the database; use an image of that version, or restore a backup"},
	{15, false, "migration failed due to a retryable database or migration error{cause}"},
	{16, false, "cannot open a database{causeOrHint}"},
	{ExitNewerDatabase, true, "the database has schema revision {database} of a newer MLflow, and the image contains MLflow {mlflow}, which supports schema revisions up to {schema}: " +
		"use an image with the MLflow version that migrated the database, or a newer one, or restore an older backup"},
}

// causeTexts maps ImageReport.Cause to messages.
var causeTexts = map[string]string{
	"login":       ": authentication failed; correct the user and the password in the URI",
	"name":        ": cannot resolve the host name; correct the host in the URI",
	"certificate": ": TLS connection failed; check the certificate of the server and the TLS settings in the URI; to trust another CA, set spec.caBundleConfigMap",
	"refused":     ": connection refused; check the host and the port in the URI",
	"timeout": ": connection timed out, or no route to the host; check the host and the port in the URI; if a Secret contains the URI and the port is neither 5432 nor 3306, " +
		"allow the port with spec.networkPolicyAdditionalEgressRules",
}

// MigrationExit returns the message of an exit code and whether it is terminal; known is false if the program does not use the code.
func MigrationExit(code int32, r ImageReport, oldest string) (text string, terminal, known bool) {
	for _, exit := range migrationExits {
		if exit.code == code {
			placeholders := strings.NewReplacer("{oldest}", oldest, "{mlflow}", cmp.Or(r.MLflow, "unknown"),
				"{schema}", cmp.Or(r.Schema, "unknown"), "{database}", cmp.Or(r.Database, "unknown"), "{cause}", causeTexts[r.Cause],
				"{causeOrHint}", cmp.Or(causeTexts[r.Cause], "; check the host, the port, the user and the password in the URI"))
			return placeholders.Replace(exit.text), exit.terminal, true
		}
	}
	return "", false, false
}
