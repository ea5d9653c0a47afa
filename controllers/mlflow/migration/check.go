package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// A server that runs is stopped only after a Job which changes nothing has shown that the image can be pulled and that the
// databases can be opened. Its rules come before all that stop a server. They do not apply where nothing would be lost: without a
// server, and once a migration has begun.

// checkFor stands for the migration that a check made now is for: what would run, where, and which time.
func (f *Facts) checkFor() string {
	return resources.ShortHash(strings.Join([]string{f.Supported, f.Image, f.Stores, fmt.Sprint(f.Generation), f.Force, f.Record.JobUID}, "\n"))
}

// unchecked reports that a server runs which may not be stopped yet.
func (f *Facts) unchecked() bool {
	if !f.Live.Runs || f.begun() {
		return false
	}
	c := f.Live.Check
	return c == nil || c.Leaving || c.For != f.checkFor() || c.Phase != JobSucceeded
}

// begun reports that a migration works on the database, or has.
func (f *Facts) begun() bool {
	return f.Record.Outcome == mlflowv1.MigrationRunning || slices.ContainsFunc(f.Live.Others, func(j JobState) bool { return j.works() }) ||
		f.Live.Job != nil && (f.Live.Job.Started || f.finished() && f.counts(f.Live.Job))
}

// whenUnchecked narrows a rule to a server that may not be stopped yet, and to what is known of the check.
func whenUnchecked(when func(*Facts, *JobState) bool) func(*Facts) bool {
	return func(f *Facts) bool { return f.unchecked() && f.Live.Check != nil && when(f, f.Live.Check) }
}

// checkRules are a part of migrationRules.
var checkRules = []migrationRule{
	{"the check is for another migration, or goes",
		whenUnchecked(func(f *Facts, c *JobState) bool { return c.Leaving || c.For != f.checkFor() }), replaceCheck},
	{"the database is newer than the image",
		whenUnchecked(func(_ *Facts, c *JobState) bool {
			return c.Phase == JobFailed && c.Code == resources.ExitNewerDatabase
		}), refuseDowngrade},
	{"the check failed for good",
		whenUnchecked(func(_ *Facts, c *JobState) bool { return c.Phase == JobFailed && c.Failure.Terminal }), reportCheck},
	{"the check failed and is repeated",
		whenUnchecked(func(_ *Facts, c *JobState) bool { return c.Phase == JobFailed }), repeatCheck},
	{"the check runs",
		whenUnchecked(func(*Facts, *JobState) bool { return true }), awaitCheck},
	{"the server runs and nothing is checked",
		(*Facts).unchecked, createCheck},
	{"the check found the schema of the image",
		func(f *Facts) bool { return f.upToDate() }, followCheck},
}

// upToDate reports that a check has shown that a migration, if it were not asked for in so many words, would have nothing to do.
func (f *Facts) upToDate() bool {
	c, alone := f.Live.Check, len(f.Live.Others) == 0 && (f.Live.Job == nil || f.finished())
	return f.Live.Runs && c != nil && alone && !f.begun() && f.Force == "" && !f.Always && c.Found.Schema != "" && c.Found.Database == c.Found.Schema
}

// followCheck has the server follow without a stop. The last Job stays the one that led to something.
func followCheck(f *Facts) Decision {
	return follow(f, f.migrated(f.Live.Check.Found, types.UID(f.Record.JobUID)))
}

func refuseDowngrade(f *Facts) Decision {
	text := fmt.Sprintf("Server and CronJobs are left as they are, because with image %s %s", f.Image, f.Live.Check.Failure.Message)
	if f.Recorded != "" {
		text += fmt.Sprintf("; status.version is %s", f.Recorded)
	}
	d := keepServing(ReasonDowngradeRefused, text, 0)
	d.Report.Status, d.Report.Progressing = metav1.ConditionFalse, false
	return d
}

func replaceCheck(f *Facts) Decision {
	if f.Live.Check.Leaving {
		return keepServing(ReasonMigrationChecking, "Waiting for check Job "+f.Live.Check.Name+" to be gone", RecreateDelay)
	}
	return removingCheck(f, ReasonMigrationChecking, "Deleted check Job "+f.Live.Check.Name+", which was made for another migration")
}

// reportCheck waits for what only a user can change: image, stores, or the annotation.
func reportCheck(f *Facts) Decision {
	d := keepServing(ReasonMigrationCheckFailed, f.checkFailure()+" Correct the spec, or run an operator with another MLflow.", 0)
	d.Report.Status, d.Report.Progressing = metav1.ConditionFalse, false
	return d
}

// repeatCheck says the same before and after the pause.
func repeatCheck(f *Facts) Decision {
	text := f.checkFailure() + " It is repeated until it succeeds."
	if left := f.Live.Check.FailedAt.Add(retryDelay).Sub(f.Now); left > 0 {
		return keepServing(ReasonMigrationCheckFailed, text, left)
	}
	return removingCheck(f, ReasonMigrationCheckFailed, text)
}

// checkFailure stays the same from one attempt to the next.
func (f *Facts) checkFailure() string {
	return fmt.Sprintf("The server was not stopped, because the check of image %s and the databases before the migration failed: %s.",
		f.Image, strings.TrimSuffix(f.Live.Check.Failure.Message, "."))
}

func awaitCheck(f *Facts) Decision {
	c := f.Live.Check
	if c.Cause == "" {
		return keepServing(ReasonMigrationChecking, "Waiting for check Job "+c.Name+" to finish", WatchDelay)
	}
	return keepServing(ReasonMigrationCheckFailed, fmt.Sprintf("The server was not stopped, because check Job %s does not succeed: %s", c.Name, c.Cause), WatchDelay)
}

func createCheck(f *Facts) Decision {
	d := keepServing(ReasonMigrationChecking, "Created a Job that checks the image and the databases before the server is stopped", WatchDelay)
	d.Step, d.Subject = StepCheck, f.checkFor()
	return d
}

func removingCheck(f *Facts, reason, message string) Decision {
	d := keepServing(reason, message, untilEvent(f.Live.Check))
	d.Step, d.Job = StepDelete, f.Live.Check
	return d
}

// keepServing leaves the server as it is.
func keepServing(reason, message string, retry time.Duration) Decision {
	return Decision{Workloads: ServeOn, Retry: retry, Report: &Report{
		Status: metav1.ConditionUnknown, Reason: reason, Message: message, Progressing: true,
	}}
}
